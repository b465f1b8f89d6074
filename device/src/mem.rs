//! Words that both sides of a protocol touch.

use crate::abi::{Global, Pod};
use crate::arch::{self, FenceOrder, LoadOrder, RmwOrder, Scope, StoreOrder};

/// A word of memory that several threads, devices or the host touch at once. The protocols are written over this trait,
/// so that a model checker can stand in for the memory.
///
/// Each method is one access by the calling thread, of the order and scope named.
pub trait Word: Copy {
    /// What the word holds.
    type Value: Copy;

    /// Reads it.
    fn load<O: LoadOrder, S: Scope>(self) -> Self::Value;
    /// Writes it.
    fn store<O: StoreOrder, S: Scope>(self, value: Self::Value);
    /// Adds to it, without looking at it: on a GPU the thread does not wait.
    fn add<O: StoreOrder, S: Scope>(self, value: Self::Value);
    /// Adds to it and gives the value before.
    fn fetch_add<O: RmwOrder, S: Scope>(self, value: Self::Value) -> Self::Value;
    /// Orders the calling thread's accesses before, of every word, with those after.
    fn fence<O: FenceOrder, S: Scope>();
    /// [`Word::fetch_add`] and then [`Word::fence`]; on a GPU both are under way together.
    #[inline(always)]
    fn fetch_add_fence<O: RmwOrder, S: Scope, F: FenceOrder, FS: Scope>(
        self,
        value: Self::Value,
    ) -> Self::Value {
        let before = self.fetch_add::<O, S>(value);
        Self::fence::<F, FS>();
        before
    }
}

/// A global address that somebody has promised to be mapped and live, so that accesses to it are safe.
#[derive(Debug)]
pub struct Mapped<T>(Global<T>);

impl<T> Clone for Mapped<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Mapped<T> {}

impl<T> Mapped<T> {
    /// Takes `address` at the caller's word.
    ///
    /// # Safety
    ///
    /// As long as this value or a copy of it is used: `address` is aligned for `T`, mapped to the device that runs this
    /// code, live, and touched by others through ordered accesses only.
    #[inline(always)]
    pub const unsafe fn new(address: Global<T>) -> Self {
        Self(address)
    }

    /// The address.
    #[inline(always)]
    pub const fn address(self) -> Global<T> {
        self.0
    }
}

macro_rules! word {
    ($t:ty: $load:ident, $store:ident, $red_add:ident, $atom_add:ident$(, $atom_add_fence:ident)?) => {
        impl Word for Mapped<$t> {
            type Value = $t;

            #[inline(always)]
            fn load<O: LoadOrder, S: Scope>(self) -> $t {
                // SAFETY: `Mapped::new`'s contract.
                unsafe { arch::$load::<O, S>(self.0) }
            }

            #[inline(always)]
            fn store<O: StoreOrder, S: Scope>(self, value: $t) {
                // SAFETY: `Mapped::new`'s contract.
                unsafe { arch::$store::<O, S>(self.0, value) }
            }

            #[inline(always)]
            fn add<O: StoreOrder, S: Scope>(self, value: $t) {
                // SAFETY: `Mapped::new`'s contract.
                unsafe { arch::$red_add::<O, S>(self.0, value) }
            }

            #[inline(always)]
            fn fetch_add<O: RmwOrder, S: Scope>(self, value: $t) -> $t {
                // SAFETY: `Mapped::new`'s contract.
                unsafe { arch::$atom_add::<O, S>(self.0, value) }
            }

            #[inline(always)]
            fn fence<O: FenceOrder, S: Scope>() {
                arch::fence::<O, S>();
            }

            $(
                #[inline(always)]
                fn fetch_add_fence<O: RmwOrder, S: Scope, F: FenceOrder, FS: Scope>(self, value: $t) -> $t {
                    // SAFETY: `Mapped::new`'s contract.
                    unsafe { arch::$atom_add_fence::<O, S, F, FS>(self.0, value) }
                }
            )?
        }
    };
}

word!(u32: load_u32, store_u32, red_add_u32, atom_add_u32);
word!(u64: load_u64, store_u64, red_add_u64, atom_add_u64, atom_add_fence_u64);

