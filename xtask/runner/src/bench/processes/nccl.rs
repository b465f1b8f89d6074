//! NCCL, where there is one: loaded when it is asked for.
//!
//! The names and numbers are those of `nccl.h` (NCCL 2.28), the same since NCCL 2.10.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use anyhow::{Context, bail};
use libloading::Library;
use warpwire::abi::Rank;
use warpwire::collective::Operands;
use warpwire::device::Stream;

use super::peers::Peers;

const FLOAT32: c_int = 7;
const SUM: c_int = 0;
const ID_BYTES: usize = 128;

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; ID_BYTES]);

/// `ncclComm_t`.
type Comm = *mut c_void;

/// The functions, as long as the library is loaded.
struct Functions {
    get_unique_id: unsafe extern "C" fn(*mut UniqueId) -> c_int,
    comm_init_rank: unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int) -> c_int,
    all_reduce:
        unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, Comm, *mut c_void) -> c_int,
    comm_destroy: unsafe extern "C" fn(Comm) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    _library: Library,
}

/// This rank of an NCCL communicator.
pub struct Nccl {
    functions: Functions,
    comm: Comm,
}

impl Nccl {
    /// This rank, with the library at `path`, on the stream's GPU. `None`, on every rank alike, where a rank cannot load the
    /// library, and says why. Collective.
    pub fn join(path: &Path, peers: &Peers, stream: &Stream) -> anyhow::Result<Option<Self>> {
        let loaded = Functions::load(path);
        if let Err(error) = &loaded {
            eprintln!("no NCCL column: {error:#}");
        }
        let group = peers.communicator().bootstrap();
        let have = group.all_gather(&[u8::from(loaded.is_ok())])?;
        let functions = match loaded {
            Ok(functions) if have.iter().all(|answer| answer == &[1]) => functions,
            _ => return Ok(None),
        };
        let mut id = UniqueId([0; ID_BYTES]);
        let got = if peers.rank() == Rank(0) {
            // SAFETY: a live place for the id.
            functions.check("ncclGetUniqueId", unsafe { (functions.get_unique_id)(&mut id) })
        } else {
            Ok(())
        };
        // An empty one where there is none, so that nobody waits for it.
        let told = group.broadcast(Rank(0), if got.is_ok() { &id.0 } else { &[] })?;
        got?;
        id = UniqueId(told.as_slice().try_into().context("rank 0 has no id of NCCL's")?);
        let (ranks, rank) = (group.size() as c_int, peers.rank().0 as c_int);
        let mut comm = ptr::null_mut();
        // SAFETY: a live place for the communicator; every rank calls this with the same id and its own number, and the
        // stream's GPU current.
        let init = |_| unsafe { (functions.comm_init_rank)(&mut comm, ranks, id, rank) };
        let Some(code) = stream.with_native(init)? else { bail!("NCCL needs GPUs") };
        functions.check("ncclCommInitRank", code)?;
        Ok(Some(Self { functions, comm }))
    }

    /// Queues an all-reduce of f32, sum.
    ///
    /// # Safety
    ///
    /// As for [`AllReduce::enqueue`](warpwire::collective::AllReduce::enqueue).
    pub unsafe fn all_reduce(&self, stream: &Stream, operands: Operands) -> anyhow::Result<()> {
        let Operands { input, output, count } = operands;
        let (input, output) = (input.address() as *const c_void, output.address() as *mut c_void);
        // SAFETY: the caller's contract; the communicator is live, and the stream's GPU, which is its own, current.
        let queue = |handle| unsafe {
            (self.functions.all_reduce)(input, output, count, FLOAT32, SUM, self.comm, handle)
        };
        let code = stream.with_native(queue)?.context("NCCL needs GPUs")?;
        self.functions.check("ncclAllReduce", code)
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        // SAFETY: a live communicator, once; its work was waited for.
        let code = unsafe { (self.functions.comm_destroy)(self.comm) };
        if let Err(error) = self.functions.check("ncclCommDestroy", code) {
            tracing::warn!("{error:#}");
        }
    }
}

impl Functions {
    fn load(path: &Path) -> anyhow::Result<Self> {
        // SAFETY: NCCL's initialisers do nothing that a program has to prepare for. Each function has the type that `nccl.h`
        // gives it, and is called only while the library is loaded: they live in one value.
        unsafe {
            let library = Library::new(path).with_context(|| format!("cannot load {}", path.display()))?;
            let missing = |name: &str| format!("{} has no {name}", path.display());
            Ok(Self {
                get_unique_id: *library
                    .get(b"ncclGetUniqueId")
                    .with_context(|| missing("ncclGetUniqueId"))?,
                comm_init_rank: *library
                    .get(b"ncclCommInitRank")
                    .with_context(|| missing("ncclCommInitRank"))?,
                all_reduce: *library.get(b"ncclAllReduce").with_context(|| missing("ncclAllReduce"))?,
                comm_destroy: *library.get(b"ncclCommDestroy").with_context(|| missing("ncclCommDestroy"))?,
                error_string: *library
                    .get(b"ncclGetErrorString")
                    .with_context(|| missing("ncclGetErrorString"))?,
                _library: library,
            })
        }
    }

    fn check(&self, function: &str, code: c_int) -> anyhow::Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: it gives a text that lives as long as the library, or null.
        let words = unsafe {
            let text = (self.error_string)(code);
            if text.is_null() {
                "no words".into()
            } else {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            }
        };
        bail!("{function} failed with {code}: {words}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_or_is_another_is_named() {
        let error = Functions::load(Path::new("/nowhere/libnccl.so.2")).err().unwrap();
        assert!(error.to_string().contains("/nowhere/libnccl.so.2"), "{error}");
        let error = Functions::load(Path::new("libc.so.6")).err().unwrap();
        assert!(error.to_string().contains("libc.so.6 has no ncclGetUniqueId"), "{error}");
    }
}
