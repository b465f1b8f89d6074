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
use crate::spin::{self, Policy};

/// How a packet goes over the wire.
pub trait Wire: Packet {
    /// A packet as it is read: its 64-bit words.
    type Words: Copy;

    /// Stores payload and flag, by one access. Called by a thread.
    ///
    /// # Safety
    ///
    /// `at` is aligned, mapped to this device and live.
    unsafe fn write(at: Global<Self>, payload: Self::Payload, flag: Flag);

    /// Reads the packet, by one access. Called by a thread.
    ///
    /// # Safety
    ///
    /// As for [`Wire::write`].
    unsafe fn load(at: Global<Self>) -> Self::Words;

    /// As [`Wire::load`] unless `words` have the flag already, without a branch; else `words`, and no access. Called by a thread.
    ///
    /// # Safety
    ///
    /// Unless they have, as for [`Wire::write`].
    unsafe fn load_unless_ready(words: Self::Words, at: Global<Self>, flag: Flag) -> Self::Words;

    /// Words with this number for a flag, and no payload.
    fn blank(flag: u32) -> Self::Words;

    /// Whether every word has the flag.
    fn ready(words: Self::Words, flag: Flag) -> bool;

    /// The payload, of words that are ready.
    fn payload(words: Self::Words) -> Self::Payload;

    /// A flag of the words', another than `flag` where there is one.
    fn flag_seen(words: Self::Words, flag: Flag) -> u32;

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
const fn word(data: u32, flag: u32) -> u64 {
    data as u64 | (flag as u64) << 32
}

#[inline(always)]
const fn flag_of(word: u64) -> u32 {
    (word >> 32) as u32
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
        arch::keep_loop(); // a rare path
        // SAFETY: the caller's contract.
        value |= u64::from(unsafe { arch::load_weak_u8(src.add(i)) }) << (8 * i);
        i = arch::advance(i, 1);
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
        arch::keep_loop(); // a rare path
        // SAFETY: the caller's contract.
        unsafe { arch::store_weak_u8(dst.add(i), (value >> (8 * i)) as u8) };
        i = arch::advance(i, 1);
    }
}

impl Wire for Ll8 {
    type Words = u64;

    #[inline(always)]
    unsafe fn write(at: Global<Self>, payload: u32, flag: Flag) {
        // SAFETY: the caller's contract.
        unsafe { arch::store_volatile_u64(at.cast(), word(payload, flag.get())) }
    }

    #[inline(always)]
    unsafe fn load(at: Global<Self>) -> u64 {
        // SAFETY: the caller's contract.
        unsafe { arch::load_volatile_u64(at.cast()) }
    }

    #[inline(always)]
    unsafe fn load_unless_ready(word: u64, at: Global<Self>, flag: Flag) -> u64 {
        // SAFETY: the caller's contract.
        unsafe { arch::load_volatile_u64_if(!Self::ready(word, flag), at.cast(), word) }
    }

    #[inline(always)]
    fn blank(flag: u32) -> u64 {
        word(0, flag)
    }

    #[inline(always)]
    fn ready(word: u64, flag: Flag) -> bool {
        flag_of(word) == flag.get()
    }

    #[inline(always)]
    fn payload(word: u64) -> u32 {
        word as u32
    }

