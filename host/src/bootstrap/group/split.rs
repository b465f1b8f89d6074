//! Which part of a group a rank goes to.

use sha2::{Digest, Sha256};
use warpwire_device::abi::Rank;

use super::super::Colour;
use super::members::leading_u64;

/// What a rank asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) colour: Option<Colour>,
    pub(super) key: i64,
}

const BYTES: usize = 13;

impl Wish {
    pub(super) fn pack(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0] = u8::from(self.colour.is_some());
        bytes[1..5].copy_from_slice(&self.colour.unwrap_or_default().0.to_le_bytes());
        bytes[5..].copy_from_slice(&self.key.to_le_bytes());
        bytes
    }

    /// Nothing for bytes that are no wish.
    fn unpack(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let colour = u32::from_le_bytes(bytes[1..5].try_into().ok()?);
        let key = i64::from_le_bytes(bytes[5..].try_into().ok()?);
        Some(Self { colour: (bytes[0] != 0).then_some(Colour(colour)), key })
    }
}

/// A part of a group.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) colour: Colour,
    /// Its ranks by their number in the whole group, in the order of the part.
    pub(super) ranks: Vec<Rank>,
    /// The place of the rank that asked.
    pub(super) own: usize,
}

/// The part that `own` goes to, by everybody's packed wishes; none for a rank without a colour.
pub(super) fn part(wishes: &[Vec<u8>], own: Rank) -> Option<Part> {
    let wishes: Vec<Option<Wish>> = wishes.iter().map(|bytes| Wish::unpack(bytes)).collect();
    let colour = wishes.get(own.0 as usize).copied()??.colour?;
    let mut chosen: Vec<(i64, Rank)> = (0..)
        .zip(&wishes)
        .filter_map(|(rank, wish)| {
            wish.filter(|wish| wish.colour == Some(colour)).map(|wish| (wish.key, Rank(rank)))
        })
        .collect();
    // Ordering by the rank too leaves nothing to the sort's stability.
    chosen.sort_unstable();
    let ranks: Vec<Rank> = chosen.into_iter().map(|(_, rank)| rank).collect();
    let own = ranks.iter().position(|rank| *rank == own)?;
    Some(Part { colour, ranks, own })
}

/// The context of a part's messages: another for every split and colour, the same on all its ranks.
pub(super) fn context(parent: u64, splits: u64, colour: Colour) -> u64 {
    let mut hash = Sha256::new();
    hash.update(b"warpwire split\0");
    hash.update(parent.to_le_bytes());
    hash.update(splits.to_le_bytes());
    hash.update(colour.0.to_le_bytes());
    leading_u64(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(wishes: &[(Option<u32>, i64)]) -> Vec<Option<Part>> {
        let packed: Vec<Vec<u8>> = wishes
            .iter()
            .map(|(colour, key)| Wish { colour: colour.map(Colour), key: *key }.pack().to_vec())
            .collect();
        (0..wishes.len() as u32).map(|rank| part(&packed, Rank(rank))).collect()
    }

    #[test]
    fn equal_keys_keep_the_order() {
        for size in [1, 16, 17, 32, 64] {
            let parts = split(&vec![(Some(3), 0); size]);
            for (rank, part) in parts.iter().enumerate() {
                assert_eq!(part.as_ref().unwrap().own, rank, "of {size}");
            }
        }
    }

    #[test]
    fn keys_order() {
        let wishes: Vec<_> = (0..32).map(|rank| (Some(0), 31 - rank)).collect();
        for (rank, part) in split(&wishes).into_iter().enumerate() {
            let part = part.unwrap();
            assert_eq!(part.own, 31 - rank);
            assert_eq!(part.ranks[part.own], Rank(rank as u32));
        }
    }

    #[test]
    fn without_a_colour_there_is_no_part() {
        let parts = split(&[(Some(1), 0), (None, 0), (Some(1), -5), (Some(2), 0)]);
        assert_eq!(parts[1], None);
        assert_eq!(parts[0].as_ref().unwrap().ranks, [Rank(2), Rank(0)]);
        assert_eq!(parts[3].as_ref().unwrap().ranks, [Rank(3)]);
    }

    #[test]
    fn wishes_are_packed_as_ever() {
        let wish = Wish { colour: Some(Colour(0x0102)), key: -2 };
        let bytes = [1, 2, 1, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(wish.pack(), bytes);
        assert_eq!(Wish::unpack(&bytes), Some(wish));
        assert_eq!(Wish::unpack(&bytes[1..]), None);
    }

    #[test]
    fn contexts_differ() {
        let contexts = [
            context(0, 1, Colour(0)),
            context(0, 2, Colour(0)),
            context(0, 1, Colour(1)),
            context(9, 1, Colour(0)),
        ];
        assert!((0..4).all(|i| (0..i).all(|j| contexts[i] != contexts[j])));
    }
}
