//! The flow of a kernel's PTX: which instructions can follow which.
//!
//! Golden tests that compare whole texts break with every compiler. These look at what matters: which accesses there are,
//! which come before which on every path, and what one turn of a poll loop costs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::fmt;

use warpwire_build::ptx::Module;

/// One instruction of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// `@%p1` or `@!%p1`; empty where it always runs.
    pub guard: String,
    /// The mnemonic with its qualifiers.
    pub opcode: String,
    /// The rest, as written.
    pub operands: String,
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.guard.is_empty() { "" } else { " " };
        write!(f, "{}{space}{} {}", self.guard, self.opcode, self.operands)
    }
}

impl Instruction {
    fn is(&self, families: &[&str]) -> bool {
        families.contains(&self.opcode.split('.').next().unwrap_or(""))
    }

    /// Whether it reads memory that others can write: any load but that of a parameter.
    #[must_use]
    pub fn is_load(&self) -> bool {
        self.is(&["ld", "ldu"]) && !self.opcode.starts_with("ld.param")
    }

    /// Whether it is a plain, volatile or ordered store: any but that of a call's parameter.
    #[must_use]
    pub fn is_store(&self) -> bool {
        self.is(&["st"]) && !self.opcode.starts_with("st.param")
    }

    /// Whether it is a read-modify-write.
    #[must_use]
    pub fn is_rmw(&self) -> bool {
        self.is(&["atom", "red"])
    }

    /// What stands in brackets: the register with the address that it accesses.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.operands.split_once('[')?.1.split_once(']').map(|(address, _)| address)
    }

    /// Whether it may leave the way that the text goes: a branch with a condition.
    #[must_use]
    pub fn is_choice(&self) -> bool {
        self.is(&["bra"]) && !self.guard.is_empty()
    }

    /// Whether it touches memory, orders accesses or waits for other threads.
    #[must_use]
    pub fn is_communication(&self) -> bool {
        self.is_load()
            || self.is_store()
            || self.is_rmw()
            || self.is(&["fence", "membar", "bar", "barrier", "vote", "shfl", "cp", "prefetch", "call"])
    }
}

/// The instructions of one entry, in the text's order, and what can follow each.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The instructions.
    pub instructions: Vec<Instruction>,
    successors: Vec<Vec<usize>>,
}

/// A path from an instruction back to itself: one turn of a loop, or of several turns that a compiler has unrolled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The positions of the instructions on it, the first one being where it begins.
    pub path: Vec<usize>,
}

impl Flow {
    /// Reads entry `name` of `module`.
    ///
    /// # Panics
    ///
    /// Where there is no such entry, or it branches in a way that this does not know.
    #[must_use]
    pub fn of(module: &Module<'_>, name: &str) -> Self {
        let entry = module.entry(name).unwrap_or_else(|| panic!("no entry {name} in the PTX"));
        Self::parse(&module.text[entry.body.clone()])
    }

    /// Reads the function of `module` whose symbol ends so: one that entries call.
    ///
    /// # Panics
    ///
    /// Where there is no such function, or it branches in a way that this does not know.
    #[must_use]
    pub fn of_function(module: &Module<'_>, ending: &str) -> Self {
        let defined = |name: &str, body: usize| name.ends_with(ending) && body > 0;
        let function = module.functions.iter().find(|function| defined(function.name, function.body.len()));
        let function = function.unwrap_or_else(|| panic!("no function …{ending} in the PTX"));
        Self::parse(&module.text[function.body.clone()])
    }

    /// Reads a body.
    ///
    /// # Panics
    ///
    /// Where it branches in a way that this does not know.
    #[must_use]
    pub fn parse(body: &str) -> Self {
        let (mut instructions, mut labels) = (Vec::new(), BTreeMap::new());
        for statement in statements(body) {
            let mut rest = statement.as_str();
            while let Some((label, behind)) = split_label(rest) {
                labels.insert(label.to_owned(), instructions.len());
                rest = behind;
            }
            // A declaration is no instruction.
            if !rest.is_empty() && !rest.starts_with('.') {
                instructions.push(instruction(rest));
            }
        }
        let successors = (0..instructions.len()).map(|i| successors(&instructions, &labels, i)).collect();
        Self { instructions, successors }
    }

