//! Words of 64 bits that are told by 32.

/// What the sender tells of a word: its next value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The low half is enough: the receiver knows the word, and its value before.
    Low(u32),
    /// The word has to be named first, and the value that it has before.
    Named { before: u64, low: u32 },
}

/// How to tell a value, where the receiver knows the word with value `known`, or does not know it.
///
/// A value is told by its low half where it is less than 2^32 ahead: then there is one that fits. Any other is told in full,
/// as a value that the word already has.
pub(super) fn tell(known: Option<u64>, value: u64) -> Told {
    let low = value as u32;
    match known {
        Some(known) if value.wrapping_sub(known) <= u64::from(u32::MAX) && value >= known => Told::Low(low),
        _ => Told::Named { before: value, low },
    }
}

/// The value that was told: the first from `known` on whose low half is `low`.
pub(super) fn rebuild(known: u64, low: u32) -> u64 {
    known.wrapping_add(u64::from(low.wrapping_sub(known as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a receiver that knows `known` makes of what it is told.
    fn through(known: Option<u64>, value: u64) -> u64 {
        match tell(known, value) {
            Told::Low(low) => rebuild(known.expect("it knows the word"), low),
            Told::Named { before, low } => rebuild(before, low),
        }
    }

    #[test]
    fn every_value_arrives_whole() {
        const EDGE: u64 = 1 << 32;
        let edges =
            [0, 1, 5, EDGE - 2, EDGE - 1, EDGE, EDGE + 1, 7 * EDGE - 1, 7 * EDGE, u64::MAX - 1, u64::MAX];
        for known in edges {
            for value in edges {
                assert_eq!(through(Some(known), value), value, "{known:#x} to {value:#x}");
            }
            assert_eq!(through(None, known), known);
        }
    }

    #[test]
    fn counting_needs_the_low_half_alone_also_across_the_wrap() {
        let mut known = (1u64 << 32) - 3;
        for step in [1u64, 1, 1, 1, 5, u64::from(u32::MAX)] {
            let value = known + step;
            assert_eq!(tell(Some(known), value), Told::Low(value as u32));
            known = rebuild(known, value as u32);
            assert_eq!(known, value);
        }
        assert!(matches!(tell(Some(known), known + (1 << 32)), Told::Named { .. }));
        assert!(matches!(tell(Some(known), known - 1), Told::Named { .. }));
    }
}
