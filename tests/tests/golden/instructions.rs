//! C13 to C15: which instruction each access becomes.

use warpwire_tests::ptx::Instruction;

use super::probes::{each, opcodes};

/// Every order and scope that an instruction has, scope by scope, in each the orders as they are listed in
/// `tests/probes/src/instructions.rs`, in each the 32-bit and the 64-bit form. Written by hand from the PTX ISA, "Data Movement
/// and Conversion Instructions: ld" and ": st", "Parallel Synchronization and Communication Instructions: atom", ": red" and
/// ": membar / fence".
const TABLE: [(&str, &[&str]); 9] = [
    (
        "probe_loads",
        &[
            "ld.relaxed.cta.global.u32",
            "ld.relaxed.cta.global.u64",
            "ld.acquire.cta.global.u32",
            "ld.acquire.cta.global.u64",
            "ld.relaxed.gpu.global.u32",
            "ld.relaxed.gpu.global.u64",
            "ld.acquire.gpu.global.u32",
            "ld.acquire.gpu.global.u64",
            "ld.relaxed.sys.global.u32",
            "ld.relaxed.sys.global.u64",
            "ld.acquire.sys.global.u32",
            "ld.acquire.sys.global.u64",
        ],
    ),
    (
        "probe_stores",
        &[
            "st.relaxed.cta.global.u32",
            "st.relaxed.cta.global.u64",
            "st.release.cta.global.u32",
            "st.release.cta.global.u64",
            "st.relaxed.gpu.global.u32",
            "st.relaxed.gpu.global.u64",
            "st.release.gpu.global.u32",
            "st.release.gpu.global.u64",
            "st.relaxed.sys.global.u32",
            "st.relaxed.sys.global.u64",
            "st.release.sys.global.u32",
            "st.release.sys.global.u64",
        ],
    ),
    (
        "probe_reds",
        &[
            "red.relaxed.cta.global.add.u32",
            "red.relaxed.cta.global.add.u64",
            "red.release.cta.global.add.u32",
            "red.release.cta.global.add.u64",
            "red.relaxed.gpu.global.add.u32",
            "red.relaxed.gpu.global.add.u64",
            "red.release.gpu.global.add.u32",
            "red.release.gpu.global.add.u64",
            "red.relaxed.sys.global.add.u32",
            "red.relaxed.sys.global.add.u64",
            "red.release.sys.global.add.u32",
            "red.release.sys.global.add.u64",
        ],
    ),
    (
        "probe_atom_adds",
        &[
            "atom.relaxed.cta.global.add.u32",
            "atom.relaxed.cta.global.add.u64",
            "atom.acquire.cta.global.add.u32",
            "atom.acquire.cta.global.add.u64",
            "atom.release.cta.global.add.u32",
            "atom.release.cta.global.add.u64",
            "atom.acq_rel.cta.global.add.u32",
            "atom.acq_rel.cta.global.add.u64",
            "atom.relaxed.gpu.global.add.u32",
            "atom.relaxed.gpu.global.add.u64",
            "atom.acquire.gpu.global.add.u32",
            "atom.acquire.gpu.global.add.u64",
            "atom.release.gpu.global.add.u32",
            "atom.release.gpu.global.add.u64",
            "atom.acq_rel.gpu.global.add.u32",
            "atom.acq_rel.gpu.global.add.u64",
            "atom.relaxed.sys.global.add.u32",
            "atom.relaxed.sys.global.add.u64",
            "atom.acquire.sys.global.add.u32",
            "atom.acquire.sys.global.add.u64",
            "atom.release.sys.global.add.u32",
            "atom.release.sys.global.add.u64",
            "atom.acq_rel.sys.global.add.u32",
            "atom.acq_rel.sys.global.add.u64",
        ],
    ),
    (
        "probe_atom_exchs",
        &[
            "atom.relaxed.cta.global.exch.b32",
            "atom.relaxed.cta.global.exch.b64",
            "atom.acquire.cta.global.exch.b32",
            "atom.acquire.cta.global.exch.b64",
            "atom.release.cta.global.exch.b32",
            "atom.release.cta.global.exch.b64",
            "atom.acq_rel.cta.global.exch.b32",
            "atom.acq_rel.cta.global.exch.b64",
            "atom.relaxed.gpu.global.exch.b32",
            "atom.relaxed.gpu.global.exch.b64",
            "atom.acquire.gpu.global.exch.b32",
            "atom.acquire.gpu.global.exch.b64",
            "atom.release.gpu.global.exch.b32",
            "atom.release.gpu.global.exch.b64",
            "atom.acq_rel.gpu.global.exch.b32",
            "atom.acq_rel.gpu.global.exch.b64",
            "atom.relaxed.sys.global.exch.b32",
            "atom.relaxed.sys.global.exch.b64",
            "atom.acquire.sys.global.exch.b32",
            "atom.acquire.sys.global.exch.b64",
            "atom.release.sys.global.exch.b32",
            "atom.release.sys.global.exch.b64",
            "atom.acq_rel.sys.global.exch.b32",
            "atom.acq_rel.sys.global.exch.b64",
        ],
    ),
    (
        "probe_atom_cass",
        &[
            "atom.relaxed.cta.global.cas.b32",
            "atom.relaxed.cta.global.cas.b64",
            "atom.acquire.cta.global.cas.b32",
            "atom.acquire.cta.global.cas.b64",
            "atom.release.cta.global.cas.b32",
            "atom.release.cta.global.cas.b64",
            "atom.acq_rel.cta.global.cas.b32",
            "atom.acq_rel.cta.global.cas.b64",
            "atom.relaxed.gpu.global.cas.b32",
            "atom.relaxed.gpu.global.cas.b64",
            "atom.acquire.gpu.global.cas.b32",
            "atom.acquire.gpu.global.cas.b64",
            "atom.release.gpu.global.cas.b32",
            "atom.release.gpu.global.cas.b64",
            "atom.acq_rel.gpu.global.cas.b32",
            "atom.acq_rel.gpu.global.cas.b64",
            "atom.relaxed.sys.global.cas.b32",
            "atom.relaxed.sys.global.cas.b64",
            "atom.acquire.sys.global.cas.b32",
            "atom.acquire.sys.global.cas.b64",
            "atom.release.sys.global.cas.b32",
            "atom.release.sys.global.cas.b64",
            "atom.acq_rel.sys.global.cas.b32",
            "atom.acq_rel.sys.global.cas.b64",
        ],
    ),
    (
        "probe_load_pairs",
        &[
            "ld.relaxed.cta.global.v2.u64",
            "ld.acquire.cta.global.v2.u64",
            "ld.relaxed.gpu.global.v2.u64",
            "ld.acquire.gpu.global.v2.u64",
            "ld.relaxed.sys.global.v2.u64",
            "ld.acquire.sys.global.v2.u64",
        ],
    ),
    (
        "probe_store_pairs",
        &[
            "st.relaxed.cta.global.v2.u64",
            "st.release.cta.global.v2.u64",
            "st.relaxed.gpu.global.v2.u64",
            "st.release.gpu.global.v2.u64",
            "st.relaxed.sys.global.v2.u64",
            "st.release.sys.global.v2.u64",
        ],
    ),
    (
        "probe_fences",
        &[
            "fence.acq_rel.cta",
            "fence.sc.cta",
            "fence.acq_rel.gpu",
            "fence.sc.gpu",
            "fence.acq_rel.sys",
            "fence.sc.sys",
        ],
    ),
];

