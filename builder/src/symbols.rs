//! Takes the compiler's hashes out of symbol names.
//!
//! A mangled name carries a hash of its crate, which cargo derives from the compiler's version, the flags and the
//! folder of `core`'s sources. The same sources would give other bytes on every machine, and nobody could check them.

use std::collections::HashMap;

/// Numbers the hashes in order of appearance: `…17h0123456789abcdefE` becomes `…17h0000000000000000E`, the next
/// `…0001E`, and so on. Different hashes stay different.
pub(crate) fn without_hashes(text: &str) -> String {
    let legacy = renumber(text, "17h", |rest| {
        let hash = rest.get(..16)?;
        let hex = hash.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase());
        (hex && rest.as_bytes().get(16) == Some(&b'E')).then_some(hash)
    });
    // The current scheme: `Cs` + base 62 + `_` is a crate's disambiguator.
    renumber(&legacy, "Cs", |rest| {
        let len = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        ((8..=12).contains(&len) && rest.as_bytes().get(len) == Some(&b'_'))
            .then(|| rest.get(..len))
            .flatten()
    })
}

fn renumber<'t>(text: &'t str, mark: &str, hash_of: impl Fn(&'t str) -> Option<&'t str>) -> String {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(mark) {
        let (before, after) = rest.split_at(at + mark.len());
        out.push_str(before);
        rest = after;
        if let Some(hash) = hash_of(after) {
            let next = numbers.len();
            let number = numbers.entry(hash).or_insert(next);
            out.push_str(&format!("{number:016}"));
            rest = &after[hash.len()..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_stay_equal_and_others_apart() {
        let text = "_ZN1a1b17h0123456789abcdefE, _ZN1c17hfedcba9876543210E, _ZN1d17h0123456789abcdefE";
        assert_eq!(
            without_hashes(text),
            "_ZN1a1b17h0000000000000000E, _ZN1c17h0000000000000001E, _ZN1d17h0000000000000000E"
        );
        assert_eq!(without_hashes("_RNvCs9ltgdHTiPiY_4core3fmt"), "_RNvCs0000000000000000_4core3fmt");
    }

    #[test]
    fn other_text_is_left_alone() {
        for text in ["17h", "a17h0123E", "Cs_x", "x17h0123456789ABCDEFE", "Cs12_"] {
            assert_eq!(without_hashes(text), text);
        }
    }
}