    /// The positions of the instructions that `wanted` names, in the text's order.
    pub fn positions(&self, wanted: impl Fn(&Instruction) -> bool) -> Vec<usize> {
        (0..self.instructions.len()).filter(|&i| wanted(&self.instructions[i])).collect()
    }

    /// The positions of the instructions with exactly this mnemonic.
    #[must_use]
    pub fn opcode(&self, opcode: &str) -> Vec<usize> {
        self.positions(|instruction| instruction.opcode == opcode)
    }

    /// Whether some path leads from `from` to `to` and passes none of `avoiding` in between.
    #[must_use]
    pub fn reaches(&self, from: usize, to: usize, avoiding: &[usize]) -> bool {
        let mut seen: HashSet<usize> = HashSet::new();
        let mut ahead = self.successors[from].clone();
        while let Some(i) = ahead.pop() {
            if i == to {
                return true;
            }
            if !avoiding.contains(&i) && seen.insert(i) {
                ahead.extend(&self.successors[i]);
            }
        }
        false
    }

    /// Whether every path from the entry to `to` passes one of `through`.
    #[must_use]
    pub fn always_after(&self, to: usize, through: &[usize]) -> bool {
        through.contains(&0) || (to != 0 && !self.reaches(0, to, through))
    }

    /// The cheapest way from `at` back to itself: fewest loads, then fewest instructions. `None` where it is in no loop.
    #[must_use]
    pub fn turn(&self, at: usize) -> Option<Turn> {
        let cost = |i: usize| (usize::from(self.instructions[i].is_load()), 1);
        let add = |a: (usize, usize), b: (usize, usize)| (a.0 + b.0, a.1 + b.1);
        let mut best: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
        let mut ahead = BinaryHeap::new();
        for &next in &self.successors[at] {
            ahead.push((Reverse(add(cost(at), cost(next))), next, at));
        }
        while let Some((Reverse(spent), i, from)) = ahead.pop() {
            if best.contains_key(&i) {
                continue;
            }
            best.insert(i, spent);
            came_from.insert(i, from);
            if i == at {
                break;
            }
            for &next in &self.successors[i] {
                ahead.push((Reverse(add(spent, cost(next))), next, i));
            }
        }
        let mut path = vec![*came_from.get(&at)?];
        while *path.last()? != at {
            path.push(*came_from.get(path.last()?)?);
        }
        path.reverse();
        Some(Turn { path })
    }

    /// A turn that begins with a load, cut in front of each load: one look and what follows it, or more where a compiler has
    /// unrolled the loop.
    #[must_use]
    pub fn looks(&self, turn: &Turn) -> Vec<Vec<&Instruction>> {
        let mut looks: Vec<Vec<&Instruction>> = Vec::new();
        for instruction in turn.path.iter().map(|&i| &self.instructions[i]) {
            match looks.last_mut() {
                Some(look) if !instruction.is_load() => look.push(instruction),
                _ => looks.push(vec![instruction]),
            }
        }
        looks
    }

    /// Whether instruction `at` polls: a load in a loop whose cheapest turn reads nothing but with this very instruction.
    #[must_use]
    pub fn polls(&self, at: usize) -> bool {
        let same = |other: &Instruction| {
            let own = &self.instructions[at];
            (&other.opcode, other.address()) == (&own.opcode, own.address())
        };
        self.instructions[at].is_load()
            && self.turn(at).is_some_and(|turn| self.looks(&turn).iter().all(|look| same(look[0])))
    }
}

