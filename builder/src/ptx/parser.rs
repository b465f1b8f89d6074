//! The module level of PTX: directives, entries, functions, variables.

use super::lexer::{Lexer, Token};
use super::{Entry, Function, Global, Header, Item, Module, Param, ParseError, Target, Version};
use std::ops::Range;

pub(super) fn header(text: &str) -> Result<Header, ParseError> {
    let mut parser = Parser::new(text);
    parser.header()
}

pub(super) fn module(text: &str) -> Result<Module<'_>, ParseError> {
    let mut parser = Parser::new(text);
    let header = parser.header()?;
    let mut module =
        Module { text, header, entries: vec![], functions: vec![], globals: vec![], items: vec![] };
    let mut items = Items { end: parser.lexer.position(), directives_end: None, found: vec![] };
    let mut statement_start = None;
    while let Some(token) = parser.lexer.next() {
        let start = *statement_start.get_or_insert(token.span.start);
        match token.text {
            ".visible" | ".extern" | ".weak" | ".common" => continue,
            ".entry" => {
                let entry = parser.entry()?;
                items.symbol(entry.name, parser.lexer.position());
                module.entries.push(entry);
            }
            ".func" => {
                let function = parser.function()?;
                items.symbol(function.name, parser.lexer.position());
                module.functions.push(function);
            }
            ".global" | ".const" | ".shared" => {
                let global = parser.global(start)?;
                items.symbol(global.name, global.span.end);
                module.globals.push(global);
            }
            "{" => {
                parser.skip_block(&token)?;
                items.directive(parser.lexer.position());
            }
            _ => items.directive(parser.lexer.position()),
        }
        statement_start = None;
    }
    module.items = items.finish(text.len());
    Ok(module)
}

/// The items as they are found: each begins where the one before it ends.
struct Items<'a> {
    /// Where the last one ends.
    end: usize,
    /// Where the last directive behind it ends that is no symbol's.
    directives_end: Option<usize>,
    found: Vec<Item<'a>>,
}

impl<'a> Items<'a> {
    /// A directive, or a part of one, that is no symbol's.
    fn directive(&mut self, end: usize) {
        self.directives_end = Some(end);
    }

    /// A statement that defines or declares a symbol.
    fn symbol(&mut self, name: &'a str, end: usize) {
        if let Some(directives_end) = self.directives_end.take() {
            self.push(None, directives_end);
        }
        self.push(Some(name), end);
    }

