//! Which of a port's GIDs its queue pairs speak from.
//!
//! A RoCE port has a table of them, one for each address of its network interface and each version of the protocol, which
//! changes when addresses come and go. So the table is read when a queue pair is connected, and never remembered.

use std::net::Ipv6Addr;

use crate::error::VerbsError;

/// A port's address, 16 bytes as on the wire.
pub(crate) type Gid = [u8; 16];

/// What a row of the table is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GidKind {
    /// InfiniBand.
    InfiniBand,
    /// RoCE version 1: frames of Ethernet's own, which no router forwards.
    RoceV1,
    /// RoCE version 2: UDP.
    RoceV2,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GidRow {
    /// Its index.
    pub(crate) index: u32,
    /// The address; all zero in an empty row.
    pub(crate) gid: Gid,
    /// What it is for; `None` where that could not be read.
    pub(crate) kind: Option<GidKind>,
}

impl GidRow {
    fn usable(&self) -> Result<GidKind, &'static str> {
        if self.gid == [0; 16] {
            return Err("its row is empty");
        }
        self.kind.ok_or("what it is for cannot be read")
    }

    /// How much one would rather have it; less is better.
    fn rank(&self, kind: GidKind) -> u32 {
        let address = Ipv6Addr::from(self.gid);
        match kind {
            // A private address is as good as any: clusters have hardly others.
            GidKind::RoceV2 if address.to_ipv4_mapped().is_some() => 0,
            GidKind::RoceV2 if !address.is_unicast_link_local() => 1,
            GidKind::RoceV2 => 2,
            GidKind::InfiniBand | GidKind::RoceV1 => 3,
        }
    }
}

/// The row to speak from: the one asked for, or the best there is. Of equals, the first.
///
/// # Errors
///
/// [`VerbsError::GidIndex`] for an index that is not in the table or whose row cannot be used; [`VerbsError::NoGid`].
pub(crate) fn choose(adapter: &str, rows: &[GidRow], asked: Option<u32>) -> Result<GidRow, VerbsError> {
    let usable = rows.iter().filter_map(|row| row.usable().ok().map(|kind| (row.rank(kind), row)));
    let Some(asked) = asked else {
        let best = usable.min_by_key(|(rank, row)| (*rank, row.index));
        return best.map(|(_, row)| *row).ok_or_else(|| VerbsError::NoGid { adapter: adapter.to_owned() });
    };
    let row = rows.iter().find(|row| row.index == asked);
    let reason = match row.map(|row| (row, row.usable())) {
        Some((row, Ok(_))) => return Ok(*row),
        Some((_, Err(reason))) => reason,
        None => "the port's table has no such row",
    };
    let usable = usable.map(|(_, row)| row.index).collect();
    Err(VerbsError::GidIndex { adapter: adapter.to_owned(), asked, reason, usable })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(index: u32, address: &str, kind: Option<GidKind>) -> GidRow {
        GidRow { index, gid: address.parse::<Ipv6Addr>().unwrap().octets(), kind }
    }

    fn chosen(rows: &[GidRow]) -> Option<u32> {
        choose("a", rows, None).ok().map(|row| row.index)
    }

    #[test]
    fn version_2_over_ipv4_comes_first_and_version_1_last() {
        let v1 = row(0, "fe80::1", Some(GidKind::RoceV1));
        let local = row(1, "fe80::1", Some(GidKind::RoceV2));
        let global = row(2, "2001:db8::1", Some(GidKind::RoceV2));
        let unique_local = row(3, "fd00::1", Some(GidKind::RoceV2));
        let v1_ipv4 = row(4, "::ffff:10.9.0.1", Some(GidKind::RoceV1));
        let private = row(5, "::ffff:10.9.0.1", Some(GidKind::RoceV2));
        let public = row(6, "::ffff:198.51.100.1", Some(GidKind::RoceV2));
        assert_eq!(chosen(&[v1, local, global, unique_local, v1_ipv4, private, public]), Some(5));
        assert_eq!(chosen(&[v1, local, global, unique_local, v1_ipv4]), Some(2));
        assert_eq!(chosen(&[v1, local, unique_local, v1_ipv4]), Some(3));
        assert_eq!(chosen(&[v1_ipv4, v1, local]), Some(1));
        assert_eq!(chosen(&[v1_ipv4, v1]), Some(0));
        // InfiniBand proper: its one kind, the first row.
        let first = row(0, "fe80::2:c903:1", Some(GidKind::InfiniBand));
        assert_eq!(chosen(&[row(1, "fe80::9", Some(GidKind::InfiniBand)), first]), Some(0));
    }

    #[test]
    fn empty_and_unreadable_rows_are_passed_over() {
        let empty = row(0, "::", Some(GidKind::RoceV2));
        let unreadable = row(1, "::ffff:10.0.0.1", None);
        let last = row(2, "fe80::1", Some(GidKind::RoceV1));
        assert_eq!(chosen(&[empty, unreadable, last]), Some(2));
        assert!(matches!(choose("a", &[empty, unreadable], None), Err(VerbsError::NoGid { .. })));
        assert!(matches!(choose("a", &[], None), Err(VerbsError::NoGid { .. })));
    }

    #[test]
    fn an_explicit_index_is_taken_or_refused() {
        let rows = [
            row(0, "::ffff:10.0.0.1", Some(GidKind::RoceV2)),
            row(1, "::", Some(GidKind::RoceV2)),
            row(3, "fe80::1", Some(GidKind::RoceV1)),
        ];
        assert_eq!(choose("a", &rows, Some(3)).unwrap().index, 3);
        for (asked, mark) in [(1, "empty"), (2, "no such row"), (4096, "no such row")] {
            let error = choose("a", &rows, Some(asked)).unwrap_err().to_string();
            assert!(error.contains(mark) && error.contains("[0, 3]"), "{error}");
        }
    }

    #[test]
    fn a_table_that_has_changed_gives_another_row() {
        let before =
            [row(0, "fe80::1", Some(GidKind::RoceV2)), row(1, "::ffff:10.0.0.1", Some(GidKind::RoceV2))];
        let after = [
            row(0, "fe80::1", Some(GidKind::RoceV2)),
            row(1, "::", None),
            row(2, "::ffff:10.0.0.1", Some(GidKind::RoceV2)),
        ];
        assert_eq!(chosen(&before), Some(1));
        assert_eq!(chosen(&after), Some(2));
    }
}