/// The statements of a body: without comments and braces of blocks, labels still in front.
fn statements(body: &str) -> Vec<String> {
    let text: String =
        body.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n");
    let mut statements = Vec::new();
    for piece in text.split(';') {
        // A block's brace stands in front of a statement; a vector's stands behind a mnemonic.
        let piece = piece.trim().trim_start_matches(['{', '}']).trim();
        if !piece.is_empty() {
            statements.push(piece.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    statements
}

fn split_label(statement: &str) -> Option<(&str, &str)> {
    let (label, behind) = statement.split_once(':')?;
    let is_name = !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || "$_%".contains(c));
    is_name.then(|| (label, behind.trim_start().trim_start_matches('{').trim_start()))
}

fn instruction(statement: &str) -> Instruction {
    let (guard, rest) = match statement.strip_prefix('@') {
        Some(_) => statement.split_once(' ').unwrap_or((statement, "")),
        None => ("", statement),
    };
    let (opcode, operands) = rest.trim_start().split_once(' ').unwrap_or((rest, ""));
    Instruction { guard: guard.to_owned(), opcode: opcode.to_owned(), operands: operands.to_owned() }
}

fn successors(all: &[Instruction], labels: &BTreeMap<String, usize>, i: usize) -> Vec<usize> {
    let instruction = &all[i];
    let is_certain = instruction.guard.is_empty();
    let next = (i + 1 < all.len()).then_some(i + 1);
    match instruction.opcode.split('.').next().unwrap_or("") {
        "ret" | "exit" | "trap" if is_certain => vec![],
        "bra" => {
            let target = instruction.operands.trim();
            let target = *labels.get(target).unwrap_or_else(|| panic!("no label {target}"));
            let mut ways = vec![target];
            // Behind the last instruction there is nothing to fall through to; a branch there is certain.
            ways.extend(next.filter(|_| !is_certain));
            ways.retain(|&way| way < all.len());
            ways
        }
        "brx" => panic!("a branch through a table: {instruction}"),
        _ => next.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOP: &str = "
        ld.param.b64 %rd1, [p]; // a comment; with a semicolon
        st.global.v2.b64 [%rd2], {%rd3, %rd4};
        $L1:
        ld.acquire.sys.global.u64 %rd3, [%rd1];
        setp.ne.b64 %p1, %rd3, 0;
        @%p1 bra $L3;
        @%p2 bra $L1;
        { .reg .pred p; setp.ne.u32 p, %r1, 0; @p ld.relaxed.sys.global.u32 %r1, [%rd4]; }
        bra.uni $L1;
        $L3:
        ret;";

    #[test]
    fn a_body_becomes_instructions_without_comments_labels_and_declarations() {
        let flow = Flow::parse(LOOP);
        let opcodes: Vec<_> = flow.instructions.iter().map(|i| i.opcode.as_str()).collect();
        assert_eq!(opcodes[..3], ["ld.param.b64", "st.global.v2.b64", "ld.acquire.sys.global.u64"]);
        assert_eq!(opcodes[6..], ["setp.ne.u32", "ld.relaxed.sys.global.u32", "bra.uni", "ret"]);
        assert_eq!(flow.instructions[7].guard, "@p");
        assert_eq!(flow.instructions[1].operands, "[%rd2], {%rd3, %rd4}");
    }

    #[test]
    fn the_cheapest_turn_leaves_the_cold_path_out() {
        let flow = Flow::parse(LOOP);
        assert_eq!(flow.turn(2).unwrap().path, [2, 3, 4, 5]);
        assert_eq!(flow.looks(&flow.turn(2).unwrap()).len(), 1);
        assert_eq!(flow.looks(&flow.turn(7).unwrap()).len(), 2);
        assert_eq!(flow.turn(1), None);
        assert!(flow.polls(2) && !flow.polls(7) && !flow.polls(1));
    }

    #[test]
    fn an_unrolled_loop_still_polls() {
        let look = "ld.acquire.sys.global.u64 %rd3, [%rd1]; setp.ne.b64 %p1, %rd3, 0; @%p1 bra $L3;";
        let flow = Flow::parse(&format!("$L1: {look} {look} @%p2 bra $L1; bra.uni $L1; $L3: ret;"));
        let looks = flow.turn(0).map(|turn| flow.looks(&turn).len());
        assert_eq!((looks, flow.polls(0), flow.polls(3)), (Some(2), true, true));
    }

    #[test]
    fn paths_are_followed_both_ways() {
        let flow = Flow::parse(LOOP);
        assert!(flow.reaches(1, 9, &[]) && !flow.reaches(1, 9, &[4]) && !flow.reaches(2, 1, &[]));
        assert!(flow.always_after(9, &[2]) && !flow.always_after(9, &[7]));
    }
}