    /// All items of a text of this length.
    fn finish(mut self, len: usize) -> Vec<Item<'a>> {
        if self.end < len {
            self.push(None, len);
        }
        self.found
    }

    fn push(&mut self, name: Option<&'a str>, end: usize) {
        self.found.push(Item { name, span: self.end..end });
        self.end = end;
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Parser { lexer: Lexer::new(text) }
    }

    fn error<T>(&self, what: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError { line: self.lexer.line(), what: what.into() })
    }

    fn expect_next(&mut self, what: &str) -> Result<Token<'a>, ParseError> {
        match self.lexer.next() {
            Some(token) => Ok(token),
            None => self.error(format!("the text ends where {what} should stand")),
        }
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.lexer.clone().next()
    }

    fn header(&mut self) -> Result<Header, ParseError> {
        let mut version = None;
        while let Some(token) = self.lexer.next() {
            match (token.text, version) {
                (".version", None) => {
                    let word = self.expect_next("the version")?;
                    let Some(parsed) = parse_version(word.text) else {
                        return self.error(format!("`{}` is no version", word.text));
                    };
                    version = Some(parsed);
                }
                (".target", Some(version)) => {
                    let word = self.expect_next("the target")?;
                    let Some(target) = parse_target(word.text) else {
                        return self.error(format!("`{}` is no target", word.text));
                    };
                    return Ok(Header { version, target });
                }
                (other, _) => {
                    return self.error(format!("`{other}` stands before `.version` and `.target`"));
                }
            }
        }
        self.error("`.version` and `.target` are missing")
    }

    fn entry(&mut self) -> Result<Entry<'a>, ParseError> {
        let name = self.expect_next("an entry's name")?;
        let mut entry = Entry {
            name: name.text,
            line: name.line,
            params: vec![],
            directives_at: name.span.end,
            maxntid: None,
            min_blocks: None,
            body: 0..0,
        };
        if self.peek().is_some_and(|token| token.text == "(") {
            let (tokens, end) = self.parenthesised()?;
            entry.directives_at = end;
            for param in tokens.split(|token| token.text == ",").filter(|param| !param.is_empty()) {
                match parse_param(param) {
                    Some(param) => entry.params.push(param),
                    None => return self.error(format!("a parameter of {} is not understood", entry.name)),
                }
            }
        }
        loop {
            let token = self.expect_next("an entry's body")?;
            match token.text {
                ";" => return Ok(entry),
                "{" => {
                    entry.body = self.block(&token)?;
                    return Ok(entry);
                }
                ".maxntid" => {
                    let numbers = self.numbers();
                    let at = |i: usize| numbers.get(i).copied().unwrap_or(1);
                    entry.maxntid = Some([at(0), at(1), at(2)]);
                }
                ".minnctapersm" => entry.min_blocks = self.numbers().first().copied(),
                _ => {}
            }
        }
    }

    fn function(&mut self) -> Result<Function<'a>, ParseError> {
        if self.peek().is_some_and(|token| token.text == "(") {
            self.parenthesised()?; // the returned value
        }
        let name = self.expect_next("a function's name")?;
        loop {
            let token = self.expect_next("a function's body")?;
            match token.text {
                ";" => return Ok(Function { name: name.text, line: name.line, body: 0..0 }),
                "{" => {
                    let body = self.block(&token)?;
                    return Ok(Function { name: name.text, line: name.line, body });
                }
                _ => {}
            }
        }
    }

    fn global(&mut self, start: usize) -> Result<Global<'a>, ParseError> {
        let mut global = Global {
            name: "",
            line: self.lexer.line(),
            element_size: 0,
            elements: 1,
            init: vec![],
            span: start..start,
        };
        let mut in_init = false;
        while let Some(token) = self.lexer.next() {
            match token.text {
                ";" => {
                    global.span.end = token.span.end;
                    return Ok(global);
                }
                "=" => in_init = true,
                ".align" => {
                    self.lexer.next();
                }
                "[" if !in_init => {
                    let size = self.expect_next("an array's length")?;
                    let length = size.text.parse::<u32>().unwrap_or(0);
                    global.elements = global.elements.saturating_mul(length);
                }
                word if in_init => global.init.extend(parse_number(word)),
                word => match type_size(word) {
                    Some(size) => global.element_size = size,
                    None if global.name.is_empty() && is_name(word) => {
                        global.name = word;
                        global.line = token.line;
                    }
                    None => {}
                },
            }
        }
        self.error("the text ends inside a variable")
    }

    /// The tokens between the parentheses that come next, and the byte after the closing one.
    fn parenthesised(&mut self) -> Result<(Vec<Token<'a>>, usize), ParseError> {
        self.expect_next("a parameter list")?;
        let mut tokens = vec![];
        loop {
            let token = self.expect_next("the end of a parameter list")?;
            if token.text == ")" {
                return Ok((tokens, token.span.end));
            }
            tokens.push(token);
        }
    }

    /// Numbers separated by commas; what follows them is left in place.
    fn numbers(&mut self) -> Vec<u32> {
        let mut numbers = vec![];
        while let Some(token) = self.peek() {
            match token.text.parse() {
                Ok(number) => numbers.push(number),
                Err(_) if token.text == "," && !numbers.is_empty() => {}
                Err(_) => break,
            }
            self.lexer.next();
        }
        numbers
    }

    /// Passes over a block whose opening brace was read, and gives the bytes between its braces.
    fn block(&mut self, open: &Token<'a>) -> Result<Range<usize>, ParseError> {
        let mut depth = 1usize;
        for token in self.lexer.by_ref() {
            match token.text {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(open.span.end..token.span.start);
            }
        }
        Err(ParseError { line: open.line, what: "the brace opened here is never closed".into() })
    }

    fn skip_block(&mut self, open: &Token<'a>) -> Result<(), ParseError> {
        self.block(open).map(drop)
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '%'))
}

