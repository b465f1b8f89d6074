//! Finds what a Rust source names: modules of its own crate, other crates of the project, inline assembly.
//!
//! It reads tokens, not Rust: enough for paths, and indifferent to macros and conditional code.

/// Something that a source names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A top-level module (or item) of its own crate.
    Module {
        /// Its name.
        name: String,
        /// From 1.
        line: usize,
        /// Whether it is a macro that is called, which stands at the crate's root whatever module defines it.
        macro_call: bool,
    },
    /// A top-level module (or item) of another crate.
    Foreign {
        /// The crate.
        krate: String,
        /// The name.
        name: String,
        /// From 1.
        line: usize,
    },
    /// `asm!`, `global_asm!` or `naked_asm!`.
    Assembly {
        /// From 1.
        line: usize,
    },
}

/// A word or a character, and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token<'t> {
    text: &'t str,
    line: usize,
}

/// Every reference outside of `#[cfg(test)]` items. `depth` is how many `super` lead to the crate's root.
pub fn references(text: &str, depth: usize) -> Vec<Reference> {
    let tokens = without_tests(tokens(text));
    let mut found = Vec::new();
    let text_at = |i: usize| tokens.get(i).map_or("", |token| token.text);
    for (i, token) in tokens.iter().enumerate() {
        let line = token.line;
        match token.text {
            "asm" | "global_asm" | "naked_asm" if text_at(i + 1) == "!" => {
                found.push(Reference::Assembly { line })
            }
            "crate" if text_at(i + 1) == "::" => {
                found.extend(names_after(&tokens, i + 2).into_iter().map(own_module));
            }
            "super" if text_at(i.wrapping_sub(2)) != "super" => {
                let mut end = i;
                let mut count = 0;
                while text_at(end) == "super" && text_at(end + 1) == "::" {
                    count += 1;
                    end += 2;
                }
                if depth > 0 && count >= depth {
                    found.extend(names_after(&tokens, end).into_iter().map(own_module));
                }
            }
            krate if krate.starts_with("warpwire") && text_at(i + 1) == "::" => {
                found.extend(names_after(&tokens, i + 2).into_iter().map(|name| Reference::Foreign {
                    krate: krate.to_owned(),
                    name: name.text.to_owned(),
                    line: name.line,
                }));
            }
            _ => {}
        }
    }
    found
}

fn own_module(name: Name<'_>) -> Reference {
    Reference::Module { name: name.text.to_owned(), line: name.line, macro_call: name.macro_call }
}

struct Name<'t> {
    text: &'t str,
    line: usize,
    macro_call: bool,
}

/// The first names of the paths that start at `at`: one, or those of a group in braces.
fn names_after<'t>(tokens: &[Token<'t>], at: usize) -> Vec<Name<'t>> {
    let name = |i: usize| {
        let token = tokens.get(i)?;
        let word = token.text.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let macro_call = tokens.get(i + 1).is_some_and(|next| next.text == "!");
        word.then_some(Name { text: token.text, line: token.line, macro_call })
    };
    if tokens.get(at).is_none_or(|token| token.text != "{") {
        return name(at).into_iter().collect();
    }
    let mut names = Vec::new();
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate().skip(at) {
        match token.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        let starts = depth == 1 && matches!(token.text, "{" | ",");
        names.extend(starts.then(|| name(i + 1)).flatten());
    }
    names
}

/// Leaves out each item under `#[cfg(test)]`, up to the end of its braces or its semicolon.
fn without_tests(tokens: Vec<Token<'_>>) -> Vec<Token<'_>> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let marked = tokens.get(at..at + MARK.len());
        if marked.is_some_and(|window| window.iter().map(|token| token.text).eq(MARK)) {
            at = end_of_item(&tokens, at + MARK.len());
        } else {
            kept.push(token.clone());
            at += 1;
        }
    }
    kept
}

fn end_of_item(tokens: &[Token<'_>], start: usize) -> usize {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate().skip(start) {
        match token.text {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return i + 1;
                }
            }
            ";" if depth == 0 => return i + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Words, `::` and single characters; no comments, no white space, and of literals only that they are there.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let (len, keep) = next_token(rest);
        let piece = &rest[..len];
        if keep {
            tokens.push(Token { text: piece, line });
        }
        line += piece.matches('\n').count();
        at += len;
    }
    tokens
}

/// The length of what comes next, and whether it is a token worth keeping.
fn next_token(rest: &str) -> (usize, bool) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), false);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), false);
    }
    if let Some(len) = raw_string(rest).or_else(|| rest.starts_with('"').then(|| string(rest))) {
        return (len, false);
    }
    if let Some(len) = character(rest) {
        return (len, false);
    }
    if rest.starts_with("::") {
        return (2, true);
    }
    let word = rest.len() - rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').len();
    if word > 0 {
        return (word, true);
    }
    let first = rest.chars().next().unwrap_or(' ');
    (first.len_utf8(), !first.is_whitespace())
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while let Some(tail) = rest.get(at..).filter(|tail| !tail.is_empty()) {
        if tail.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += tail.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (i, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return i + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - body.len();
    Some(body.find(&close).map_or(rest.len(), |end| start + end + close.len()))
}

/// A character literal; an apostrophe that starts a lifetime is none.
fn character(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    if let Some(escape) = inner.strip_prefix('\\') {
        let skipped = escape.chars().next()?.len_utf8();
        return escape[skipped..].find('\'').map(|end| 2 + skipped + end + 1);
    }
    let c = inner.chars().next()?;
    inner[c.len_utf8()..].starts_with('\'').then(|| 2 + c.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(text: &str, depth: usize) -> Vec<(String, usize)> {
        let own = |reference| match reference {
            Reference::Module { name, line, .. } => Some((name, line)),
            _ => None,
        };
        references(text, depth).into_iter().filter_map(own).collect()
    }

    #[test]
    fn groups_and_paths_are_read() {
        let text = "use crate::{\n  abi::{A, B},\n  spin,\n};\nfn f() { crate::mem::g::<'a', 'b>() }";
        assert_eq!(modules(text, 1), [("abi".into(), 2), ("spin".into(), 3), ("mem".into(), 5)]);
    }

    #[test]
    fn super_counts_to_the_root() {
        assert_eq!(modules("use super::ldst;", 3), []);
        assert_eq!(modules("use super::super::super::mem;", 3), [("mem".into(), 1)]);
        assert_eq!(modules("use super::{mem, coop};", 1), [("mem".into(), 1), ("coop".into(), 1)]);
    }

    #[test]
    fn literals_are_passed_over() {
        let text = "let a = r#\"crate::x\"#; let b = '\\''; let c = \"\\\"crate::y\"; let d: &'static str = crate::z;";
        assert_eq!(modules(text, 1), [("z".into(), 1)]);
        assert_eq!(modules("/* /* crate::x */ crate::y */ crate::z", 1), [("z".into(), 1)]);
    }
}
