//! Packets: data that carries its own flag, so that no signal follows it.
//!
//! A writer stores payload and flag by one access; a reader looks at the same word until the flag is this round's. The
//! flag of each 64-bit word vouches for that word alone (see [`crate::abi::Packet`]), so a reader checks every one.
//!
//! A round's flag must differ from whatever the slots hold: [`Flag::next`] of the last round's, from a counter in device
//! memory, never from a kernel argument, which a captured graph would freeze.

use crate::abi::{ChannelId, Flag, Global, Ll8, Ll16, Packet, Rank, WaitError, WaitKind, WaitSite};
use crate::arch;
use crate::coop::Group;
use crate::mem::{Element, Steps};
use crate::spin::{self, Look, Policy};

/// How a packet goes over the wire.
pub trait Wire: Packet {
    /// Stores payload and flag, by one access. Called by a thread.
    ///
    /// # Safety
    ///
    /// `at` is aligned, mapped to this device and live.
    unsafe fn write(at: Global<Self>, payload: Self::Payload, flag: Flag);

    /// Looks once: the payload where every word has the flag, else [`Look::Pending`] with a flag that is not it. Called by
    /// a thread.
    ///
    /// # Safety
    ///
    /// As for [`Wire::write`].
    unsafe fn look(at: Global<Self>, flag: Flag) -> Look<Self::Payload>;

    /// As [`Wire::look`] where `there`, without a branch; elsewhere [`Look::Ready`] with an arbitrary payload, and no access.
    /// Called by a thread.
    ///
    /// # Safety
    ///
    /// Where `there`, as for [`Wire::write`].
    unsafe fn look_if(there: bool, at: Global<Self>, flag: Flag) -> Look<Self::Payload>;

    /// `bytes` bytes at `src`, of any alignment, in a payload's low end; 0 above. `bytes` is at most
    /// [`Packet::PAYLOAD_BYTES`]. Called by a thread.
    ///
    /// # Safety
    ///
    /// The bytes are mapped and live, their writers ordered before this access.
    unsafe fn gather(src: Global<u8>, bytes: u64) -> Self::Payload;

    /// The reverse of [`Wire::gather`]. Called by a thread.
    ///
    /// # Safety
    ///
    /// The bytes are mapped and live, and nobody else touches them before they are published.
    unsafe fn scatter(dst: Global<u8>, payload: Self::Payload, bytes: u64);
}

#[inline(always)]
const fn word(data: u32, flag: Flag) -> u64 {
    data as u64 | (flag.get() as u64) << 32
}

#[inline(always)]
fn unpack_word(word: u64, flag: Flag) -> Look<u32> {
    let seen = (word >> 32) as u32;
    if seen == flag.get() { Look::Ready(word as u32) } else { Look::Pending(u64::from(seen)) }
}

#[inline(always)]
fn unpack_words([low, high]: [u64; 2], flag: Flag) -> Look<u64> {
    match (unpack_word(low, flag), unpack_word(high, flag)) {
        (Look::Ready(low), Look::Ready(high)) => Look::Ready(u64::from(low) | u64::from(high) << 32),
        (Look::Pending(seen), _) | (_, Look::Pending(seen)) => Look::Pending(seen),
    }
}

/// The low `bytes` bytes at `src`, one by one.
///
/// # Safety
///
/// As for [`Wire::gather`].
#[inline(always)]
unsafe fn gather_bytes(src: Global<u8>, bytes: u64) -> u64 {
    let mut value = 0;
    let mut i = 0;
    while i < bytes {
        // SAFETY: the caller's contract.
        value |= u64::from(unsafe { arch::load_weak_u8(src.add(i)) }) << (8 * i);
        i = arch::advance(i, 1); // a rare path: not unrolled
    }
    value
}

/// The reverse.
///
/// # Safety
///
/// As for [`Wire::scatter`].
#[inline(always)]
unsafe fn scatter_bytes(dst: Global<u8>, value: u64, bytes: u64) {
    let mut i = 0;
    while i < bytes {
        // SAFETY: the caller's contract.
        unsafe { arch::store_weak_u8(dst.add(i), (value >> (8 * i)) as u8) };
        i = arch::advance(i, 1); // a rare path: not unrolled
    }
}

impl Wire for Ll8 {
    #[inline(always)]
    unsafe fn write(at: Global<Self>, payload: u32, flag: Flag) {
        // SAFETY: the caller's contract.
        unsafe { arch::store_volatile_u64(at.cast(), word(payload, flag)) }
    }

    #[inline(always)]
    unsafe fn look(at: Global<Self>, flag: Flag) -> Look<u32> {
        // SAFETY: the caller's contract.
        unpack_word(unsafe { arch::load_volatile_u64(at.cast()) }, flag)
    }

    #[inline(always)]
    unsafe fn look_if(there: bool, at: Global<Self>, flag: Flag) -> Look<u32> {
        // SAFETY: the caller's contract.
        unpack_word(unsafe { arch::load_volatile_u64_if(there, at.cast(), word(0, flag)) }, flag)
    }

