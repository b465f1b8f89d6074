//! Reads a function's instructions.

use std::fmt;

use super::execute::Opcode;

/// What an instruction reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A lane's vector register.
    Vector(usize),
    /// A scalar register.
    Scalar(usize),
    /// A number in the instruction.
    Literal(u32),
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub opcode: Opcode,
    /// Its operands, the destination first.
    pub operands: Vec<Operand>,
    /// Whether results are limited to their range.
    pub clamp: bool,
}

/// A function, in the order of its instructions: without a branch.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Up to its return.
    pub instructions: Vec<Instruction>,
}

/// Assembly that is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line.
    pub line: String,
    /// What of it.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.line, self.reason)
    }
}

impl std::error::Error for Fault {}

impl Function {
    /// The function `name` of an assembly file.
    ///
    /// # Errors
    ///
    /// The first thing in it that is not understood, its absence, or an end without a return.
    pub fn find(assembly: &str, name: &str) -> Result<Self, Fault> {
        let fault = |line: &str, reason: &str| Fault { line: line.to_owned(), reason: reason.to_owned() };
        let label = format!("{name}:");
        let mut lines = assembly.lines().skip_while(|line| without_comment(line) != label);
        lines.next().ok_or_else(|| fault(name, "no such function"))?;
        let mut instructions = Vec::new();
        for line in lines.map(without_comment).filter(|line| !line.is_empty()) {
            // The callee waits for what its caller has under way, and jumps to the address that it was given.
            if line == "s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)" {
                continue;
            }
            if line == "s_setpc_b64 s[30:31]" {
                return Ok(Self { name: name.to_owned(), instructions });
            }
            instructions.push(Instruction::parse(line).map_err(|reason| fault(line, &reason))?);
        }
        Err(fault(name, "ends without a return"))
    }
}

fn without_comment(line: &str) -> &str {
    line.split(';').next().unwrap_or_default().trim()
}

impl Instruction {
    /// Reads a line such as `v_perm_b32 v0, v1, v0, s0`.
    fn parse(line: &str) -> Result<Self, String> {
        let (mnemonic, rest) = line.split_once(char::is_whitespace).ok_or("no operands")?;
        let opcode = Opcode::from_mnemonic(mnemonic).ok_or("an opcode that is not known")?;
        let (rest, clamp) = match rest.trim().strip_suffix(" clamp") {
            Some(rest) => (rest, true),
            None => (rest.trim(), false),
        };
        if clamp && !opcode.can_clamp() {
            return Err("`clamp` is not known for it".into());
        }
        let operands: Vec<Operand> =
            rest.split(',').map(|text| operand(text.trim())).collect::<Result<_, _>>()?;
        if operands.len() != opcode.operands() {
            return Err(format!("{} operands, not {}", operands.len(), opcode.operands()));
        }
        let to_scalar = opcode == Opcode::ScalarMove;
        match operands[0] {
            Operand::Scalar(_) if to_scalar => {}
            Operand::Vector(_) if !to_scalar => {}
            other => return Err(format!("it cannot write {other:?}")),
        }
        // What a number in a packed instruction means for its upper half depends on modifiers that are not known here.
        if opcode.is_packed() && operands.iter().any(|operand| matches!(operand, Operand::Literal(_))) {
            return Err("a number in a packed instruction".into());
        }
        Ok(Self { opcode, operands, clamp })
    }
}

fn operand(text: &str) -> Result<Operand, String> {
    let unknown = || format!("the operand `{text}` is not known");
    let number = |text: &str| text.parse().map_err(|_| unknown());
    if let Some(hex) = text.strip_prefix("0x") {
        return u32::from_str_radix(hex, 16).map(Operand::Literal).map_err(|_| unknown());
    }
    match text.as_bytes().first() {
        Some(b'v') => number(&text[1..]).map(Operand::Vector),
        Some(b's') => number(&text[1..]).map(Operand::Scalar),
        _ => text.parse().map(|value: i32| Operand::Literal(value as u32)).map_err(|_| unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_read_up_to_its_return() {
        let assembly = "f:   ; @f\n; %bb.0:\n\ts_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)\n\ts_mov_b32 s0, 0xc0c0301\n\t;;#ASMSTART\n\tv_perm_b32 v0, v1, v0, s0\n\ts_setpc_b64 s[30:31]\n\tbogus\n";
        let function = Function::find(assembly, "f").unwrap();
        assert_eq!(
            function.instructions,
            [
                Instruction {
                    opcode: Opcode::ScalarMove,
                    operands: vec![Operand::Scalar(0), Operand::Literal(0x0C0C_0301)],
                    clamp: false
                },
                Instruction {
                    opcode: Opcode::Permute,
                    operands: vec![
                        Operand::Vector(0),
                        Operand::Vector(1),
                        Operand::Vector(0),
                        Operand::Scalar(0)
                    ],
                    clamp: false
                },
            ]
        );
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        for line in [
            "v_fma_f32 v0, v1, v2, v3",
            "v_perm_b32 v0, v1, v0",
            "v_perm_b32 s0, v1, v0, s0",
            "v_pk_add_u16 v0, v1, 1",
            "v_pk_min_u16 v0, v1, v2 op_sel_hi:[0,1]",
            "v_pk_min_u16 v0, v1, v2 clamp",
            "s_mov_b32 v0, 1",
            "s_endpgm",
        ] {
            let assembly = format!("f:\n\t{line}\n\ts_setpc_b64 s[30:31]\n");
            assert_eq!(Function::find(&assembly, "f").unwrap_err().line, line);
        }
        assert!(Function::find("g:\n", "f").is_err());
        assert!(Function::find("f:\n", "f").unwrap_err().reason.contains("without a return"));
    }
}