/// Pairs of 64-bit words, one behind the other, that several threads, devices or the host touch at once.
///
/// Each method is one access of 16 bytes by the calling thread, of the order and scope named, to the pair with this number.
/// Each of its words is whole and has that order; the two may be seen one without the other, in either order.
pub trait Pairs: Copy {
    /// Reads a pair.
    fn load<O: LoadOrder, S: Scope>(self, index: u64) -> [u64; 2];
    /// Writes a pair.
    fn store<O: StoreOrder, S: Scope>(self, index: u64, value: [u64; 2]);
}

/// The pairs from this address on; [`Mapped::new`]'s promise is for all that are named.
impl Pairs for Mapped<[u64; 2]> {
    #[inline(always)]
    fn load<O: LoadOrder, S: Scope>(self, index: u64) -> [u64; 2] {
        // SAFETY: `Mapped::new`'s contract.
        unsafe { arch::load_v2_u64::<O, S>(self.0.add(index)) }
    }

    #[inline(always)]
    fn store<O: StoreOrder, S: Scope>(self, index: u64, value: [u64; 2]) {
        // SAFETY: `Mapped::new`'s contract.
        unsafe { arch::store_v2_u64::<O, S>(self.0.add(index), value) }
    }
}

/// A value that one weak access reads or writes.
pub trait Element: Pod {
    /// A weak load. Called by a thread.
    ///
    /// # Safety
    ///
    /// `at` is aligned, mapped and live, and its writers are ordered before this access.
    unsafe fn load_weak(at: Global<Self>) -> Self;

    /// A weak store. Called by a thread.
    ///
    /// # Safety
    ///
    /// `at` is aligned, mapped and live, and nobody else touches it before the release that publishes it.
    unsafe fn store_weak(at: Global<Self>, value: Self);
}

macro_rules! element {
    ($($t:ty: $load:ident, $store:ident;)*) => { $(
        impl Element for $t {
            #[inline(always)]
            unsafe fn load_weak(at: Global<Self>) -> Self {
                // SAFETY: the caller's contract.
                unsafe { arch::$load(at) }
            }

            #[inline(always)]
            unsafe fn store_weak(at: Global<Self>, value: Self) {
                // SAFETY: the caller's contract.
                unsafe { arch::$store(at, value) }
            }
        }
    )* };
}

element! {
    u8: load_weak_u8, store_weak_u8;
    u32: load_weak_u32, store_weak_u32;
    u64: load_weak_u64, store_weak_u64;
    [u64; 2]: load_weak_v2_u64, store_weak_v2_u64;
}

impl Element for f32 {
    #[inline(always)]
    unsafe fn load_weak(at: Global<Self>) -> Self {
        // SAFETY: the caller's contract.
        Self::from_bits(unsafe { arch::load_weak_u32(at.cast()) })
    }

    #[inline(always)]
    unsafe fn store_weak(at: Global<Self>, value: Self) {
        // SAFETY: the caller's contract.
        unsafe { arch::store_weak_u32(at.cast(), value.to_bits()) }
    }
}

/// Numbers at equal distances, taken one after the other in an unrolled loop.
///
/// Computed from an index instead, all of them would be hoisted out of the loops around and hold registers there: see
/// [`arch::advance`].
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    value: u64,
    step: u64,
}

impl Steps {
    /// `first`, and then every `bytes` bytes.
    #[inline(always)]
    pub const fn from<T>(first: Global<T>, bytes: u64) -> Self {
        Self { value: first.address(), step: bytes }
    }

    /// How many are left, `by` fewer each time: for [`Steps::next_is_left`].
    #[inline(always)]
    pub const fn left(left: i64, by: u32) -> Self {
        Self { value: left as u64, step: (by as u64).wrapping_neg() }
    }

    #[inline(always)]
    fn take(&mut self) -> u64 {
        let value = self.value;
        self.value = arch::advance(value, self.step);
        value
    }

    /// The next address.
    #[inline(always)]
    pub fn next_address<T>(&mut self) -> Global<T> {
        // SAFETY: a number of whole steps behind an address of a `T`; what lies there is the accesses' business.
        unsafe { Global::from_address(self.take()) }
    }

    /// Whether there is one more.
    #[inline(always)]
    pub fn next_is_left(&mut self) -> bool {
        self.take() as i64 > 0
    }
}
