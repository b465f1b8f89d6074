//! The golden lines: for each primitive the instructions that touch memory, order accesses or wait for other threads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use warpwire_tests::ptx::{Flow, Instruction};

use super::probes::each;

/// Probes of one path: every instruction counts, and so does its place.
const STRAIGHT: [&str; 6] = [
    "probe_signal",
    "probe_signal_relaxed",
    "probe_poll",
    "probe_ll8_write",
    "probe_ll16_write",
    "probe_store_signal",
];

/// Probes of one conversion or sum: how a vector comes and goes.
const VECTORS: [&str; 12] = [
    "probe_f16x4_to_e4m3b15x4",
    "probe_e4m3b15x4_to_f16x4",
    "probe_f32x4_to_e4m3b15x4",
    "probe_e4m3b15x4_to_f32x4",
    "probe_f16x4_to_e4m3b15_extendedx4",
    "probe_e4m3b15_extendedx4_to_f16x4",
    "probe_f32x4_to_e4m3b15_extendedx4",
    "probe_e4m3b15_extendedx4_to_f32x4",
    "probe_f32x4_to_e4m3x4",
    "probe_e5m2x4_to_f16x4",
    "probe_sum_u8x4",
    "probe_sum_e4m3b15x4",
];

/// Probes that branch: where a compiler puts a block, and how often it unrolls a loop, is its own affair.
const BRANCHING: [&str; 15] = [
    "probe_wait",
    "probe_wait_relaxed",
    "probe_wait_shared",
    "probe_ll8_read",
    "probe_ll16_read",
    "probe_barrier",
    "probe_wait_load",
    "probe_copy",
    "probe_put_signal",
    "probe_put_packets",
    "probe_unpack_packets",
    "probe_fifo_push",
    "probe_fifo_sync",
    "probe_port_put",
    "probe_port_flush",
];

/// The function that waits call to leave their report.
const REPORT: &str = "leave_report";

/// Every instruction, in order.
fn straight(entry: &str, flow: &Flow) -> String {
    let lines =
        flow.positions(Instruction::is_communication).into_iter().map(|i| spelled(&flow.instructions[i]));
    format!("// {entry}: what touches memory or waits for others, in order.\n{}", joined(lines))
}

/// The kinds of instructions, sorted.
fn branching(entry: &str, flow: &Flow) -> String {
    let mut kinds: BTreeMap<String, bool> = BTreeMap::new();
    for i in flow.positions(Instruction::is_communication) {
        *kinds.entry(spelled(&flow.instructions[i])).or_default() |=
            flow.polls(i) && is_polling(&flow.instructions[i]);
    }
    let lines =
        kinds.into_iter().map(|(kind, polled)| if polled { format!("{kind}  // polled") } else { kind });
    format!("// {entry}: the kinds of instructions that touch memory or wait for others.\n{}", joined(lines))
}

/// Whether it looks at what others write meanwhile.
fn is_polling(instruction: &Instruction) -> bool {
    instruction.is_load()
        && ["acquire", "relaxed", "volatile"].iter().any(|order| instruction.opcode.contains(order))
}

fn joined(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| line + "\n").collect()
}

/// Without registers, which a compiler numbers as it likes.
fn spelled(instruction: &Instruction) -> String {
    if instruction.guard.is_empty() {
        instruction.opcode.clone()
    } else {
        format!("@p {}", instruction.opcode)
    }
}

fn file(entry: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(format!("{entry}.ptx-lines"))
}

/// One file serves all architectures: the primitives are the same instructions on each.
#[test]
fn primitives_are_their_golden_lines() {
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    each("primitives_are_their_golden_lines", |probes| {
        let straight =
            STRAIGHT.iter().chain(&VECTORS).map(|&entry| (entry, straight(entry, &probes.flow(entry))));
        let branching = BRANCHING.map(|entry| (entry, branching(entry, &probes.flow(entry))));
        let report = self::straight(REPORT, &Flow::of_function(&probes.module(), REPORT));
        for (entry, now) in straight.chain(branching).chain([(REPORT, report)]) {
            let path = file(entry);
            if bless {
                fs::write(&path, now).expect("the golden files can be written");
                continue;
            }
            let golden = fs::read_to_string(&path).unwrap_or_default();
            assert!(
                now == golden,
                "{entry} for {} is not what {} says (BLESS=1 writes it anew):\n{now}\nbut there:\n{golden}",
                probes.arch,
                path.display(),
            );
        }
    });
}

/// A probe without golden lines or a table of its own would not be looked at.
#[test]
fn every_probe_is_looked_at() {
    each("every_probe_is_looked_at", |probes| {
        let module = probes.module();
        let tables = [
            "loads",
            "stores",
            "reds",
            "atom_adds",
            "atom_exchs",
            "atom_cass",
            "load_pairs",
            "store_pairs",
            "fences",
        ];
        for entry in &module.entries {
            let has_lines =
                [&STRAIGHT[..], &VECTORS, &BRANCHING].iter().any(|list| list.contains(&entry.name));
            let has_table = tables.iter().any(|name| entry.name == format!("probe_{name}"));
            assert!(has_lines || has_table, "{} is in no list", entry.name);
        }
        assert_eq!(module.entries.len(), STRAIGHT.len() + VECTORS.len() + BRANCHING.len() + tables.len());
    });
}
