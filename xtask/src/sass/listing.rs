//! What cuobjdump says of a file of machine code: each entry's registers and instructions.

use std::collections::{BTreeMap, HashMap};
use std::mem;

/// Loads or stores of one kind by width. Narrower ones than 32 bits count as that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Widths {
    /// Up to 32 bits.
    pub narrow: u32,
    /// 64 bits.
    pub double: u32,
    /// 128 bits.
    pub quad: u32,
}

impl Widths {
    fn count(&mut self, opcode: &str) {
        let is = |width: &str| opcode.split('.').any(|part| part == width);
        if is("128") {
            self.quad += 1;
        } else if is("64") {
            self.double += 1;
        } else {
            self.narrow += 1;
        }
    }

    /// All of them.
    pub fn total(self) -> u32 {
        self.narrow + self.double + self.quad
    }
}

/// An entry's machine code, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Code {
    /// Registers of each thread.
    pub registers: u32,
    /// Instructions, without the padding behind the last one and the branch to itself before it.
    pub instructions: u32,
    /// Loads from global memory, and those whose space is known at run time only.
    pub loads: Widths,
    /// Stores likewise.
    pub stores: Widths,
    /// Loads from and stores to shared memory.
    pub shared: Widths,
    /// Atomic operations and reductions, in global and in shared memory.
    pub atomics: u32,
    /// Bulk copies and the operations on their barriers.
    pub bulk: u32,
    /// Instructions on the shortest way from a load from global memory back to itself: one look of a wait, one turn of a short
    /// loop. 0 where no load is in a loop.
    pub turn: u32,
    /// Loads from and stores to local memory: registers that were spilled, or arrays that are no registers.
    pub spills: u32,
}

/// Reads the output of `cuobjdump -sass -res-usage`: every entry by its name.
pub fn parse(output: &str) -> BTreeMap<String, Code> {
    let mut entries: BTreeMap<String, Code> = BTreeMap::new();
    let mut used_by = None;
    let mut listing: Option<(String, Vec<Instruction<'_>>)> = None;
    for line in output.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("Function : ") {
            count(&mut entries, listing.replace((name.to_owned(), Vec::new())));
        } else if let Some(name) = line.strip_prefix("Function ").and_then(|rest| rest.strip_suffix(':')) {
            used_by = Some(name.to_owned());
        } else if let Some(usage) = line.strip_prefix("REG:") {
            let registers = usage.split_whitespace().next().and_then(|number| number.parse().ok());
            if let (Some(name), Some(registers)) = (used_by.take(), registers) {
                entries.entry(name).or_default().registers = registers;
            }
        } else if let (Some((_, instructions)), Some(instruction)) = (&mut listing, Instruction::parse(line))
        {
            instructions.push(instruction);
        }
    }
    count(&mut entries, listing);
    entries
}

