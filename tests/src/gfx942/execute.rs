//! Executes instructions, for one lane.

use super::parse::{Function, Instruction, Operand};

/// The instructions that are known. `D` is the destination, `S0` to `S2` the sources in their order; a packed instruction does
/// the same with the lower and with the upper 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// `s_mov_b32`: D = S0.
    ScalarMove,
    /// `v_mov_b32`: D = S0.
    Move,
    /// `v_and_b32`: D = S0 & S1.
    And,
    /// `v_and_or_b32`: D = (S0 & S1) | S2.
    AndOr,
    /// `v_bfi_b32`: D = (S0 & S1) | (~S0 & S2).
    Insert,
    /// `v_lshl_add_u32`: `D = (S0 << S1[4:0]) + S2`.
    ShiftAdd,
    /// `v_perm_b32`: each byte of D is the one of {S0, S1}, S0 above S1, that the byte of S2 numbers.
    Permute,
    /// `v_pk_add_u16`: D = S0 + S1.
    PackedAdd,
    /// `v_pk_sub_u16`: D = S0 - S1; with `clamp` 0 where that is negative.
    PackedSubtract,
    /// `v_pk_min_u16`: D = min(S0, S1), unsigned.
    PackedMinimum,
    /// `v_pk_ashrrev_i16`: `D = S1 >> S0[3:0]`, the sign coming in.
    PackedShift,
}

use Opcode::{
    And, AndOr, Insert, Move, PackedAdd, PackedMinimum, PackedShift, PackedSubtract, Permute, ScalarMove,
    ShiftAdd,
};

impl Opcode {
    /// The opcode of a mnemonic; `_e32` says that it is encoded in 32 bits.
    #[must_use]
    pub fn from_mnemonic(mnemonic: &str) -> Option<Self> {
        Some(match mnemonic.strip_suffix("_e32").unwrap_or(mnemonic) {
            "s_mov_b32" => ScalarMove,
            "v_mov_b32" => Move,
            "v_and_b32" => And,
            "v_and_or_b32" => AndOr,
            "v_bfi_b32" => Insert,
            "v_lshl_add_u32" => ShiftAdd,
            "v_perm_b32" => Permute,
            "v_pk_add_u16" => PackedAdd,
            "v_pk_sub_u16" => PackedSubtract,
            "v_pk_min_u16" => PackedMinimum,
            "v_pk_ashrrev_i16" => PackedShift,
            _ => return None,
        })
    }

    /// How many operands it has, with its destination.
    #[must_use]
    pub const fn operands(self) -> usize {
        match self {
            ScalarMove | Move => 2,
            And | PackedAdd | PackedSubtract | PackedMinimum | PackedShift => 3,
            AndOr | Insert | ShiftAdd | Permute => 4,
        }
    }

    /// Whether it works on two halves.
    #[must_use]
    pub const fn is_packed(self) -> bool {
        matches!(self, PackedAdd | PackedSubtract | PackedMinimum | PackedShift)
    }

    /// Whether it may carry `clamp` here.
    #[must_use]
    pub const fn can_clamp(self) -> bool {
        matches!(self, PackedSubtract)
    }
}

/// One lane's registers.
#[derive(Clone, Debug)]
pub struct Machine {
    vector: [u32; 256],
    scalar: [u32; 102],
}

impl Default for Machine {
    /// Every register holds what no instruction may rely on.
    fn default() -> Self {
        Self { vector: [0xDEAD_BEEF; 256], scalar: [0xDEAD_BEEF; 102] }
    }
}

impl Machine {
    /// Calls `function` with its arguments in `v0` and on, and gives `v0` and `v1`.
    ///
    /// # Panics
    ///
    /// Where it names a register that gfx942 has not.
    #[must_use]
    pub fn call(function: &Function, arguments: &[u32]) -> [u32; 2] {
        let mut machine = Self::default();
        machine.vector[..arguments.len()].copy_from_slice(arguments);
        for instruction in &function.instructions {
            machine.execute(instruction);
        }
        [machine.vector[0], machine.vector[1]]
    }