/// That each also assembles, the builder has checked with ptxas, where there is one.
#[test]
fn every_order_and_scope_has_its_own_mnemonic() {
    each("every_order_and_scope_has_its_own_mnemonic", |probes| {
        for (entry, expected) in TABLE {
            let flow = probes.flow(entry);
            assert_eq!(
                opcodes(&flow, Instruction::is_communication),
                expected,
                "{entry} for {}",
                probes.arch
            );
        }
    });
}

#[test]
fn a_signal_is_one_red_and_nothing_else() {
    each("a_signal_is_one_red_and_nothing_else", |probes| {
        for (entry, expected) in [
            ("probe_signal", "red.release.sys.global.add.u64"),
            ("probe_signal_relaxed", "red.relaxed.sys.global.add.u64"),
        ] {
            let flow = probes.flow(entry);
            assert_eq!(
                opcodes(&flow, Instruction::is_communication),
                [expected],
                "{entry} for {}",
                probes.arch
            );
        }
    });
}

/// Each look at the word is one load with the right order, behind which the wait may end; the poll loop does nothing else,
/// and little of it, until the policy is asked. How many looks a compiler unrolls is its own affair.
#[test]
fn a_wait_polls_with_one_load_a_look() {
    each("a_wait_polls_with_one_load_a_look", |probes| {
        for (entry, expected) in [
            ("probe_wait", "ld.acquire.sys.global.u64"),
            ("probe_wait_relaxed", "ld.relaxed.sys.global.u64"),
            ("probe_wait_shared", "ld.acquire.sys.global.u64"),
            ("probe_ll8_read", "ld.volatile.global.b64"),
            ("probe_ll16_read", "ld.volatile.global.v2.b64"),
            ("probe_barrier", "ld.acquire.gpu.global.u32"),
        ] {
            let flow = probes.flow(entry);
            let context = format!("{entry} for {}", probes.arch);
            let turns: Vec<_> =
                flow.opcode(expected).into_iter().filter_map(|look| flow.turn(look)).collect();
            assert!(!turns.is_empty(), "{context}: no {expected} stands in a loop");
            for turn in turns {
                assert!(flow.polls(turn.path[0]), "{context}: the poll loop reads something else");
                for look in flow.looks(&turn) {
                    let accesses = look.iter().filter(|instruction| instruction.is_communication()).count();
                    let ends = look.iter().any(|instruction| instruction.is_choice());
                    let text: Vec<_> = look.iter().map(ToString::to_string).collect();
                    assert!(accesses == 1 && ends && look.len() <= 16, "{context}: one look is {text:#?}");
                }
            }
            // Whatever other load there is reads the abort word, a semaphore's own count, or the barrier's phase before the first
            // arrival.
            let rest = opcodes(&flow, |i| i.is_load() && i.opcode != expected);
            let known =
                ["ld.relaxed.sys.global.u32", "ld.relaxed.gpu.global.u64", "ld.relaxed.gpu.global.u32"];
            assert!(rest.iter().all(|opcode| known.contains(opcode)), "{context}: {rest:?}");
        }
    });
}

