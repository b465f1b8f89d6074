//! This rank's words, as the thread that stores signals reaches them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Weak};

use warpwire_device::abi::Global;

use super::gdrcopy::{GdrCopy, Mapping};
use super::inbox::{Sink, WordName};
use crate::device::{Device, Stream};
use crate::env;
use crate::error::{Result, VerbsError};
use crate::memory::Owned;
use crate::verbs::{Domain, Region};

/// Words whose places are remembered: a place in a GPU takes a system call, or more, to make.
const REMEMBERED: usize = 64;

/// Where words lie, and how they are stored there:
///
/// - memory that the host reaches, directly;
/// - GPU memory through a mapping of GDRCopy's, where that is and `WARPWIRE_FORCE_DISABLE_GDR` is not set;
/// - other GPU memory by a stream's word writes.
#[derive(Debug)]
pub(super) struct Words {
    domain: Arc<Domain>,
    places: Vec<(WordName, Weak<Region>, Place)>,
}

#[derive(Debug)]
enum Place {
    Host(*const AtomicU64),
    Mapped(Mapping),
    Streamed { device: Device, stream: Stream, address: u64 },
}

// SAFETY: the pointer is to a word that any thread may touch atomically, in memory that is live while the region beside it is.
unsafe impl Send for Place {}

impl Words {
    pub(super) fn new(domain: &Arc<Domain>) -> Self {
        Self { domain: Arc::clone(domain), places: Vec::new() }
    }

    /// Calls `once` with the word's place, whose memory stays registered meanwhile.
    fn with<R>(&mut self, word: WordName, once: impl FnOnce(&Place) -> Result<R>) -> Result<R> {
        let known = self.places.iter().position(|(name, ..)| *name == word);
        let live = known.and_then(|index| Some((index, self.places[index].1.upgrade()?)));
        let (index, _kept) = match live {
            Some(found) => found,
            None => {
                // What is left of memory that is gone.
                self.places.retain(|(name, region, _)| *name != word && region.strong_count() > 0);
                if self.places.len() >= REMEMBERED {
                    self.places.remove(0);
                }
                let region = self.region(word)?;
                self.places.push((word, Arc::downgrade(&region), Place::new(&region, word)?));
                (self.places.len() - 1, region)
            }
        };
        once(&self.places[index].2)
    }

    /// The memory of a word that a peer has named: it has to be registered, and the word to lie in it.
    fn region(&self, word: WordName) -> Result<Arc<Region>> {
        let bytes = size_of::<u64>() as u64;
        let region = self.domain.region(word.key).filter(|region| region.holds(word.address, bytes));
        let region = region.filter(|_| word.address.is_multiple_of(bytes));
        region.ok_or_else(|| {
            let adapter = self.domain.adapter().to_owned();
            VerbsError::NotRegistered { what: "a word that the peer signals", adapter }.into()
        })
    }
}

impl Place {
    fn new(region: &Region, word: WordName) -> Result<Self> {
        let owned = region.keeper().downcast_ref::<Owned>().ok_or_else(|| VerbsError::NotRegistered {
            what: "a word that the peer signals",
            adapter: String::new(),
        })?;
        if let Some(pointer) = owned.host_pointer(word.address) {
            return Ok(Self::Host(pointer.cast()));
        }
        if !env::gdr_is_disabled()?
            && let Some(gdrcopy) = GdrCopy::get()
        {
            match gdrcopy.map(word.address) {
                Ok(mapping) => return Ok(Self::Mapped(mapping)),
                Err(error) => warn_once(&format!("GDRCopy does not map a signal's word ({error})")),
            }
        }
        let device = owned.device.clone();
        let stream = device.stream()?;
        Ok(Self::Streamed { device, stream, address: word.address })
    }

    fn flush(&self) {
        match self {
            // Data in the host's memory was there before the completion.
            Self::Host(_) => fence(Ordering::Acquire),
            // A read of the GPU's memory does not pass the writes that went there before it.
            Self::Mapped(mapping) => drop(mapping.word().load(Ordering::Acquire)),
            Self::Streamed { device, .. } => {
                if let Err(error) = device.driver().flush_adapter_writes() {
                    warn_once(&format!("the driver does not wait for the writes of adapters ({error})"));
                }
            }
        }
    }

    fn store(&self, value: u64) -> Result<()> {
        match self {
            // SAFETY: a word of registered memory, aligned and live: `Words::with`.
            Self::Host(word) => unsafe { &**word }.store(value, Ordering::Release),
            Self::Mapped(mapping) => mapping.store(value),
            Self::Streamed { stream, address, .. } => {
                // SAFETY: the address of a word in registered memory, which is the device's global memory.
                let word = unsafe { Global::from_address(*address) };
                // SAFETY: aligned, reached by the device, and live until this thread lets go of the stream, whose drop waits
                // for it; others touch it by ordered accesses only.
                unsafe { stream.write_word(word, value) }?;
                stream.synchronize()?;
            }
        }
        Ok(())
    }
}

impl Sink for Words {
    fn flush(&mut self, word: WordName) -> Result<()> {
        self.with(word, |place| {
            place.flush();
            Ok(())
        })
    }

    fn store(&mut self, word: WordName, value: u64) -> Result<()> {
        self.with(word, |place| place.store(value))
    }
}

/// Says, once in the life of the process, that this machine may show a signal before its data.
fn warn_once(why: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            "{why}: on some machines a GPU may see a signal of a host-no-atomic connection before the data that came \
             before it; use the mode \"host\", or install GDRCopy"
        );
    }
}
