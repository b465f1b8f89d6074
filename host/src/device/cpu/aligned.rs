//! Heap memory for argument blocks and shared memory.

use std::ptr::{self, NonNull};

/// Bytes of the host's heap, zeroed and aligned for any argument block and for shared memory.
#[derive(Debug)]
pub(super) struct Aligned {
    chunks: Vec<Chunk>,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
struct Chunk([u8; 128]);

impl Aligned {
    pub(super) const ALIGNMENT: usize = align_of::<Chunk>();

    pub(super) fn zeroed(bytes: usize) -> Self {
        Self { chunks: vec![Chunk([0; 128]); bytes.div_ceil(size_of::<Chunk>())] }
    }

    pub(super) fn copy_of(bytes: &[u8]) -> Self {
        let mut copy = Self::zeroed(bytes.len());
        // SAFETY: `zeroed` made room for all of them, in a new allocation.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), copy.as_mut_ptr().as_ptr(), bytes.len()) };
        copy
    }

    pub(super) fn as_ptr(&self) -> *const u8 {
        self.chunks.as_ptr().cast()
    }

    /// Never null, and aligned also where there are no bytes.
    pub(super) fn as_mut_ptr(&mut self) -> NonNull<u8> {
        NonNull::from(self.chunks.as_mut_slice()).cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_bytes_are_aligned() {
        for bytes in [0, 1, 127, 128, 129, 1000] {
            assert!(Aligned::zeroed(bytes).as_mut_ptr().as_ptr().addr().is_multiple_of(Aligned::ALIGNMENT));
        }
        let copy = Aligned::copy_of(&[1, 2, 3]);
        // SAFETY: three bytes were copied there.
        assert_eq!(unsafe { std::slice::from_raw_parts(copy.as_ptr(), 3) }, [1, 2, 3]);
    }
}