    fn read(&self, operand: Operand) -> u32 {
        match operand {
            Operand::Vector(register) => self.vector[register],
            Operand::Scalar(register) => self.scalar[register],
            Operand::Literal(value) => value,
        }
    }

    fn execute(&mut self, instruction: &Instruction) {
        let source = |k: usize| instruction.operands.get(k + 1).map_or(0, |&operand| self.read(operand));
        let (a, b, c) = (source(0), source(1), source(2));
        let result = match instruction.opcode {
            ScalarMove | Move => a,
            And => a & b,
            AndOr => (a & b) | c,
            Insert => (a & b) | (!a & c),
            ShiftAdd => (a << (b & 31)).wrapping_add(c),
            Permute => permute(a, b, c),
            PackedAdd => by_half(a, b, u16::wrapping_add),
            PackedSubtract if instruction.clamp => by_half(a, b, u16::saturating_sub),
            PackedSubtract => by_half(a, b, u16::wrapping_sub),
            PackedMinimum => by_half(a, b, Ord::min),
            PackedShift => by_half(a, b, |count, value| ((value as i16) >> (count & 15)) as u16),
        };
        match instruction.operands[0] {
            Operand::Vector(register) => self.vector[register] = result,
            Operand::Scalar(register) => self.scalar[register] = result,
            Operand::Literal(_) => unreachable!("the parser lets no number be written"),
        }
    }
}

fn by_half(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

fn permute(high: u32, low: u32, selector: u32) -> u32 {
    let bytes = (u64::from(high) << 32 | u64::from(low)).to_le_bytes();
    let sign = |byte: usize| if bytes[byte] & 0x80 == 0 { 0 } else { 0xFF };
    u32::from_le_bytes(selector.to_le_bytes().map(|select| match select {
        0..=7 => bytes[usize::from(select)],
        8 => sign(1),
        9 => sign(3),
        10 => sign(5),
        11 => sign(7),
        12 => 0,
        13.. => 0xFF,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str, arguments: &[u32]) -> u32 {
        let assembly = format!("f:\n\t{line}\n\ts_setpc_b64 s[30:31]\n");
        Machine::call(&Function::find(&assembly, "f").unwrap(), arguments)[0]
    }

    #[test]
    fn bytes_are_permuted() {
        let words = [0x0706_0504, 0x8302_0100];
        let select = |selector| run("v_perm_b32 v0, v0, v1, v2", &[words[0], words[1], selector]);
        assert_eq!(select(0x0302_0100), 0x8302_0100);
        assert_eq!(select(0x0706_0504), 0x0706_0504);
        assert_eq!(select(0x090C_0D04), 0xFF00_FF04);
    }

    #[test]
    fn halves_stay_apart() {
        assert_eq!(run("v_pk_add_u16 v0, v0, v1", &[0xFFFF_FFFF, 0x0001_0002]), 0x0000_0001);
        assert_eq!(run("v_pk_sub_u16 v0, v0, v1", &[0x0000_0005, 0x0001_0002]), 0xFFFF_0003);
        assert_eq!(run("v_pk_sub_u16 v0, v0, v1 clamp", &[0x0000_0005, 0x0001_0002]), 0x0000_0003);
        assert_eq!(run("v_pk_min_u16 v0, v0, v1", &[0x8000_0001, 0x7FFF_0002]), 0x7FFF_0001);
        assert_eq!(run("v_pk_ashrrev_i16 v0, v0, v1", &[0x0001_000F, 0x8000_8000]), 0xC000_FFFF);
    }

    #[test]
    fn words_are_combined() {
        assert_eq!(run("v_bfi_b32 v0, v0, v1, v2", &[0xFF00, 0x1234_5678, 0xABCD_EF01]), 0xABCD_5601);
        assert_eq!(run("v_and_or_b32 v0, v0, v1, v2", &[0xF0F0, 0xFF00, 0x000F]), 0xF00F);
        assert_eq!(run("v_lshl_add_u32 v0, v0, 1, v1", &[0x8000_0001, 5]), 7);
        assert_eq!(run("v_and_b32_e32 v0, 0x7fff7fff, v0", &[0xFFFF_8001]), 0x7FFF_0001);
    }
}