/// Only the relaxed wait may be relaxed, and it pays for no order.
#[test]
fn a_wait_has_its_own_order_only() {
    each("a_wait_has_its_own_order_only", |probes| {
        assert!(probes.flow("probe_wait").opcode("ld.relaxed.sys.global.u64").is_empty());
        let relaxed = probes.flow("probe_wait_relaxed");
        let ordered = |i: &Instruction| i.opcode.contains(".acquire") || i.opcode.starts_with("fence");
        assert_eq!(opcodes(&relaxed, ordered), [""; 0], "for {}", probes.arch);
    });
}

/// A push is one addition, one fence and one 16-byte store, of which there are two: one for where the cached tail, read before the
/// fence, shows room, and one in the loop that waits for room. The fence stands before both.
#[test]
fn a_push_is_one_store_behind_one_fence() {
    each("a_push_is_one_store_behind_one_fence", |probes| {
        let (flow, context) = (probes.flow("probe_fifo_push"), format!("for {}", probes.arch));
        let one = |opcode: &str| {
            let found = flow.opcode(opcode);
            assert_eq!(found.len(), 1, "{opcode} {context}");
            found[0]
        };
        let fence = one("fence.acq_rel.sys");
        // Those of the wait for room, which claims the question, stand behind.
        let before = |opcode: &str| flow.opcode(opcode).into_iter().filter(|&index| index < fence).count();
        assert_eq!(before("ld.relaxed.gpu.global.u64"), 1, "the cached tail {context}");
        assert_eq!(before("atom.relaxed.gpu.global.add.u64"), 1, "the position {context}");
        let slots = flow.opcode("st.relaxed.sys.global.v2.u64");
        for &slot in &slots {
            assert!(flow.always_after(slot, &[fence]), "the slot can be written without the fence {context}");
        }
        // A lane that waited behind the loop for its warp's others, with its trigger in hand, could wait for what waits for it.
        let in_loop = slots.iter().filter(|&&slot| flow.turn(slot).is_some()).count();
        assert_eq!((slots.len(), in_loop), (2, 1), "slots written, and in the loop {context}");
    });
}

