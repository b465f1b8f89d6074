//! Memory of this process that peers reach through it. They know it by a key; an address from outside is never believed.

use std::ptr::NonNull;
use std::sync::{Arc, Weak};

use serde::{Deserialize, Serialize};
use warpwire_device::abi::Global;

use super::identity::{self, ProcessId};
use crate::device::Device;
use crate::device::driver::DriverMemory;
use crate::error::{Error, Result};
use crate::monitor::Monitor;

/// Which region, of which process. A slot is used again, under another generation, so the key of memory that has gone leads to
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct RegionKey {
    pub(crate) process: ProcessId,
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// A range of this process' memory that peers may write. It is listed as long as it is kept.
#[derive(Debug)]
pub(crate) struct Region {
    key: RegionKey,
    address: u64,
    bytes: u64,
    // Dropped in this order: the memory before the device that it is of.
    memory: Arc<dyn DriverMemory>,
    device: Device,
}

/// All regions of this process, by slot.
static LISTED: Monitor<Table> = Monitor::new(Table { slots: Vec::new(), free: Vec::new() });

#[derive(Debug)]
struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    region: Weak<Region>,
}

impl Table {
    /// Lists a region: its slot and generation. Nothing where all slots are taken.
    fn insert(&mut self, region: Weak<Region>) -> Option<(u32, u32)> {
        if let Some(number) = self.free.pop() {
            let slot = self.slots.get_mut(number as usize)?;
            slot.region = region;
            return Some((number, slot.generation));
        }
        let number = u32::try_from(self.slots.len()).ok()?;
        self.slots.push(Slot { generation: 0, region });
        Some((number, 0))
    }

    /// The region of that slot and generation, if there is one.
    fn find(&self, slot: u32, generation: u32) -> Option<Arc<Region>> {
        self.slots.get(slot as usize).filter(|slot| slot.generation == generation)?.region.upgrade()
    }

    /// Frees a slot. One that has been through all generations stays out of use.
    fn remove(&mut self, number: u32) {
        let Some(slot) = self.slots.get_mut(number as usize) else { return };
        slot.region = Weak::new();
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            self.free.push(number);
        }
    }
}

impl Region {
    /// Lists `bytes` bytes from `address` on, which lie in `memory`, the device's.
    pub(super) fn list(
        device: &Device,
        memory: &Arc<dyn DriverMemory>,
        address: u64,
        bytes: u64,
    ) -> Result<Arc<Self>> {
        let process = identity::process()?;
        let mut listed = true;
        let region = Arc::new_cyclic(|region| {
            let place = LISTED.with(|table| table.insert(Weak::clone(region)));
            listed = place.is_some();
            // A region that is in no slot has a generation that none comes to.
            let (slot, generation) = place.unwrap_or((u32::MAX, u32::MAX));
            let key = RegionKey { process, slot, generation };
            Self { key, address, bytes, memory: Arc::clone(memory), device: device.clone() }
        });
        if listed {
            Ok(region)
        } else {
            Err(Error::OutOfMemory {
                device: "the table of registered memory".to_owned(),
                bytes,
                detail: String::new(),
            })
        }
    }

    /// The region of that slot and generation, as a peer names it.
    pub(crate) fn find(slot: u32, generation: u32) -> Option<Arc<Self>> {
        LISTED.with(|table| table.find(slot, generation))
    }

    /// What peers know it by.
    pub(crate) fn key(&self) -> RegionKey {
        self.key
    }

    /// The device whose memory it is.
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Copies `source` to `offset`, and returns when it is there.
    ///
    /// # Errors
    ///
    /// [`Error::OutsideMemory`]; the driver's.
    pub(crate) fn write(&self, offset: u64, source: &[u8]) -> Result<()> {
        let address = self.place(offset, source.len() as u64)?;
        // SAFETY: the range lies in memory that this keeps. That nothing else touches it meanwhile is what registering memory
        // for peers promises: they write it when they like.
        unsafe { self.device.driver().write(address.address(), source) }
    }

    /// Copies from `offset` on to `destination`, and returns when it is there.
    ///
    /// # Errors
    ///
    /// [`Error::OutsideMemory`]; the driver's.
    pub(crate) fn read(&self, offset: u64, destination: &mut [u8]) -> Result<()> {
        let address = self.place(offset, destination.len() as u64)?;
        // SAFETY: the range lies in memory that this keeps. That nobody writes it meanwhile is the contract of a connection's
        // source.
        unsafe { self.device.driver().read(address.address(), destination) }
    }

