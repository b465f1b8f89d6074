//! Transfers longer than an adapter's longest message.

/// The pieces of `bytes` bytes: where each begins, and its length, at most `limit`, which is not 0.
pub(super) fn pieces(bytes: u64, limit: u32) -> impl Iterator<Item = (u64, u32)> {
    let limit = u64::from(limit);
    (0..bytes.div_ceil(limit)).map(move |index| {
        let offset = index * limit;
        // At most `limit`, which is 32 bits.
        (offset, (bytes - offset).min(limit) as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_whole_once() {
        assert_eq!(pieces(0, 8).next(), None);
        assert_eq!(pieces(8, 8).collect::<Vec<_>>(), [(0, 8)]);
        assert_eq!(pieces(9, 8).collect::<Vec<_>>(), [(0, 8), (8, 1)]);
        // Beyond what 32 bits hold: 5 GiB and a byte, by messages of 2 GiB less a byte.
        let (bytes, limit) = ((5 << 30) + 1, (2u32 << 30) - 1);
        let mut end = 0;
        for (offset, length) in pieces(bytes, limit) {
            assert_eq!(offset, end);
            assert!(length > 0 && length <= limit);
            end += u64::from(length);
        }
        assert_eq!(end, bytes);
    }
}
