//! Executes functions of gfx942 assembly, as the compiler wrote it: as much of the instruction set as the conversions of
//! `device/hip` use. Anything else, an opcode, an operand or a modifier, is an error, never skipped.
//!
//! Source: "AMD Instinct MI300 Instruction Set Architecture", chapters 6 (vector ALU operations) and 12 (instructions).

mod execute;
mod parse;

pub use execute::{Machine, Opcode};
pub use parse::{Fault, Function, Instruction, Operand};