fn count(entries: &mut BTreeMap<String, Code>, listing: Option<(String, Vec<Instruction<'_>>)>) {
    let Some((name, instructions)) = listing else { return };
    let code = entries.entry(name).or_default();
    let instructions = without_padding(&instructions);
    for instruction in instructions {
        code.instructions += 1;
        code.count(instruction.opcode);
    }
    code.turn = shortest_turn(instructions);
}

/// The length of the shortest way from a load back to itself.
fn shortest_turn(instructions: &[Instruction<'_>]) -> u32 {
    let at: HashMap<u64, usize> =
        instructions.iter().enumerate().map(|(i, instruction)| (instruction.address, i)).collect();
    let next = |i: usize| {
        let instruction = &instructions[i];
        let target = instruction.target().and_then(|target| at.get(&target).copied());
        let through = (!instruction.always_leaves() && i + 1 < instructions.len()).then_some(i + 1);
        target.into_iter().chain(through)
    };
    let is_load = |i: &usize| matches!(instructions[*i].family(), "LDG" | "LD");
    let turns = (0..instructions.len()).filter(is_load).filter_map(|load| {
        // Breadth first: the first way back is the shortest.
        let mut seen = vec![false; instructions.len()];
        let mut front = vec![load];
        for length in 1.. {
            let reached: Vec<usize> = front.iter().flat_map(|&i| next(i)).collect();
            if reached.contains(&load) {
                return Some(length);
            }
            front = reached.into_iter().filter(|&i| !mem::replace(&mut seen[i], true)).collect();
            if front.is_empty() {
                break;
            }
        }
        None
    });
    turns.min().unwrap_or(0)
}

impl Code {
    fn count(&mut self, opcode: &str) {
        match family(opcode) {
            "LDG" | "LD" => self.loads.count(opcode),
            "STG" | "ST" => self.stores.count(opcode),
            "LDS" | "STS" => self.shared.count(opcode),
            "ATOM" | "ATOMG" | "ATOMS" | "RED" | "REDG" => self.atomics += 1,
            "UBLKCP" | "UBLKRED" | "SYNCS" => self.bulk += 1,
            "LDL" | "STL" => self.spills += 1,
            _ => {}
        }
    }
}

/// The operation without its suffixes.
fn family(opcode: &str) -> &str {
    opcode.split('.').next().unwrap_or_default()
}

/// One line of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction<'l> {
    /// Where it stands.
    address: u64,
    /// With its suffixes, without its predicate: `LDG.E.128`.
    opcode: &'l str,
    operands: &'l str,
    /// Whether a predicate decides if it runs.
    is_predicated: bool,
}

impl<'l> Instruction<'l> {
    /// Reads `/*0010*/  @!P0 LDG.E R2, desc[UR4][R2.64] ;  /* 0x... */`. The second half of an encoding is no instruction.
    fn parse(line: &'l str) -> Option<Instruction<'l>> {
        let (address, rest) = line.strip_prefix("/*")?.split_once("*/")?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let (text, _) = rest.split_once(';')?;
        let mut text = text.trim();
        let is_predicated = text.starts_with('@');
        if is_predicated {
            text = text.split_once(' ')?.1.trim_start();
        }
        let (opcode, operands) = text.split_once(' ').unwrap_or((text, ""));
        Some(Instruction { address, opcode, operands: operands.trim(), is_predicated })
    }

    fn family(&self) -> &'l str {
        family(self.opcode)
    }

    /// Where a branch leads; none for other instructions.
    fn target(&self) -> Option<u64> {
        let target = self.operands.rsplit([' ', ',']).next().filter(|_| self.family() == "BRA")?;
        u64::from_str_radix(target.strip_prefix("0x")?, 16).ok()
    }

    /// Whether the next instruction never follows. A branch may carry a predicate among its operands too.
    fn always_leaves(&self) -> bool {
        let leaves = matches!(self.family(), "BRA" | "EXIT" | "RET" | "BRX" | "JMP");
        leaves && !self.is_predicated && !self.operands.contains(',')
    }

    /// The branch to itself behind the last instruction.
    fn is_end(&self) -> bool {
        self.target() == Some(self.address)
    }
}

fn without_padding<'a, 'l>(instructions: &'a [Instruction<'l>]) -> &'a [Instruction<'l>] {
    let padding = instructions.iter().rev().take_while(|instruction| instruction.opcode == "NOP").count();
    let rest = &instructions[..instructions.len() - padding];
    match rest.split_last() {
        Some((last, rest)) if last.is_end() => rest,
        _ => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
Resource usage:
 Common:
  GLOBAL:0
 Function first:
  REG:28 STACK:0 SHARED:1024 LOCAL:0 CONSTANT[0]:632 TEXTURE:0 SURFACE:0 SAMPLER:0

	code for sm_90
		Function : first
	.headerflags	@\"EF_CUDA_SM90\"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                              /* 0x00000a00ff017b82 */
                                                                                       /* 0x000fe20000000800 */
        /*0010*/               @P0 LDG.E.128.STRONG.SYS R4, desc[UR4][R2.64] ;         /* 0x0000030000107ab9 */
        /*0020*/              @!P0 STG.E.64 desc[UR4][R2.64], R4 ;                     /* 0x0000030000107ab9 */
        /*0030*/                   LD.E R4, [R2.64] ;                                  /* 0x0000030000107ab9 */
        /*0040*/                   LDG.E.U8 R4, desc[UR4][R2.64] ;                     /* 0x0000030000107ab9 */
        /*0050*/                   NOP;                                                /* 0x0000000000007918 */
        /*0060*/                   REDG.E.ADD.64.STRONG.SYS desc[UR4][R2.64], R4 ;     /* 0x000000040200098e */
        /*0070*/                   STL [R1], R4 ;                                      /* 0x000000040200098e */
        /*0080*/              @!P0 BRA 0x40 ;                                          /* 0xfffffffc00fc7947 */
        /*0090*/                   EXIT ;                                              /* 0x000000000000794d */
        /*00a0*/                   BRA 0xa0;                                           /* 0xfffffffc00fc7947 */
        /*00b0*/                   NOP;                                                /* 0x0000000000007918 */
        /*00c0*/                   NOP;                                                /* 0x0000000000007918 */
		..........


		Function : second
        /*0000*/                   STS.128 [UR4], R4 ;                                 /* 0x000000000000794d */
        /*0010*/                   EXIT ;                                              /* 0x000000000000794d */
";

    #[test]
    fn instructions_are_counted_without_the_end_and_the_padding() {
        let entries = parse(OUTPUT);
        let first = &entries["first"];
        assert_eq!((first.registers, first.instructions), (28, 10));
        assert_eq!(first.loads, Widths { narrow: 2, double: 0, quad: 1 });
        assert_eq!(first.stores, Widths { double: 1, ..Widths::default() });
        assert_eq!((first.atomics, first.spills, first.bulk), (1, 1, 0));
        assert_eq!(first.turn, 5, "from the load at 0x40 to the branch at 0x80");
        let second = &entries["second"];
        assert_eq!((second.instructions, second.shared.quad, second.turn), (2, 1, 0));
        assert_eq!(entries.len(), 2);
    }

    #[test]
    fn a_turn_takes_the_shortest_way() {
        let listing = "Function : wait
            /*0000*/ LDC R1, c[0x0][0x28] ;
            /*0010*/ LD.E.64.STRONG.SYS R6, [R4.64] ;
            /*0020*/ @P0 EXIT ;
            /*0030*/ @P1 BRA 0x60 ;
            /*0040*/ CS2R R8, SR_GLOBALTIMERLO ;
            /*0050*/ @P2 EXIT ;
            /*0060*/ BRA 0x10 ;
            /*0070*/ LDG.E R2, [R4.64] ;
            /*0080*/ EXIT ;";
        assert_eq!(parse(listing)["wait"].turn, 4);
        assert_eq!(parse(&listing.replace("BRA 0x10", "BRA 0x70"))["wait"].turn, 0);
    }

    #[test]
    fn what_is_no_instruction_is_passed_over() {
        for line in [
            "/* 0x000fe20000000800 */",
            ".headerflags @\"x\"",
            "..........",
            "/*zz*/ EXIT ;",
            "/*0010*/ EXIT",
        ] {
            assert_eq!(Instruction::parse(line), None, "{line}");
        }
        let predicated = Instruction::parse("/*1f0*/ @!UP0 BRA 0x1f0 ; /* 0x */").unwrap();
        assert_eq!((predicated.address, predicated.opcode, predicated.operands), (0x1f0, "BRA", "0x1f0"));
    }
}
