//! Texts of variables, as numbers, names and switches.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A whole number in `range`; blanks around it do not matter.
pub(super) fn number<T>(name: &'static str, value: &str, range: &RangeInclusive<T>) -> Result<T>
where
    T: FromStr + PartialOrd + Display,
{
    let expected = || format!("a number from {} to {}", range.start(), range.end());
    let parsed = value.trim().parse().ok().filter(|number| range.contains(number));
    parsed.ok_or_else(|| invalid(name, value, expected()))
}

/// A text of 1 to `longest` bytes; blanks around it do not matter.
pub(super) fn text(name: &'static str, value: &str, longest: usize) -> Result<String> {
    let trimmed = value.trim();
    if trimmed.is_empty() || trimmed.len() > longest {
        return Err(invalid(name, value, format!("a text of 1 to {longest} bytes")));
    }
    Ok(trimmed.to_owned())
}

/// On or off, in any case; an empty value is off.
pub(super) fn switch(name: &'static str, value: &str) -> Result<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "" | "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(invalid(name, value, "1, true, yes or on, or 0, false, no or off".to_owned())),
    }
}

fn invalid(name: &'static str, value: &str, expected: String) -> Error {
    Error::InvalidVariable { name, value: value.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_checked() {
        assert_eq!(number("N", " 2048 ", &(1024..=4096)).unwrap(), 2048);
        for bad in ["", "many", "3x", "1023", "4097", "-1", "99999999999", "1e18"] {
            let error = number("N", bad, &(1024..=4096)).unwrap_err().to_string();
            assert!(error.contains("variable N ") && error.contains("from 1024 to 4096"), "{error}");
        }
    }

    #[test]
    fn switches_are_checked() {
        for on in ["1", "true", "True", " 1 ", "on", "yes"] {
            assert!(switch("S", on).unwrap(), "{on:?}");
        }
        for off in ["0", "false", "no", "off", ""] {
            assert!(!switch("S", off).unwrap(), "{off:?}");
        }
        assert!(switch("S", "2x").unwrap_err().to_string().contains("variable S "));
    }

    #[test]
    fn texts_are_neither_empty_nor_endless() {
        assert_eq!(text("T", " a b ", 3).unwrap(), "a b");
        assert!(text("T", "  ", 3).is_err());
        assert!(text("T", "abcd", 3).is_err());
    }
}
