//! The statements inside a function's braces.

use super::lexer::{Lexer, Token};
use std::ops::Range;

/// One instruction or declaration of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement<'a> {
    /// The line that it starts on, from 1.
    pub line: usize,
    /// Its words and punctuation, without guard (`@%p1`), label and semicolon.
    pub tokens: Vec<&'a str>,
}

impl<'a> Statement<'a> {
    /// The instruction with its qualifiers, or the first directive of a declaration.
    pub fn opcode(&self) -> &'a str {
        self.tokens.first().copied().unwrap_or("")
    }
}

/// Iterates over the statements of a body, those in nested braces included.
#[derive(Debug, Clone)]
pub struct Statements<'a> {
    lexer: Lexer<'a>,
}

impl<'a> Statements<'a> {
    pub(super) fn new(text: &'a str, body: Range<usize>) -> Self {
        Statements { lexer: Lexer::within(text, body) }
    }
}

impl<'a> Iterator for Statements<'a> {
    type Item = Statement<'a>;

    fn next(&mut self) -> Option<Statement<'a>> {
        let mut tokens: Vec<Token<'a>> = Vec::new();
        for token in self.lexer.by_ref() {
            match token.text {
                // A list in braces belongs to its statement (`{%r1, %r2}`); a block's brace stands alone.
                "{" | "}" if tokens.is_empty() => {}
                ":" if tokens.len() == 1 => tokens.clear(),
                ";" if tokens.is_empty() => {}
                ";" => return Some(finish(&tokens)),
                _ => tokens.push(token),
            }
        }
        (!tokens.is_empty()).then(|| finish(&tokens))
    }
}

fn finish<'a>(tokens: &[Token<'a>]) -> Statement<'a> {
    let guard = match tokens {
        [at, bang, ..] if at.text == "@" && bang.text == "!" => 3,
        [at, ..] if at.text == "@" => 2,
        _ => 0,
    };
    let rest = tokens.get(guard..).unwrap_or(&[]);
    Statement {
        line: rest.first().or(tokens.first()).map_or(1, |token| token.line),
        tokens: rest.iter().map(|token| token.text).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_labels_and_blocks_are_left_out() {
        let text = "{\n.reg .b32 %r<2>;\n$L: @!%p1 bra $L;\n{ // callseq\ncall.uni f, (a);\n}\nst.v2.b32 [a], {%r1, %r2};}";
        let all: Vec<_> = Statements::new(text, 0..text.len()).collect();
        let opcodes: Vec<_> = all.iter().map(Statement::opcode).collect();
        assert_eq!(opcodes, [".reg", "bra", "call.uni", "st.v2.b32"]);
        assert_eq!(all[1].line, 3);
        assert_eq!(all[3].tokens.last(), Some(&"}"));
    }
}