    #[inline(always)]
    unsafe fn gather(src: Global<u8>, bytes: u64) -> u32 {
        // SAFETY: the caller's contract.
        (unsafe { gather_bytes(src, bytes) }) as u32
    }

    #[inline(always)]
    unsafe fn scatter(dst: Global<u8>, payload: u32, bytes: u64) {
        // SAFETY: the caller's contract.
        unsafe { scatter_bytes(dst, u64::from(payload), bytes) }
    }
}

impl Wire for Ll16 {
    #[inline(always)]
    unsafe fn write(at: Global<Self>, payload: u64, flag: Flag) {
        let words = [word(payload as u32, flag), word((payload >> 32) as u32, flag)];
        // SAFETY: the caller's contract.
        unsafe { arch::store_volatile_v2_u64(at.cast(), words) }
    }

    #[inline(always)]
    unsafe fn look(at: Global<Self>, flag: Flag) -> Look<u64> {
        // SAFETY: the caller's contract.
        unpack_words(unsafe { arch::load_volatile_v2_u64(at.cast()) }, flag)
    }

    #[inline(always)]
    unsafe fn look_if(there: bool, at: Global<Self>, flag: Flag) -> Look<u64> {
        // SAFETY: the caller's contract.
        unpack_words(unsafe { arch::load_volatile_v2_u64_if(there, at.cast(), [word(0, flag); 2]) }, flag)
    }

    #[inline(always)]
    unsafe fn gather(src: Global<u8>, bytes: u64) -> u64 {
        // SAFETY: the caller's contract.
        unsafe { gather_bytes(src, bytes) }
    }

    #[inline(always)]
    unsafe fn scatter(dst: Global<u8>, payload: u64, bytes: u64) {
        // SAFETY: the caller's contract.
        unsafe { scatter_bytes(dst, payload, bytes) }
    }
}

/// Where packets come from, and how long to wait for them.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The launch's policy.
    pub policy: &'a Policy,
    /// Who sends.
    pub peer: Rank,
    /// Over which channel.
    pub channel: ChannelId,
}

impl Source<'_> {
    #[inline(always)]
    const fn site(&self) -> WaitSite {
        WaitSite { kind: WaitKind::Packet, peer: self.peer, channel: self.channel }
    }
}

/// Waits for one packet. Called by a thread.
///
/// # Errors
///
/// [`WaitError`], with a report on the board.
///
/// # Safety
///
/// `at` is aligned, mapped to this device and live.
#[inline(always)]
pub unsafe fn read<P: Wire>(at: Global<P>, flag: Flag, source: Source<'_>) -> Result<P::Payload, WaitError> {
    spin::wait(source.policy.patience(), source.site(), u64::from(flag.get()), || {
        // SAFETY: the caller's contract.
        unsafe { P::look(at, flag) }
    })
}

/// Packets at equal distances that a thread waits for together.
#[derive(Clone, Copy, Debug)]
pub struct Batch<P> {
    /// The first packet.
    pub first: Global<P>,
    /// Bytes from one to the next.
    pub stride: u64,
    /// How many are left from the first on, counted in steps of `left_step`: packet `k` is there where
    /// `left > k * left_step`.
    pub left: i64,
    /// See there.
    pub left_step: u32,
}

/// Waits for the first `N` packets of a batch; the payload of one that is not there is arbitrary, and nothing is read. All are
/// looked at at once, so the wait is as long as the last packet's. Called by a thread. `source` says whose packet `k` is.
///
/// # Errors
///
/// [`WaitError`], with a report on the board that names a packet that did not come.
///
/// # Safety
///
/// Each packet that is there is aligned, mapped to this device and live.
#[inline(always)]
pub unsafe fn read_batch<'a, P: Wire, const N: usize>(
    flag: Flag,
    batch: Batch<P>,
    source: impl Fn(usize) -> Source<'a>,
) -> Result<[P::Payload; N], WaitError> {
    let mut looks_left = BATCH_LOOKS;
    loop {
        let mut at = Steps::from(batch.first, batch.stride);
        let mut there = Steps::left(batch.left, batch.left_step);
        // SAFETY: the caller's contract.
        let looks: [Look<P::Payload>; N] =
            core::array::from_fn(|_| unsafe { P::look_if(there.next_is_left(), at.next_address(), flag) });
        let mut missing = N;
        for k in 0..N {
            if matches!(looks[k], Look::Pending(_)) {
                missing = k;
            }
        }
        if missing == N {
            // The default is never taken: all are ready.
            return Ok(core::array::from_fn(|k| {
                if let Look::Ready(payload) = looks[k] { payload } else { Default::default() }
            }));
        }
        looks_left -= 1;
        if looks_left == 0 {
            // Long enough for the policy to be asked: wait for one that lacks, so that a report names it.
            // SAFETY: the caller's contract: a packet that is not ready is there.
            unsafe { read(batch.first.byte_add(missing as u64 * batch.stride), flag, source(missing)) }?;
            looks_left = BATCH_LOOKS;
        }
        arch::pause();
    }
}

/// Looks at a batch before its packets are waited for one by one.
const BATCH_LOOKS: u32 = 256;

