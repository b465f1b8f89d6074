//! Splits PTX text into words and punctuation, with comments and white space left out.

use std::ops::Range;

/// One word or one punctuation character.
#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) span: Range<usize>,
    pub(super) line: usize,
}

/// Iterates over the tokens of a part of the text. Cheap to clone, which is how the parser looks ahead.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    end: usize,
    line: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Lexer { text, at: 0, end: text.len(), line: 1 }
    }

    /// Restricted to `range`; an end beyond the text is cut to it, and a range that splits a character reads as empty.
    pub(super) fn within(text: &'a str, range: Range<usize>) -> Self {
        let end = range.end.min(text.len());
        let start = range.start.min(end);
        match text.get(..start) {
            Some(before) if text.is_char_boundary(end) => {
                Lexer { text, at: start, end, line: 1 + before.matches('\n').count() }
            }
            _ => Lexer { text, at: end, end, line: 1 },
        }
    }

    /// The line that the next token is looked for on.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// The byte behind the last token.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..self.end).unwrap_or("")
    }

    fn advance(&mut self, bytes: usize) {
        let passed = self.rest().get(..bytes).unwrap_or(self.rest());
        self.line += passed.matches('\n').count();
        self.at += passed.len();
    }

    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            if blank > 0 {
                self.advance(blank);
            } else if rest.starts_with("//") {
                self.advance(rest.find('\n').unwrap_or(rest.len()));
            } else if let Some(inner) = rest.strip_prefix("/*") {
                self.advance(inner.find("*/").map_or(rest.len(), |end| end + 4));
            } else {
                return;
            }
        }
    }

    fn next_len(rest: &str) -> usize {
        if let Some(inner) = rest.strip_prefix('"') {
            return inner.find('"').map_or(rest.len(), |end| end + 2);
        }
        let word = word_len(rest);
        if word > 0 { word } else { rest.chars().next().map_or(0, char::len_utf8) }
    }
}

/// `::` belongs to a word (`.shared::cta`), a single colon ends a label.
fn word_len(rest: &str) -> usize {
    let mut len = 0;
    while let Some(c) = rest.get(len..).and_then(|tail| tail.chars().next()) {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '%') {
            len += 1;
        } else if rest.get(len..).is_some_and(|tail| tail.starts_with("::")) {
            len += 2;
        } else {
            break;
        }
    }
    len
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blank();
        let rest = self.rest();
        let len = Self::next_len(rest);
        if len == 0 {
            return None;
        }
        let token = Token { text: rest.get(..len)?, span: self.at..self.at + len, line: self.line };
        self.advance(len);
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_dots_and_double_colons() {
        let words: Vec<_> = Lexer::new("ld.global.L1::no_allocate.b64 %rd1, [a+8]; // c\n$L: /* x\n*/ ret;")
            .map(|t| (t.text, t.line))
            .collect();
        assert_eq!(words[0], ("ld.global.L1::no_allocate.b64", 1));
        assert!(words.contains(&("$L", 2)) && words.contains(&(":", 2)));
        assert_eq!(words[words.len() - 2], ("ret", 3));
    }

    #[test]
    fn an_unfinished_comment_ends_the_text() {
        assert_eq!(Lexer::new("a /* b").map(|t| t.text).collect::<Vec<_>>(), ["a"]);
        assert_eq!(Lexer::new("a \"b").map(|t| t.text).collect::<Vec<_>>(), ["a", "\"b"]);
    }
}