    #[inline(always)]
    fn flag_seen(word: u64, _: Flag) -> u32 {
        flag_of(word)
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
    type Words = [u64; 2];

    #[inline(always)]
    unsafe fn write(at: Global<Self>, payload: u64, flag: Flag) {
        let words = [word(payload as u32, flag.get()), word((payload >> 32) as u32, flag.get())];
        // SAFETY: the caller's contract.
        unsafe { arch::store_volatile_v2_u64(at.cast(), words) }
    }

    #[inline(always)]
    unsafe fn load(at: Global<Self>) -> [u64; 2] {
        // SAFETY: the caller's contract.
        unsafe { arch::load_volatile_v2_u64(at.cast()) }
    }

    #[inline(always)]
    unsafe fn load_unless_ready(words: [u64; 2], at: Global<Self>, flag: Flag) -> [u64; 2] {
        // SAFETY: the caller's contract.
        unsafe { arch::load_volatile_v2_u64_if(!Self::ready(words, flag), at.cast(), words) }
    }

    #[inline(always)]
    fn blank(flag: u32) -> [u64; 2] {
        [word(0, flag); 2]
    }

    #[inline(always)]
    fn ready([low, high]: [u64; 2], flag: Flag) -> bool {
        flag_of(low) == flag.get() && flag_of(high) == flag.get()
    }

    #[inline(always)]
    fn payload([low, high]: [u64; 2]) -> u64 {
        u64::from(low as u32) | high << 32
    }

    #[inline(always)]
    fn flag_seen([low, high]: [u64; 2], flag: Flag) -> u32 {
        if flag_of(low) == flag.get() { flag_of(high) } else { flag_of(low) }
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
    // SAFETY: the caller's contract.
    let load = || unsafe { P::load(at) };
    let missing = |words| (u64::from(flag.get()), u64::from(P::flag_seen(words, flag)));
    let ready = |words| P::ready(words, flag).then(|| P::payload(words));
    spin::wait::<1, _, _, _>(source.policy.patience(), source.site(), load, ready, missing)
}

/// Waits for `N` packets together. They are looked at at once, so the wait is as long as the last packet's. Called by a thread.
///
/// `there` says whether there is a `k`th packet; the payload of one that is not there is arbitrary. Each call of `places` gives a
/// function that names the places in their order, one a call; `place` names the `k`th again, with its source, for the report of
/// one that did not come. `look` gives a packet's words as they are now, from those of the look before and its place:
/// [`Wire::load`] where every packet is there, or [`Wire::load_unless_ready`], which leaves alone what is not there and what has
/// come already, so that no look at it stands in the way of the others, and takes more registers.
///
/// # Errors
///
/// [`WaitError`], with a report on the board that names a packet that did not come.
///
/// # Safety
///
/// Each packet that is there is aligned, mapped to this device and live.
#[inline(always)]
pub unsafe fn read_batch<'a, P: Wire, F: FnMut() -> Global<P>, const N: usize>(
    flag: Flag,
    there: impl Fn(u32) -> bool,
    places: impl Fn() -> F,
    place: impl Fn(u32) -> (Global<P>, Source<'a>),
    look: impl Fn(P::Words, Global<P>) -> P::Words,
) -> Result<[P::Payload; N], WaitError> {
    // The flag where there is none, another where there is one.
    let mut words: [P::Words; N] =
        core::array::from_fn(|k| P::blank(flag.get() ^ u32::from(there(k as u32))));
    loop {
        let mut looks_left = BATCH_LOOKS;
        while looks_left > 0 {
            arch::keep_loop();
            let mut next = places();
            let mut ready = true;
            for k in 0..N {
                words[k] = look(words[k], next());
            }
            for k in 0..N {
                ready &= P::ready(words[k], flag);
            }
            if ready {
                return Ok(words.map(P::payload));
            }
            looks_left = arch::count_down(looks_left);
            arch::pause();
        }
        // Long enough for the policy to be asked: wait for one after the other, so that a report names one that lacks.
        let mut k = 0;
        while k < N as u64 {
            arch::keep_loop();
            if there(k as u32) {
                let (at, source) = place(k as u32);
                // SAFETY: the caller's contract: a packet that is there.
                unsafe { read(at, flag, source) }?;
            }
            k = arch::advance(k, 1);
        }
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
    let (first, step) = (u64::from(group.rank()), u64::from(group.size()));
    let (mut to, mut from) = (dst.add(first), src.byte_add(first * P::PAYLOAD_BYTES));
    // Whole payloads from this thread's first on; below 1 there is none left for it.
    let mut left = whole as i64 - first as i64;
    // SAFETY: places from this thread's first on, `step` apart, of which `left` tells how many there are.
    unsafe {
        // In this order a short message comes to its one packet a thread by one comparison.
        if left > step as i64 {
            while left > 3 * step as i64 {
                (to, from) = pack::<P, 4>(to, from, step, flag);
                left -= 4 * step as i64;
            }
            if left > step as i64 {
                (to, from) = pack::<P, 2>(to, from, step, flag);
                left -= 2 * step as i64;
            }
        }
        if left > 0 {
            pack::<P, 1>(to, from, step, flag);
        }
    }
    let mut i = whole + first;
    while i < packets {
        let from = src.byte_add(i * P::PAYLOAD_BYTES);
        // SAFETY: packet `i`, below `packets`.
        unsafe { P::write(dst.add(i), P::gather(from, payload_of::<P>(i, bytes)), flag) };
        i = arch::advance(i, step);
    }
}

/// `N` packets, `step` apart: all loads, then all stores. Gives the places behind them.
///
/// # Safety
///
/// They lie inside both ranges; the payloads are aligned.
#[inline(always)]
unsafe fn pack<P: Wire, const N: usize>(
    to: Global<P>,
    from: Global<u8>,
    step: u64,
    flag: Flag,
) -> (Global<P>, Global<u8>)
where
    P::Payload: Element,
{
    let mut at = Steps::from(from, step * P::PAYLOAD_BYTES);
    // SAFETY: the caller's contract.
    let payloads: [P::Payload; N] =
        core::array::from_fn(|_| unsafe { P::Payload::load_weak(at.next_address()) });
    let behind = at.next_address();
    let mut at = Steps::from(to, step * size_of::<P>() as u64);
    for k in 0..N {
        // SAFETY: the caller's contract.
        unsafe { P::write(at.next_address(), payloads[k], flag) };
    }
    (at.next_address(), behind)
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
    let stride = step * size_of::<P>() as u64;
    while i + (IN_FLIGHT as u64 - 1) * step < whole {
        let from = src.add(i);
        let places = || {
            let mut at = Steps::from(from, stride);
            move || at.next_address()
        };
        let place = |k| (from.byte_add(u64::from(k) * stride), source);
        // SAFETY: packet `i + k * step`, below `whole`.
        let look = |_, at| unsafe { P::load(at) };
        // SAFETY: as above, each of them.
        let payloads: [P::Payload; IN_FLIGHT] = unsafe { read_batch(flag, |_| true, places, place, look) }?;
        let mut at = Steps::from(dst.byte_add(i * P::PAYLOAD_BYTES), step * P::PAYLOAD_BYTES);
        for k in 0..IN_FLIGHT {
            // SAFETY: as above; aligned, since there are whole payloads.
            unsafe { P::Payload::store_weak(at.next_address(), payloads[k]) };
        }
        i += IN_FLIGHT as u64 * step;
    }
    while i < packets {
        let to = dst.byte_add(i * P::PAYLOAD_BYTES);
        // SAFETY: packet `i`, below `packets`; aligned where it is below `whole`.
        unsafe {
            let payload = read(src.add(i), flag, source)?;
            if i < whole {
                P::Payload::store_weak(to.cast(), payload);
            } else {
                P::scatter(to, payload, payload_of::<P>(i, bytes));
            }
        }
        i = arch::advance(i, step);
    }
    Ok(())
}
