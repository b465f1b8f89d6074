//! Reads PTX text: the header, the entries with their parameters and launch bounds, functions and static variables.
//!
//! The parser knows the shape of a module (directives, statements, bodies) and none of the instructions, so a new
//! instruction set version does not break it. It borrows from the text and never panics, whatever it is given.
//!
//! ```
//! let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry ping(.param .u64 ping_param_0)\n.maxntid 64, 1, 1\n{ ret; }";
//! let module = warpwire_build::ptx::Module::parse(text).unwrap();
//! assert_eq!(module.header.target.number, 90);
//! assert_eq!(module.entries[0].name, "ping");
//! assert_eq!(module.entries[0].max_threads(), Some(64));
//! ```

mod body;
mod lexer;
mod parser;

pub use body::{Statement, Statements};

use std::fmt;
use std::ops::Range;

/// The version of the PTX instruction set that a module is written in, which decides which drivers can load it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The number before the point.
    pub major: u32,
    /// The number after the point.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The oldest GPU architecture that a module runs on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// 90 for `sm_90` and `sm_90a`.
    pub number: u32,
    /// What follows the number: empty, `a` (this architecture only) or `f` (its family only).
    pub suffix: String,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.number, self.suffix)
    }
}

/// The two directives that every module starts with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Header {
    /// `.version`
    pub version: Version,
    /// `.target`
    pub target: Target,
}

impl Header {
    /// Reads the header alone, without looking at the rest of the text.
    pub fn parse(text: &str) -> Result<Header, ParseError> {
        parser::header(text)
    }
}

/// A parameter of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param<'a> {
    /// Its name, `ENTRY_param_0` for the first one that LLVM writes.
    pub name: &'a str,
    /// Its size in bytes.
    pub size: u32,
    /// Its alignment in bytes.
    pub align: u32,
}

/// A kernel: a function that the host can launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The name that the host looks it up by.
    pub name: &'a str,
    /// The line of its name, from 1.
    pub line: usize,
    /// Its parameters in order.
    pub params: Vec<Param<'a>>,
    /// Where directives go: the byte after the parameter list, or after the name where there is no list.
    pub directives_at: usize,
    /// `.maxntid`: the largest block in each dimension.
    pub maxntid: Option<[u32; 3]>,
    /// `.minnctapersm`: blocks that must fit one multiprocessor.
    pub min_blocks: Option<u32>,
    /// The bytes between its braces; empty for a declaration.
    pub body: Range<usize>,
}

impl Entry<'_> {
    /// Threads that a block may have at most, if the module says so.
    pub fn max_threads(&self) -> Option<u32> {
        self.maxntid.map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z))
    }

    /// Bytes of the whole parameter block, each parameter at its alignment.
    pub fn param_size(&self) -> u32 {
        self.params.iter().fold(0u32, |end, param| {
            let start = end.checked_next_multiple_of(param.align.max(1)).unwrap_or(u32::MAX);
            start.saturating_add(param.size)
        })
    }

    /// Alignment of the parameter block: the largest of its parameters'.
    pub fn param_align(&self) -> u32 {
        self.params.iter().map(|param| param.align).max().unwrap_or(1)
    }
}

/// A function that only device code calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function<'a> {
    /// Its symbol.
    pub name: &'a str,
    /// The line of its name, from 1.
    pub line: usize,
    /// The bytes between its braces; empty for a declaration.
    pub body: Range<usize>,
}

/// A `.global`, `.const` or `.shared` variable of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Global<'a> {
    /// Its symbol.
    pub name: &'a str,
    /// The line of its name, from 1.
    pub line: usize,
    /// Bytes that each element takes.
    pub element_size: u32,
    /// How many elements it has.
    pub elements: u32,
    /// The values given in braces, as far as they are numbers; a short list is filled with zeros by the assembler.
    pub init: Vec<u64>,
    /// The whole statement, its linkage and its semicolon included.
    pub span: Range<usize>,
}

impl Global<'_> {
    /// The variable's contents as the GPU sees them: little-endian, with the zeros that a short list leaves out.
    pub fn bytes(&self) -> Vec<u8> {
        // No initialiser of a well-formed module is near this; the limit is there for text that lies about its size.
        const LIMIT: usize = 1 << 20;
        let width = self.element_size.clamp(1, 8) as usize;
        let mut bytes: Vec<u8> =
            self.init.iter().flat_map(|value| value.to_le_bytes().into_iter().take(width)).collect();
        bytes.resize((self.elements as usize).saturating_mul(width).min(LIMIT), 0);
        bytes
    }
}

/// A part of a module's text behind its header. The items' texts, put together, are all of it: comments belong to what they
/// stand before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item<'a> {
    /// The entry, function or variable that it defines or declares; none for directives that are about the whole module,
    /// such as `.address_size`, and for what stands behind the last symbol.
    pub name: Option<&'a str>,
    /// Its bytes.
    pub span: Range<usize>,
}

/// A PTX module, borrowed from its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module<'a> {
    /// The text that the ranges below index.
    pub text: &'a str,
    /// Version and target.
    pub header: Header,
    /// The kernels, in the text's order.
    pub entries: Vec<Entry<'a>>,
    /// The other functions, in the text's order.
    pub functions: Vec<Function<'a>>,
    /// The static variables, in the text's order.
    pub globals: Vec<Global<'a>>,
    /// Everything behind `.version` and `.target`, cut into pieces, in the text's order.
    pub items: Vec<Item<'a>>,
}

impl<'a> Module<'a> {
    /// Reads a whole module.
    pub fn parse(text: &'a str) -> Result<Module<'a>, ParseError> {
        parser::module(text)
    }

    /// The entry of that name.
    pub fn entry(&self, name: &str) -> Option<&Entry<'a>> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The statements of a body, such as [`Entry::body`].
    pub fn statements(&self, body: &Range<usize>) -> Statements<'a> {
        Statements::new(self.text, body.clone())
    }
}

/// Text that is not a PTX module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The line at fault, from 1.
    pub line: usize,
    /// What stands there or is missing.
    pub what: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a PTX module: line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for ParseError {}
