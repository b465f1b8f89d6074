//! Payloads that differ everywhere, from a seed.

/// `len` bytes that a shift, a repetition or a swap would change.
#[must_use]
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let words = (0..len.div_ceil(8) as u64).map(|i| word(seed, i));
    let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    bytes.truncate(len);
    bytes
}

/// Word `index` of that sequence: SplitMix64, whose neighbouring outputs share nothing.
#[must_use]
pub const fn word(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
