//! The source and the destination of every transfer, and whether what arrived is what was sent.

use anyhow::{bail, ensure};
use warpwire::abi::Global;
use warpwire::device::{Buffer, Device};
use warpwire::{Error, abi::Flag};

/// The least that a device has to have room for.
const LEAST: usize = 1 << 20;
/// Room behind the largest message, for misaligned ones and what lies around them.
const SLACK: usize = 4096;
/// What the destination holds before a transfer, and bytes around it that have to stay so.
const POISON: u8 = 0xA5;
const GUARD: usize = 256;
/// Bytes that are compared at a time.
const CHUNK: usize = 16 << 20;

/// Two buffers of the device: one with a pattern that no shift maps onto itself, one for results.
pub struct Memory {
    /// Bytes of the largest message.
    pub largest: usize,
    source: Buffer<u8>,
    destination: Buffer<u8>,
}

impl Memory {
    /// Both buffers, for messages of `largest` bytes, or half as many as often as it takes to fit the device.
    pub fn new(device: &Device, largest: usize) -> anyhow::Result<Self> {
        let allocate = |largest: usize| -> warpwire::Result<_> {
            Ok((device.allocate(largest + SLACK)?, device.allocate(largest + SLACK)?))
        };
        let mut largest = largest;
        let (source, destination) = loop {
            match allocate(largest) {
                Err(Error::OutOfMemory { .. }) if largest > LEAST => largest /= 2,
                allocated => break allocated?,
            }
        };
        Self::over(largest, source, destination)
    }

    /// A source of this device's for messages of `largest` bytes, and a destination that somebody has: [`Memory::room`] bytes.
    pub fn onto(device: &Device, largest: usize, destination: Buffer<u8>) -> anyhow::Result<Self> {
        Self::over(largest, device.allocate(Self::room(largest))?, destination)
    }

    /// How long a destination has to be for messages of `largest` bytes.
    pub const fn room(largest: usize) -> usize {
        largest + SLACK
    }

    fn over(largest: usize, source: Buffer<u8>, destination: Buffer<u8>) -> anyhow::Result<Self> {
        let memory = Self { largest, source, destination };
        let mut at = 0;
        while at < largest + SLACK {
            let bytes = pattern(at, CHUNK.min(largest + SLACK - at));
            memory.source.write_at(at, &bytes)?;
            at += bytes.len();
        }
        Ok(memory)
    }

    /// Where the pattern lies.
    pub fn source(&self) -> Global<u8> {
        self.source.address()
    }

    /// Where results go, [`Memory::largest`] bytes and a page.
    pub fn destination(&self) -> Global<u8> {
        self.destination.address().byte_add(GUARD as u64)
    }

    /// Makes the destination hold nothing that a transfer could have written.
    pub fn poison(&self) -> anyhow::Result<()> {
        Ok(self.destination.fill_bytes(POISON)?)
    }

    /// Fails unless `bytes` bytes at `at` of the destination are those at `from` of the source, and nothing around them was
    /// touched.
    pub fn expect_copy(&self, at: usize, from: usize, bytes: usize) -> anyhow::Result<()> {
        self.expect_at(at, bytes, |done, length| pattern(from + done, length))?;
        self.expect_poison(at, bytes)
    }

    /// Fails unless the destination holds the first `bytes` bytes of the source at `at`, and nothing behind was touched.
    pub fn expect_payload(&self, at: usize, bytes: usize) -> anyhow::Result<()> {
        self.expect_at(at, bytes, pattern)?;
        self.expect_poison_at(GUARD + at + bytes)
    }

    /// Fails unless the destination holds the first `payload` bytes of the source as packets of `flag`. The two formats are
    /// the same in memory: 4 bytes of payload, then the flag.
    pub fn expect_packets(&self, payload: usize, flag: Flag) -> anyhow::Result<()> {
        self.expect_at(0, 2 * payload, |done, length| {
            let mut packets = Vec::with_capacity(length);
            for data in pattern(done / 2, length / 2).chunks_exact(4) {
                packets.extend_from_slice(data);
                packets.extend_from_slice(&flag.get().to_le_bytes());
            }
            packets
        })?;
        self.expect_poison(0, 2 * payload)
    }