fn parse_version(word: &str) -> Option<Version> {
    let (major, minor) = word.split_once('.')?;
    Some(Version { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

fn parse_target(word: &str) -> Option<Target> {
    let rest = word.strip_prefix("sm_")?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, suffix) = rest.split_at(digits);
    Some(Target { number: number.parse().ok()?, suffix: suffix.to_owned() })
}

fn parse_number(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches('U');
    match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    }
}

/// Bytes of a value of a PTX type: `.b8`, `.f32`, ...
fn type_size(word: &str) -> Option<u32> {
    let bits = word.strip_prefix('.')?.strip_prefix(['b', 'u', 's', 'f'])?;
    match bits {
        "8" | "16" | "32" | "64" | "128" => bits.parse::<u32>().ok().map(|bits| bits / 8),
        _ => None,
    }
}

fn parse_param<'a>(tokens: &[Token<'a>]) -> Option<Param<'a>> {
    let (mut name, mut element, mut align, mut elements) = (None, None, None, 1u32);
    let mut pointee = false; // `.ptr .global .align 8` speaks of what the parameter points to
    let mut tokens = tokens.iter().map(|token| token.text);
    while let Some(word) = tokens.next() {
        match word {
            ".ptr" => pointee = true,
            ".align" => {
                let value = tokens.next()?.parse().ok()?;
                if !pointee {
                    align = Some(value);
                }
            }
            "[" => elements = elements.checked_mul(tokens.next()?.parse().ok()?)?,
            _ => match type_size(word) {
                Some(size) => element = Some(size),
                None if is_name(word) => name = Some(word),
                None => {}
            },
        }
    }
    let element = element?;
    Some(Param { name: name?, size: element.checked_mul(elements)?, align: align.unwrap_or(element) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = r#"//
// Generated by LLVM NVPTX Back-End
//
.version 8.0
.target sm_90a, debug
.address_size 64

	// .globl	exp_entry
.visible .global .align 4 .b8 __warpwire_kernel_exp_entry[8] = {0, 4, 0, 0, 1};
.extern .func helper
(
	.param .b64 helper_param_0
)
.noreturn;
.func  (.param .b32 func_retval0) twice(.param .b32 twice_param_0)
{
	ret;
}
.visible .entry exp_entry(
	.param .align 8 .b8 exp_entry_param_0[592],
	.param .u64 .ptr .global .align 16 exp_entry_param_1,
	.param .u32 exp_entry_param_2
)
.maxntid 32, 4
.minnctapersm 2
{
	{ // callseq
	call.uni twice, (a);
	}
}
.visible .entry bare() { }
"#;

    #[test]
    fn a_module_is_read() {
        let module = Module::parse(TEXT).unwrap();
        assert_eq!(module.header.version, Version { major: 8, minor: 0 });
        assert_eq!(module.header.target.to_string(), "sm_90a");
        let entry = module.entry("exp_entry").unwrap();
        assert_eq!((entry.param_size(), entry.param_align()), (604, 8));
        assert_eq!((entry.max_threads(), entry.min_blocks), (Some(128), Some(2)));
        assert_eq!(entry.params[1].name, "exp_entry_param_1");
        assert!(TEXT[..entry.directives_at].ends_with(')'));
        assert_eq!(module.entries[1].params, []);
        assert_eq!(module.functions.iter().map(|f| f.name).collect::<Vec<_>>(), ["helper", "twice"]);
        assert_eq!(module.functions[0].body, 0..0);
        assert_eq!(module.statements(&entry.body).next().unwrap().opcode(), "call.uni");
    }

    #[test]
    fn a_static_is_read_with_its_bytes() {
        let module = Module::parse(TEXT).unwrap();
        let global = &module.globals[0];
        assert_eq!(global.name, "__warpwire_kernel_exp_entry");
        assert_eq!(global.bytes(), [0, 4, 0, 0, 1, 0, 0, 0]);
        assert!(
            TEXT[global.span.clone()].starts_with(".visible") && TEXT[global.span.clone()].ends_with(';')
        );
        let text = ".version 7.0\n.target sm_80\n.global .u32 x[2] = {1024, 0x1};";
        assert_eq!(Module::parse(text).unwrap().globals[0].bytes(), [0, 4, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn the_items_are_the_whole_text_behind_its_header() {
        let text = format!("{TEXT}.extern .shared .align 16 .b8 ring[];\n// the end\n");
        let module = Module::parse(&text).unwrap();
        let names: Vec<_> = module.items.iter().map(|item| item.name).collect();
        let bounds = "__warpwire_kernel_exp_entry";
        let symbols = [bounds, "helper", "twice", "exp_entry", "bare", "ring"].map(Some);
        assert_eq!(names, [&[None][..], &symbols, &[None]].concat());
        let part = |i: usize| &text[module.items[i].span.clone()];
        assert!(part(0).ends_with(".address_size 64"), "{}", part(0));
        assert!(part(1).trim_start().starts_with("// .globl\texp_entry\n.visible"), "{}", part(1));
        assert!(part(5).ends_with("{ }") && part(6).ends_with("ring[];"));
        let parts: String = (0..module.items.len()).map(part).collect();
        assert!(text.ends_with(&parts) && text.len() - parts.len() == TEXT.find(", debug").unwrap());
    }

    #[test]
    fn faults_name_their_line() {
        assert!(Module::parse("").is_err());
        assert_eq!(Module::parse("\n.visible .entry x").unwrap_err().line, 2);
        let open = ".version 7.0\n.target sm_80\n.entry x()\n{ ret;";
        assert_eq!(Module::parse(open).unwrap_err().line, 4);
        assert!(Header::parse(".version seven\n.target sm_80").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*") {
            let _ = Module::parse(&text);
        }

        #[test]
        fn no_mutilated_module_makes_it_panic(cut in 0..TEXT.len(), len in 0usize..40, put in "[\\[\\]{}();,.=@\" a-z0-9µ]{0,6}") {
            let end = (cut + len).min(TEXT.len());
            let text = format!("{}{put}{}", &TEXT[..cut], &TEXT[end..]);
            if let Ok(module) = Module::parse(&text) {
                for entry in &module.entries {
                    let _ = (entry.param_size(), entry.max_threads(), module.statements(&entry.body).count());
                }
                module.globals.iter().for_each(|global| { global.bytes(); });
                let ends = module.items.iter().map(|item| item.span.end);
                let begins = module.items.iter().map(|item| item.span.start).skip(1).chain([text.len()]);
                prop_assert!(module.items.is_empty() || ends.eq(begins), "the items leave gaps");
            }
        }
    }
}