/// How many packets carry `bytes` bytes.
#[inline(always)]
#[must_use]
pub const fn packets_for<P: Packet>(bytes: u64) -> u64 {
    bytes.div_ceil(P::PAYLOAD_BYTES)
}

/// Accesses that a thread has in flight at once.
const IN_FLIGHT: usize = 4;

/// Writes `bytes` bytes at `src` as packets at `dst`. Called by a group; `bytes` may be any number, 0 among them, and `src`
/// of any alignment. The last packet's spare bytes are 0.
///
/// # Safety
///
/// `dst` is aligned and has room for [`packets_for`] packets, `src` holds `bytes` bytes; both are mapped and live. The
/// bytes' writers are ordered before this call in each thread.
#[inline(always)]
pub unsafe fn copy_to_packets<P: Wire, G: Group>(
    group: G,
    dst: Global<P>,
    src: Global<u8>,
    bytes: u64,
    flag: Flag,
) where
    P::Payload: Element,
{
    // Whole payloads that one access loads; the rest, or all of a misaligned source, goes byte by byte.
    let whole = if src.address().is_multiple_of(P::PAYLOAD_BYTES) { bytes / P::PAYLOAD_BYTES } else { 0 };
    let packets = packets_for::<P>(bytes);
    let step = u64::from(group.size());
    let mut i = u64::from(group.rank());
    while i + (IN_FLIGHT as u64 - 1) * step < whole {
        let (from, to) = (src.byte_add(i * P::PAYLOAD_BYTES), dst.add(i));
        let at = |k: usize| k as u64 * step;
        // SAFETY: packet `i + k * step`, below `whole`.
        let payloads: [P::Payload; IN_FLIGHT] = core::array::from_fn(|k| unsafe {
            P::Payload::load_weak(from.byte_add(at(k) * P::PAYLOAD_BYTES).cast())
        });
        for k in 0..IN_FLIGHT {
            // SAFETY: as above.
            unsafe { P::write(to.add(at(k)), payloads[k], flag) };
        }
        i += IN_FLIGHT as u64 * step;
    }
    while i < packets {
        let from = src.byte_add(i * P::PAYLOAD_BYTES);
        // SAFETY: packet `i`, below `packets`; aligned where it is below `whole`.
        unsafe {
            let payload = if i < whole {
                P::Payload::load_weak(from.cast())
            } else {
                P::gather(from, payload_of::<P>(i, bytes))
            };
            P::write(dst.add(i), payload, flag);
        }
        i = arch::advance(i, step);
    }
}

/// Bytes that packet `i` of `bytes` bytes carries.
#[inline(always)]
fn payload_of<P: Packet>(i: u64, bytes: u64) -> u64 {
    (bytes - i * P::PAYLOAD_BYTES).min(P::PAYLOAD_BYTES)
}

/// Waits for the packets at `src` and writes their `bytes` bytes to `dst`, of any alignment. Called by a group; returns when
/// the calling thread's share is done.
///
/// # Errors
///
/// [`WaitError`] in the threads whose packets did not come, with a report on the board.
///
/// # Safety
///
/// `src` is aligned and has [`packets_for`] packets, `dst` room for `bytes` bytes; both are mapped and live.
#[inline(always)]
pub unsafe fn copy_from_packets<P: Wire, G: Group>(
    group: G,
    dst: Global<u8>,
    src: Global<P>,
    bytes: u64,
    flag: Flag,
    source: Source<'_>,
) -> Result<(), WaitError>
where
    P::Payload: Element,
{
    let whole = if dst.address().is_multiple_of(P::PAYLOAD_BYTES) { bytes / P::PAYLOAD_BYTES } else { 0 };
    let packets = packets_for::<P>(bytes);
    let step = u64::from(group.size());
    let mut i = u64::from(group.rank());
    while i < whole {
        let batch = Batch {
            first: src.add(i),
            stride: step * size_of::<P>() as u64,
            left: (whole - i) as i64,
            left_step: group.size(),
        };
        // SAFETY: packet `i + k * step` is there where it is below `whole`.
        let payloads: [P::Payload; IN_FLIGHT] = unsafe { read_batch(flag, batch, |_| source) }?;
        let mut at = Steps::from(dst.byte_add(i * P::PAYLOAD_BYTES), step * P::PAYLOAD_BYTES);
        let mut there = Steps::left(batch.left, batch.left_step);
        for k in 0..IN_FLIGHT {
            let to = at.next_address();
            if there.next_is_left() {
                // SAFETY: as above; aligned, since there are whole payloads.
                unsafe { P::Payload::store_weak(to, payloads[k]) };
            }
        }
        i += IN_FLIGHT as u64 * step;
    }
    // What no one access stores: the last packet's few bytes, or all of a misaligned destination.
    let mut i = whole + u64::from(group.rank());
    while i < packets {
        // SAFETY: packet `i`, below `packets`.
        unsafe {
            let payload = read(src.add(i), flag, source)?;
            P::scatter(dst.byte_add(i * P::PAYLOAD_BYTES), payload, payload_of::<P>(i, bytes));
        }
        i = arch::advance(i, step);
    }
    Ok(())
}