    fn expect_at(
        &self,
        at: usize,
        bytes: usize,
        expected: impl Fn(usize, usize) -> Vec<u8>,
    ) -> anyhow::Result<()> {
        let mut seen = vec![0; CHUNK.min(bytes)];
        let mut done = 0;
        while done < bytes {
            let length = CHUNK.min(bytes - done);
            self.destination.read_at(GUARD + at + done, &mut seen[..length])?;
            let expected = expected(done, length);
            if seen[..length] != expected[..] {
                let wrong =
                    seen.iter().zip(&expected).position(|(seen, expected)| seen != expected).unwrap_or(0);
                bail!("byte {} of {bytes} arrived as {}, not {}", done + wrong, seen[wrong], expected[wrong]);
            }
            done += length;
        }
        Ok(())
    }

    fn expect_poison(&self, at: usize, bytes: usize) -> anyhow::Result<()> {
        self.expect_poison_at(at)?;
        self.expect_poison_at(GUARD + at + bytes)
    }

    /// Fails unless the guard at `at` of the buffer is untouched.
    fn expect_poison_at(&self, at: usize) -> anyhow::Result<()> {
        let mut guard = [0; GUARD];
        self.destination.read_at(at, &mut guard)?;
        ensure!(guard == [POISON; GUARD], "bytes around the destination were overwritten");
        Ok(())
    }
}

/// `length` bytes of the pattern from byte `at` on.
fn pattern(at: usize, length: usize) -> Vec<u8> {
    let words = (at / 8) as u64..(at + length).div_ceil(8) as u64;
    let mut bytes: Vec<u8> = Vec::with_capacity(length + 16);
    for word in words {
        // The finalizer of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
        let mut z = word.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bytes.extend_from_slice(&(z ^ z >> 27).to_le_bytes());
    }
    bytes.drain(..at % 8);
    bytes.truncate(length);
    bytes
}

#[cfg(test)]
mod tests {
    use warpwire::device::DeviceSelector;

    use super::*;

    #[test]
    fn the_pattern_can_be_cut_anywhere() {
        let whole = pattern(0, 100);
        for (at, length) in [(0, 0), (1, 7), (3, 60), (8, 8), (99, 1)] {
            assert_eq!(pattern(at, length), whole[at..at + length], "{at}, {length}");
        }
    }

    #[test]
    fn a_wrong_byte_and_a_touched_neighbour_are_found() {
        let device = Device::open(DeviceSelector::Cpu).unwrap();
        let memory = Memory::new(&device, LEAST).unwrap();
        memory.poison().unwrap();
        assert!(memory.expect_copy(0, 0, 1000).is_err());
        memory.destination.write_at(GUARD + 4, &pattern(1, 1000)).unwrap();
        memory.expect_copy(4, 1, 1000).unwrap();
        assert!(memory.expect_copy(4, 1, 999).is_err(), "one byte too many was written");
        memory.destination.write_at(GUARD + 500, &[0x5A]).unwrap();
        assert!(memory.expect_copy(4, 1, 1000).unwrap_err().to_string().contains("byte 496"));
    }

    #[test]
    fn packets_are_payload_and_flag_by_turns() {
        let device = Device::open(DeviceSelector::Cpu).unwrap();
        let memory = Memory::new(&device, LEAST).unwrap();
        memory.poison().unwrap();
        let data = pattern(0, 8);
        let packets = [&data[..4], &[7, 0, 0, 0], &data[4..], &[7, 0, 0, 0]].concat();
        memory.destination.write_at(GUARD, &packets).unwrap();
        memory.expect_packets(8, Flag::from_counter(7)).unwrap();
        assert!(memory.expect_packets(8, Flag::from_counter(8)).is_err());
    }
}
