//! Sizes on the command line and in tables.

use std::fmt;
use std::str::FromStr;

/// A number of bytes: `4`, `1KiB`, `1K`, `16M`, `1GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub usize);

const UNITS: [(&str, u32); 3] = [("K", 10), ("M", 20), ("G", 30)];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{text}` is no size: give bytes, with K, M or G (or KiB, MiB, GiB) for powers of 1,024")
        };
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = text[digits.len()..].trim().trim_end_matches("iB").to_ascii_uppercase();
        let shift = match unit.trim_end_matches('B') {
            "" => 0,
            unit => UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1,
        };
        let number: usize = digits.trim().parse().map_err(|_| wrong())?;
        number
            .checked_mul(1 << shift)
            .map(Self)
            .ok_or_else(|| format!("`{text}` does not fit this machine's addresses"))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.iter().rev().find(|(_, shift)| self.0 != 0 && self.0.is_multiple_of(1 << shift));
        let text = match whole {
            Some((unit, shift)) => format!("{} {unit}iB", self.0 >> shift),
            None => format!("{} B", self.0),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in
            [("4", 4), ("1K", 1024), ("1KiB", 1024), ("3 MiB", 3 << 20), ("2g", 2 << 30), ("7B", 7)]
        {
            assert_eq!(text.parse::<Size>().unwrap(), Size(bytes), "{text}");
        }
        for text in ["", "K", "-1", "1.5K", "4T", "99999999999G", "0x10"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        assert_eq!(Size(1 << 20).to_string(), "1 MiB");
        assert_eq!(Size(1000).to_string(), "1000 B");
        assert_eq!(Size(0).to_string(), "0 B");
    }
}
