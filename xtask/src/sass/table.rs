//! The entries side by side: ours above its counterpart in C++.

use super::listing::{Code, Widths};

/// One line: whose it is and its code.
pub struct Line<'a> {
    /// The entry's name without its prefix; empty on a counterpart's line.
    pub name: &'a str,
    /// `warpwire`, `C++`, or `bounded`: the C++ with our waits' contract.
    pub who: &'a str,
    /// What it took.
    pub code: &'a Code,
}

/// Prints the lines below a heading.
pub fn print(title: &str, lines: &[Line<'_>]) {
    let width = lines.iter().map(|line| line.name.len()).max().unwrap_or(0).max(title.len());
    println!(
        "{title:<width$}  {:<8}  {:>4}  {:>6}  {:>4}  {:>11}  {:>11}  {:>6}  {:>7}  {:>4}  {:>6}",
        "", "regs", "instr", "turn", "loads", "stores", "shared", "atomics", "bulk", "spills"
    );
    println!(
        "{:<width$}  {:<8}  {:>4}  {:>6}  {:>4}  {:>11}  {:>11}",
        "", "", "", "", "", "32/64/128", "32/64/128"
    );
    for Line { name, who, code } in lines {
        println!(
            "{name:<width$}  {who:<8}  {:>4}  {:>6}  {:>4}  {:>11}  {:>11}  {:>6}  {:>7}  {:>4}  {:>6}",
            code.registers,
            code.instructions,
            code.turn,
            by_width(code.loads),
            by_width(code.stores),
            code.shared.total(),
            code.atomics,
            code.bulk,
            code.spills
        );
    }
}

fn by_width(widths: Widths) -> String {
    format!("{}/{}/{}", widths.narrow, widths.double, widths.quad)
}