/// Who waits for a FIFO's consumer loads the tail, which lies behind the bus, only where a lane has claimed the question, acquires it,
/// and releases what it saw to the cache. The others acquire that.
#[test]
fn a_fifos_tail_is_asked_for_behind_a_claim() {
    each("a_fifos_tail_is_asked_for_behind_a_claim", |probes| {
        for entry in ["probe_fifo_push", "probe_fifo_sync"] {
            let (flow, context) = (probes.flow(entry), format!("{entry} for {}", probes.arch));
            let (claims, questions) =
                (flow.opcode("vote.sync.any.pred"), flow.opcode("ld.acquire.sys.global.u64"));
            assert!(!questions.is_empty(), "{context}");
            for &question in &questions {
                assert!(flow.turn(question).is_some(), "{context}: asked only once");
                assert!(flow.always_after(question, &claims), "{context}: asked without a claim");
            }
            for opcode in ["st.release.gpu.global.u64", "ld.acquire.gpu.global.u64"] {
                assert!(!flow.opcode(opcode).is_empty(), "{context}: no {opcode}");
            }
        }
    });
}

/// A put of any size writes its slots by the same stores, behind one fence, which comes behind the payload.
#[test]
fn a_port_put_stores_its_payload_before_its_trigger() {
    each("a_port_put_stores_its_payload_before_its_trigger", |probes| {
        let (flow, context) = (probes.flow("probe_port_put"), format!("for {}", probes.arch));
        let (fence, payload) = (flow.opcode("fence.acq_rel.sys"), flow.opcode("st.global.u32"));
        let slots = flow.opcode("st.relaxed.sys.global.v2.u64");
        assert_eq!((fence.len(), payload.len(), slots.len()), (1, 1, 2), "{context}");
        assert!(flow.always_after(fence[0], &payload), "the fence can come without the payload {context}");
        let fenced = slots.iter().all(|&slot| flow.always_after(slot, &fence));
        assert!(fenced, "the slot can be written without the fence {context}");
    });
}

#[test]
fn a_packet_is_one_access() {
    each("a_packet_is_one_access", |probes| {
        for (entry, expected) in
            [("probe_ll8_write", "st.volatile.global.b64"), ("probe_ll16_write", "st.volatile.global.v2.b64")]
        {
            let flow = probes.flow(entry);
            assert_eq!(
                opcodes(&flow, Instruction::is_communication),
                [expected],
                "{entry} for {}",
                probes.arch
            );
        }
    });
}

#[test]
fn a_barrier_arrives_with_one_red() {
    each("a_barrier_arrives_with_one_red", |probes| {
        let flow = probes.flow("probe_barrier");
        assert_eq!(flow.opcode("red.release.gpu.global.add.u32").len(), 1, "for {}", probes.arch);
    });
}