    /// The 64-bit word at `offset`, for the device; and for the host, where it sees the memory.
    ///
    /// # Errors
    ///
    /// [`Error::OutsideMemory`], [`Error::Misaligned`].
    pub(crate) fn word(&self, offset: u64) -> Result<(Global<u64>, Option<NonNull<u64>>)> {
        let (bytes, alignment) = (size_of::<u64>() as u64, align_of::<u64>() as u64);
        let address = self.place(offset, bytes)?;
        if !address.address().is_multiple_of(alignment) {
            return Err(Error::Misaligned { what: "word", address: address.address(), alignment });
        }
        let base = NonNull::new(self.memory.host_pointer());
        let from = (address.address() - self.memory.address()) as usize;
        // SAFETY: the host sees the memory as a whole, and the word lies `from` bytes behind its beginning.
        let seen = base.map(|base| unsafe { base.add(from) }.cast());
        Ok((address.cast(), seen))
    }

    fn place(&self, offset: u64, bytes: u64) -> Result<Global<u8>> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(Error::OutsideMemory { offset, bytes, length: self.bytes });
        }
        // SAFETY: inside the region, which lies in the device's global memory.
        Ok(unsafe { Global::from_address(self.address + offset) })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.key.slot != u32::MAX {
            LISTED.with(|table| table.remove(self.key.slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Buffer, DeviceSelector};

    fn region(buffer: &Buffer<u8>) -> Arc<Region> {
        let (memory, offset) = buffer.memory();
        Region::list(buffer.device(), memory, memory.address() + offset, buffer.bytes()).unwrap()
    }

    fn buffer(bytes: usize) -> Buffer<u8> {
        Device::open(DeviceSelector::Cpu).unwrap().allocate(bytes).unwrap()
    }

    #[test]
    fn a_key_leads_to_its_region_and_to_no_later_one() {
        let buffer = buffer(64);
        let first = region(&buffer);
        let RegionKey { slot, generation, .. } = first.key();
        assert!(Arc::ptr_eq(&Region::find(slot, generation).unwrap(), &first));
        assert!(Region::find(slot, generation + 1).is_none());
        assert!(Region::find(u32::MAX, 0).is_none());
        drop(first);
        assert!(Region::find(slot, generation).is_none(), "its memory may have gone");
        let later: Vec<_> = (0..100).map(|_| region(&buffer)).collect();
        assert!(Region::find(slot, generation).is_none(), "another one may have its slot");
        assert!(later.iter().all(|region| region.key() != RegionKey { slot, generation, ..region.key() }));
    }

    #[test]
    fn a_slot_that_has_been_through_its_generations_is_given_out_no_more() {
        let slot = Slot { generation: u32::MAX, region: Weak::new() };
        let mut table = Table { slots: vec![slot], free: vec![0] };
        assert_eq!(table.insert(Weak::new()), Some((0, u32::MAX)));
        table.remove(0);
        assert_eq!(table.insert(Weak::new()), Some((1, 0)));
    }

    #[test]
    fn ranges_are_checked_to_the_byte() {
        let buffer = buffer(64);
        // The middle of the buffer, so that a range that is let through by mistake would be seen.
        let part = buffer.part(8, 20).unwrap();
        let region = region(&part);
        region.write(19, &[7]).unwrap();
        region.write(20, &[]).unwrap();
        let mut byte = [0];
        region.read(19, &mut byte).unwrap();
        assert_eq!(byte, [7]);
        for (offset, bytes) in [(20, 1), (19, 2), (0, 21), (u64::MAX, 1), (u64::MAX - 1, 2), (21, 0)] {
            let error = region.write(offset, &vec![1; bytes]).unwrap_err();
            assert!(matches!(error, Error::OutsideMemory { length: 20, .. }), "{offset}: {error}");
            assert!(region.read(offset, &mut vec![1; bytes]).is_err());
        }
        let mut expected = vec![0; 64];
        expected[8 + 19] = 7;
        assert_eq!(buffer.read().unwrap(), expected);
    }

    #[test]
    fn words_are_aligned_and_inside() {
        let buffer = buffer(64);
        let region = region(&buffer.part(4, 24).unwrap());
        let (address, seen) = region.word(4).unwrap();
        assert_eq!(address.address(), buffer.address().address() + 8);
        assert_eq!(seen.unwrap().as_ptr() as u64, address.address(), "the CPU device's memory is the host's");
        assert!(matches!(region.word(0), Err(Error::Misaligned { .. })));
        assert!(matches!(region.word(20), Err(Error::OutsideMemory { .. })));
        assert!(matches!(region.word(u64::MAX - 3), Err(Error::OutsideMemory { .. })));
    }
}
