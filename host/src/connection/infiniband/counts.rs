//! What the words that a connection sets hold.
//!
//! A connection is the only writer of the words that it sets, so it knows their values: additions are made of the
//! difference, and low halves are told of those that the peer knows.

use crate::memory::{MemoryIdentity, RegisteredMemory};

/// Words known before those of memory that is gone are swept out.
const SWEEP: usize = 64;

/// The last value of each word.
#[derive(Debug, Default)]
pub(super) struct Counts {
    words: Vec<Word>,
    /// Index of the word that was set last.
    last: usize,
}

#[derive(Debug)]
struct Word {
    memory: MemoryIdentity,
    offset: u64,
    value: u64,
}

/// A word among those known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    index: usize,
    /// What it holds.
    pub(super) value: u64,
    /// Whether it is the one that was set last.
    pub(super) is_last: bool,
}

impl Counts {
    /// The word at `offset` of `memory`. One that was never set holds 0, as slots of semaphores do; memory that is registered
    /// anew is new.
    pub(super) fn find(&mut self, memory: &RegisteredMemory, offset: u64) -> Known {
        self.find_identity(memory.identity(), offset)
    }

    fn find_identity(&mut self, memory: MemoryIdentity, offset: u64) -> Known {
        let is = |word: &Word| word.offset == offset && word.memory.is(&memory);
        if let Some(index) = self.words.iter().position(is) {
            return Known { index, value: self.words[index].value, is_last: index == self.last };
        }
        if self.words.len() >= SWEEP {
            self.sweep();
        }
        let index = self.words.len();
        self.words.push(Word { memory, offset, value: 0 });
        Known { index, value: 0, is_last: false }
    }

    /// It was set.
    pub(super) fn set(&mut self, known: Known, value: u64) {
        if let Some(word) = self.words.get_mut(known.index) {
            word.value = value;
            self.last = known.index;
        }
    }

    /// Forgets words of memory that is gone; then no word counts as the last, which only costs naming it again.
    fn sweep(&mut self) {
        self.words.retain(|word| word.memory.is_live());
        self.last = usize::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, DeviceSelector};
    use crate::memory::Transports;

    fn memory(device: &Device) -> RegisteredMemory {
        RegisteredMemory::of(&device.allocate::<u64>(4).unwrap(), Transports::ETHERNET).unwrap()
    }

    #[test]
    fn each_word_has_its_own_value() {
        let device = Device::open(DeviceSelector::Cpu).unwrap();
        let (a, b) = (memory(&device), memory(&device));
        let mut counts = Counts::default();
        for (memory, offset, value) in [(&a, 0, 5), (&a, 8, 6), (&b, 0, 7)] {
            let known = counts.find(memory, offset);
            assert_eq!((known.value, known.is_last), (0, false));
            counts.set(known, value);
        }
        assert_eq!(counts.find(&a.clone(), 0).value, 5);
        assert!(!counts.find(&a, 0).is_last);
        let known = counts.find(&b, 0);
        assert_eq!((known.value, known.is_last), (7, true));
        // The same place registered anew is another word: its owner may have zeroed it.
        let again = RegisteredMemory::deserialize(&device, &b.serialize().unwrap()).unwrap();
        assert_eq!(counts.find(&again, 0).value, 0);
    }

    #[test]
    fn words_of_memory_that_is_gone_are_swept_out() {
        let device = Device::open(DeviceSelector::Cpu).unwrap();
        let kept = memory(&device);
        let mut counts = Counts::default();
        let known = counts.find(&kept, 8);
        counts.set(known, 9);
        for _ in 0..10 * SWEEP {
            let known = counts.find(&memory(&device), 0);
            counts.set(known, 1);
        }
        assert!(counts.words.len() <= SWEEP + 1, "{}", counts.words.len());
        assert_eq!(counts.find(&kept, 8).value, 9);
    }
}
