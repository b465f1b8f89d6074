//! Vectors of elements in registers.

use core::fmt;

use super::convert::{Float, convert_quad};
use super::number::Number;
use super::words::{self, Words};
use crate::abi::Global;

/// A type that there are vectors of `N` of: 1, 2, 4, 8 or 16, of every [`Number`].
pub trait Lanes<const N: usize>: Number {
    /// The words of such a vector.
    type Words: Words;
}

/// `N` elements in 32-bit words, the first in the lowest bits; what a vector of less than 4 bytes leaves of its word is 0.
pub struct Vector<T: Lanes<N>, const N: usize> {
    words: T::Words,
}

impl<T: Lanes<N>, const N: usize> Vector<T, N> {
    /// Every bit 0: the number 0 of each type.
    pub const ZERO: Self = Self { words: T::Words::ZERO };

    /// Bytes of the vector in memory, and of the alignment that its accesses need, up to 16.
    pub const BYTES: usize = N * size_of::<T>();

    /// Takes words; what a vector of less than 4 bytes leaves of its word has to be 0.
    #[inline(always)]
    #[must_use]
    pub const fn from_words(words: T::Words) -> Self {
        Self { words }
    }

    /// The words.
    #[inline(always)]
    #[must_use]
    pub const fn words(self) -> T::Words {
        self.words
    }

    /// These elements.
    #[inline(always)]
    #[must_use]
    pub fn from_elements(elements: [T; N]) -> Self {
        let mut words = T::Words::ZERO;
        for i in 0..N {
            let (k, shift) = Self::place(i);
            words.set(k, words.get(k) | elements[i].to_word() << shift);
        }
        Self { words }
    }

    /// The elements.
    #[inline(always)]
    #[must_use]
    pub fn to_elements(self) -> [T; N] {
        core::array::from_fn(|i| {
            let (k, shift) = Self::place(i);
            T::from_word(self.words.get(k) >> shift)
        })
    }

    /// The word in which element `i` lies, and how far up.
    #[inline(always)]
    const fn place(i: usize) -> (usize, u32) {
        let in_a_word = 4 / size_of::<T>();
        (i / in_a_word, (i % in_a_word * size_of::<T>() * 8) as u32)
    }

    /// The element-wise sum, rounded to `T` (integers wrap).
    #[inline(always)]
    #[must_use]
    pub fn sum(self, other: Self) -> Self {
        self.zip(other, T::sum)
    }

    /// The element-wise minimum.
    #[inline(always)]
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        self.zip(other, T::min)
    }

    /// The element-wise maximum.
    #[inline(always)]
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.zip(other, T::max)
    }

    /// `f` of each word and the other's.
    #[inline(always)]
    #[must_use]
    pub fn zip(self, other: Self, f: impl Fn(u32, u32) -> u32) -> Self {
        Self { words: self.words.zip(other.words, f) }
    }

    /// The same numbers as `U`; see the [module](super) for how they round.
    #[inline(always)]
    #[must_use]
    pub fn convert<U: Lanes<N> + Float>(self) -> Vector<U, N>
    where
        T: Float,
    {
        let mut words = U::Words::ZERO;
        // Spelled out: see `Words::zip`.
        macro_rules! quads {
            ($($part:literal)*) => { $(
                if 4 * $part < N {
                    convert_quad::<T, U>(T::Quad::part_of(self.words, $part)).put_into(&mut words, $part);
                }
            )* };
        }
        quads!(0 1 2 3);
        Vector { words }
    }

    /// Whether a vector may be loaded from there, or stored.
    #[inline(always)]
    #[must_use]
    pub const fn is_aligned(at: Global<T>) -> bool {
        at.address().is_multiple_of(if Self::BYTES < 16 { Self::BYTES as u64 } else { 16 })
    }

    /// Weak loads of [`Vector::BYTES`] bytes: one, or one for each 16 bytes. Called by a thread.
    ///
    /// # Safety
    ///
    /// `at` is aligned to [`Vector::BYTES`], or to 16 where that is less; mapped and live; its writers are ordered before.
    #[inline(always)]
    pub unsafe fn load(at: Global<T>) -> Self {
        // SAFETY: the caller's contract.
        Self { words: unsafe { words::load(at.cast(), Self::BYTES) } }
    }

    /// Weak stores, as [`Vector::load`]. Called by a thread.
    ///
    /// # Safety
    ///
    /// `at` is aligned to [`Vector::BYTES`], or to 16 where that is less; mapped and live; nobody else touches it before the
    /// release that publishes it.
    #[inline(always)]
    pub unsafe fn store(self, at: Global<T>) {
        // SAFETY: the caller's contract.
        unsafe { words::store(at.cast(), Self::BYTES, self.words) }
    }

    /// As [`Vector::load`], for data that streams through once. Called by a thread.
    ///
    /// # Safety
    ///
    /// As for [`Vector::load`].
    #[inline(always)]
    pub unsafe fn load_streaming(at: Global<T>) -> Self {
        // SAFETY: the caller's contract.
        Self { words: unsafe { words::load_streaming(at.cast(), Self::BYTES) } }
    }

    /// As [`Vector::store`], for data that streams through once. Called by a thread.
    ///
    /// # Safety
    ///
    /// As for [`Vector::store`].
    #[inline(always)]
    pub unsafe fn store_streaming(self, at: Global<T>) {
        // SAFETY: the caller's contract.
        unsafe { words::store_streaming(at.cast(), Self::BYTES, self.words) }
    }
}

impl<T: Lanes<N>, const N: usize> Clone for Vector<T, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Lanes<N>, const N: usize> Copy for Vector<T, N> {}

/// Equality of the bits.
impl<T: Lanes<N>, const N: usize> PartialEq for Vector<T, N> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl<T: Lanes<N>, const N: usize> fmt::Debug for Vector<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.to_elements()).finish()
    }
}
