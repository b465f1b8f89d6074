//! The tables of e4m3b15, read from the documentation of the device crate's module `fp8`.

use std::ops::RangeInclusive;

use crate::reference::{E4M3B15, F16};

/// The module whose text has the tables.
const TEXT: &str = include_str!("../../device/src/fp8/mod.rs");

/// What a row says for one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The formula's value.
    Value,
    /// Not a number.
    Nan,
    /// The code whose value is nearest, ties away from zero.
    Nearest,
    /// This code.
    Code(u8),
}

/// One row: the bits that it is for, and what they give.
#[derive(Clone, Debug)]
pub struct Row {
    /// The codes, or the `f16` bits.
    pub bits: RangeInclusive<u32>,
    /// In the range `Standard`.
    pub standard: Entry,
    /// In the range `Extended`.
    pub extended: Entry,
}

/// Which of the two ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// `Standard`.
    Standard,
    /// `Extended`.
    Extended,
}

/// The rows of the table whose first heading is `heading`.
///
/// # Panics
///
/// Where there is no such table, or a row that cannot be read: the text has to stay readable.
#[must_use]
pub fn rows(heading: &str) -> Vec<Row> {
    let lines = TEXT.lines().filter_map(|line| line.strip_prefix("//! |"));
    let cells = lines.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let table =
        cells.skip_while(|cells| cells[0] != heading).skip(2).take_while(|cells| cells[0].starts_with("0x"));
    let rows: Vec<Row> = table.map(|cells| row(&cells)).collect();
    assert!(!rows.is_empty(), "no table is headed {heading:?}");
    rows
}

fn row(cells: &[&str]) -> Row {
    let (first, last) = cells[0].split_once("..=").expect("a range of bits");
    Row { bits: hex(first)..=hex(last), standard: entry(cells[1]), extended: entry(cells[2]) }
}

fn hex(text: &str) -> u32 {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_else(|_| panic!("{text:?} is no number"))
}

fn entry(text: &str) -> Entry {
    match text {
        "value" => Entry::Value,
        "NaN" => Entry::Nan,
        "nearest" => Entry::Nearest,
        code => Entry::Code(u8::try_from(hex(code)).expect("a code has 8 bits")),
    }
}

/// What each of the 256 codes decodes to, as `f16` bits.
#[must_use]
pub fn decoded(reading: Reading) -> Vec<u16> {
    expand("codes", 256, reading, |code, entry| match entry {
        Entry::Value => F16.nearest(E4M3B15.formula(code)) as u16,
        Entry::Nan => 0x7FFF,
        other => panic!("{other:?} says nothing of a value"),
    })
}

/// What each of the 65,536 `f16` encodes to.
#[must_use]
pub fn encoded(reading: Reading) -> Vec<u8> {
    expand("f16 bits", 65536, reading, |bits, entry| match entry {
        Entry::Nearest => E4M3B15.nearest_away(F16.value(bits)) as u8,
        Entry::Code(code) => code,
        other => panic!("{other:?} is no code"),
    })
}

/// Every row's bits, which have to be all of `0..count` in their order, each made a `T`.
fn expand<T>(heading: &str, count: u32, reading: Reading, make: impl Fn(u32, Entry) -> T) -> Vec<T> {
    let mut all = Vec::new();
    for row in rows(heading) {
        assert_eq!(*row.bits.start(), all.len() as u32, "{heading}: a gap before {row:?}");
        let entry = if reading == Reading::Standard { row.standard } else { row.extended };
        all.extend(row.bits.map(|bits| make(bits, entry)));
    }
    assert_eq!(all.len() as u32, count, "{heading}: the table's end");
    all
}
