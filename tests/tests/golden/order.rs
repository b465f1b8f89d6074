//! C17: no payload access moves across the signal or the wait that orders it.

use warpwire_tests::ptx::{Flow, Instruction};

use super::probes::{Probes, each};

const SIGNAL: &str = "red.release.sys.global.add.u64";
const LOOK: &str = "ld.acquire.sys.global.u64";

fn signal(probes: &Probes, entry: &str) -> (Flow, usize) {
    let flow = probes.flow(entry);
    let signals = flow.opcode(SIGNAL);
    assert_eq!(signals.len(), 1, "{entry} for {} signals once", probes.arch);
    (flow, signals[0])
}

/// No path leads from the signal to a store, and none to the signal round the stores.
#[test]
fn a_payload_is_stored_before_its_signal() {
    each("a_payload_is_stored_before_its_signal", |probes| {
        let (flow, signal) = signal(probes, "probe_store_signal");
        let stores = flow.positions(Instruction::is_store);
        assert_eq!(stores.len(), 1);
        assert!(
            !flow.reaches(signal, stores[0], &[]),
            "the store stands behind the signal, for {}",
            probes.arch
        );
        assert!(
            flow.always_after(signal, &stores),
            "the signal can come without the store, for {}",
            probes.arch
        );
    });
}

/// A block's put: every store comes before the signal, and the block's barrier between them.
#[test]
fn a_block_puts_then_meets_then_signals() {
    each("a_block_puts_then_meets_then_signals", |probes| {
        let (flow, signal) = signal(probes, "probe_put_signal");
        let barriers =
            flow.positions(|i| i.opcode.starts_with("bar.sync") || i.opcode.starts_with("barrier.sync"));
        let stores = flow.positions(Instruction::is_store);
        assert!(!stores.is_empty() && !barriers.is_empty());
        for store in stores {
            let text = &flow.instructions[store];
            assert!(!flow.reaches(signal, store, &[]), "{text} can follow the signal, for {}", probes.arch);
            assert!(flow.reaches(store, signal, &[]), "{text} leads to no signal, for {}", probes.arch);
            assert!(
                !flow.reaches(store, signal, &barriers),
                "{text}: no barrier on the way, for {}",
                probes.arch
            );
        }
    });
}

/// The payload is loaded only behind a look at the token.
#[test]
fn a_payload_is_loaded_behind_its_wait() {
    each("a_payload_is_loaded_behind_its_wait", |probes| {
        let flow = probes.flow("probe_wait_load");
        let payload = flow.opcode("ld.global.u32");
        assert_eq!(payload.len(), 1, "for {}", probes.arch);
        let looks = flow.opcode(LOOK);
        assert!(
            flow.always_after(payload[0], &looks),
            "the load can come before the wait, for {}",
            probes.arch
        );
        for look in looks {
            assert!(
                !flow.reaches(payload[0], look, &[]),
                "the wait can follow the load, for {}",
                probes.arch
            );
        }
    });
}

/// A wait reads how many signals have been taken before it looks, by no atomic, and takes one only behind a look: a wait that has
/// failed, which is told by a call, takes none.
#[test]
fn a_wait_takes_its_signal_last() {
    each("a_wait_takes_its_signal_last", |probes| {
        let flow = probes.flow("probe_wait");
        let context = format!("for {}", probes.arch);
        let one = |opcode: &str| {
            let found = flow.opcode(opcode);
            assert_eq!(found.len(), 1, "{opcode} {context}");
            found[0]
        };
        let (read, taken) = (one("ld.relaxed.gpu.global.u64"), one("st.relaxed.gpu.global.u64"));
        let (looks, report) = (flow.opcode(LOOK), one("call.uni"));
        assert!(looks.iter().all(|&look| flow.always_after(look, &[read])), "{context}");
        assert!(flow.always_after(taken, &looks), "{context}");
        assert!(!flow.reaches(report, taken, &[]), "a failed wait takes a signal, {context}");
        assert!(flow.opcode("atom.relaxed.gpu.global.add.u64").is_empty(), "{context}");
    });
}

/// The shared wait takes its number before it looks, and gives it back only where it has failed.
#[test]
fn a_shared_wait_takes_its_number_first() {
    each("a_shared_wait_takes_its_number_first", |probes| {
        let flow = probes.flow("probe_wait_shared");
        let taken = flow.opcode("atom.relaxed.gpu.global.add.u64");
        assert_eq!(taken.len(), 1, "for {}", probes.arch);
        for look in flow.opcode(LOOK) {
            assert!(flow.always_after(look, &taken), "for {}", probes.arch);
        }
        let returned = flow.opcode("red.relaxed.gpu.global.add.u64");
        let asked = flow.opcode("ld.relaxed.sys.global.u32");
        assert_eq!(returned.len(), 1, "for {}", probes.arch);
        assert!(
            flow.always_after(returned[0], &asked),
            "a wait fails without having asked, for {}",
            probes.arch
        );
    });
}
