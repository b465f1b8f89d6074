//! The layer on a real adapter, one queue pair with another of the same process. Skipped where there is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::error::Result;

const LONG: Duration = Duration::from_secs(60);
const PATIENCE: Patience = Patience { timeout: 12, retries: 3, receiver_retries: 1, receiver_timer: 5 };

/// The first adapter; `None` where the tests are to be skipped, which it says.
fn adapter() -> Option<Adapter> {
    if std::env::var("WARPWIRE_DISABLE_IB_TESTS").is_ok_and(|value| value == "1") {
        println!("skipped: WARPWIRE_DISABLE_IB_TESTS is 1");
        return None;
    }
    match Adapter::for_index(0) {
        Ok(adapter) => Some(adapter),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// An end with registered memory.
struct End {
    queue_pair: QueuePair,
    region: Arc<Region>,
    words: Arc<Vec<AtomicU64>>,
}

const WORDS: usize = 1024;

impl End {
    fn new(adapter: &Adapter, depths: Depths) -> Self {
        let words: Arc<Vec<AtomicU64>> = Arc::new((0..WORDS).map(|_| AtomicU64::new(0)).collect());
        let none = |_, _| Err(crate::error::VerbsError::NoAdapter.into());
        let source = Source {
            address: words.as_ptr().expose_provenance() as u64,
            bytes: (WORDS * 8) as u64,
            placement: Placement::Host,
            dma_buf: &none,
        };
        // SAFETY: the vector is never pushed to, and lives as long as the keeper.
        let region = unsafe { Region::register(adapter.domain(), &source, Arc::clone(&words) as _) }.unwrap();
        let (send, receive) = (adapter.polled_queue(64).unwrap(), adapter.polled_queue(64).unwrap());
        let queue_pair = QueuePair::new(adapter.domain(), &send, &receive, depths).unwrap();
        Self { queue_pair, region, words }
    }

    fn address(&self, route: &Route) -> Address {
        Address {
            number: self.queue_pair.number(),
            first_packet: 7,
            lid: route.lid,
            gid: route.gid,
            mtu: route.mtu,
            is_ethernet: route.is_ethernet,
        }
    }

    fn remote(&self, word: u64) -> Remote {
        Remote { address: self.words.as_ptr().addr() as u64 + word * 8, key: self.region.remote_key() }
    }

    fn local(&self, word: u64, words: u32) -> Local {
        let address = self.words.as_ptr().addr() as u64 + word * 8;
        Local { address, bytes: words * 8, key: self.region.local_key() }
    }

    fn post(&self, id: u64, work: Work) -> Result<()> {
        self.queue_pair.post(&[Request { id, work, signalled: true }])
    }

    /// The next completion of a send.
    fn sent(&self) -> Completion {
        next(self.queue_pair.send_completions())
    }
}

fn next(queue: &CompletionQueue) -> Completion {
    let begun = Instant::now();
    let mut found = Vec::new();
    while found.is_empty() {
        queue.poll(|completion| found.push(completion)).unwrap();
        assert!(begun.elapsed() < LONG, "nothing completes");
    }
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

fn pair(adapter: &Adapter) -> [End; 2] {
    let ends = [(); 2].map(|()| End::new(adapter, Depths { send: 16, receive: 16 }));
    let (route, _) = adapter.route(None, None).unwrap();
    for (end, other) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
        end.queue_pair.initialise(route.port).unwrap();
        end.queue_pair.answer(&route, &other.address(&route), PATIENCE).unwrap();
        end.queue_pair.speak(7, PATIENCE).unwrap();
    }
    ends
}

#[test]
fn requests_of_every_kind_do_what_they_say() {
    let Some(adapter) = adapter() else { return };
    let [a, b] = pair(&adapter);
    a.words[0].store(0x1122_3344_5566_7788, Ordering::SeqCst);
    a.post(1, Work::Write { from: a.local(0, 1), to: b.remote(5) }).unwrap();
    assert_eq!(a.sent(), Completion { id: 1, outcome: Outcome::Sent });
    assert_eq!(b.words[5].load(Ordering::SeqCst), 0x1122_3344_5566_7788);
    a.post(2, Work::WriteWord { value: 40, to: b.remote(6) }).unwrap();
    assert_eq!(a.sent().outcome, Outcome::Sent);
    if adapter.has_atomics() {
        a.post(3, Work::FetchAdd { add: 2, to: b.remote(6), old: a.local(9, 1) }).unwrap();
        assert_eq!(a.sent().outcome, Outcome::Sent);
        assert_eq!((b.words[6].load(Ordering::SeqCst), a.words[9].load(Ordering::SeqCst)), (42, 40));
    }
    let place = b.local(100, 3);
    for id in 0..2 {
        b.queue_pair.post_receive(id, place.address, place.bytes, place.key).unwrap();
    }
    a.post(4, Work::Send { words: [7, 8, 9] }).unwrap();
    assert_eq!(
        next(b.queue_pair.receive_completions()),
        Completion { id: 0, outcome: Outcome::Received(24) }
    );
    assert_eq!([100, 101, 102].map(|at| b.words[at].load(Ordering::SeqCst)), [7, 8, 9]);
    assert_eq!(a.sent().id, 4);
    a.post(5, Work::WriteImmediate { value: 0xfedc_ba98 }).unwrap();
    let arrived = next(b.queue_pair.receive_completions());
    assert_eq!(arrived, Completion { id: 1, outcome: Outcome::Immediate(0xfedc_ba98) });
    assert_eq!(a.sent().id, 5);
}

/// What a request failed of, in words.
fn failure(end: &End, completion: Completion) -> String {
    match completion.outcome {
        Outcome::Failed(status) => end.queue_pair.send_completions().words(status),
        other => panic!("it did not fail: {other:?}"),
    }
}

#[test]
fn a_signal_without_a_receive_fails_after_its_retries() {
    let Some(adapter) = adapter() else { return };
    let [a, _b] = pair(&adapter);
    a.post(1, Work::WriteImmediate { value: 1 }).unwrap();
    let error = failure(&a, a.sent());
    assert!(error.contains("the peer takes no more signals"), "{error}");
}

#[test]
fn a_key_that_is_none_and_a_range_that_is_too_long_are_refused() {
    let Some(adapter) = adapter() else { return };
    let [a, b] = pair(&adapter);
    let end = Remote { address: b.remote(WORDS as u64 - 1).address, ..b.remote(0) };
    a.post(1, Work::Write { from: a.local(0, 2), to: end }).unwrap();
    let error = failure(&a, a.sent());
    assert!(error.contains("no longer registered, or not all of the range is"), "{error}");
    // What comes after a failure is swept out.
    let [a, b] = pair(&adapter);
    let wrong = Remote { key: b.remote(0).key ^ 0xff00, ..b.remote(0) };
    a.post(1, Work::WriteWord { value: 1, to: wrong }).unwrap();
    assert!(matches!(a.sent().outcome, Outcome::Failed(status) if !status.is_flush()));
    a.post(2, Work::WriteWord { value: 1, to: b.remote(0) }).unwrap();
    assert!(matches!(a.sent().outcome, Outcome::Failed(status) if status.is_flush()));
}

#[test]
fn a_peer_that_is_gone_is_noticed() {
    let Some(adapter) = adapter() else { return };
    let [a, b] = pair(&adapter);
    let to = b.remote(0);
    drop(b);
    a.post(1, Work::WriteWord { value: 1, to }).unwrap();
    let completion = a.sent();
    assert!(matches!(completion.outcome, Outcome::Failed(status) if status.is_unanswered()));
}

#[test]
fn a_full_queue_refuses_more() {
    let Some(adapter) = adapter() else { return };
    let [a, b] = pair(&adapter);
    // The peer's adapter answers nothing any more, so that requests stay under way.
    b.queue_pair.stop().unwrap();
    let mut posted = 0;
    let error = loop {
        match a.post(posted, Work::WriteWord { value: 1, to: b.remote(0) }) {
            Ok(()) => posted += 1,
            Err(error) => break error.to_string(),
        }
        assert!(posted < 100_000, "the queue takes everything");
    };
    assert!(posted >= 16, "{posted}");
    assert!(error.contains("posting to a send queue on ") && error.contains(adapter.name()), "{error}");
}

#[test]
fn states_come_in_their_order_and_errors_name_them() {
    let Some(adapter) = adapter() else { return };
    let end = End::new(&adapter, Depths { send: 4, receive: 4 });
    let error = end.queue_pair.speak(0, PATIENCE).unwrap_err().to_string();
    assert!(error.contains("from RESET to RTS") && error.contains("there is no such change"), "{error}");
    let error = end.queue_pair.initialise(77).unwrap_err().to_string();
    assert!(error.contains("from RESET to INIT") && error.contains("port"), "{error}");
    let (route, _) = adapter.route(None, None).unwrap();
    end.queue_pair.initialise(route.port).unwrap();
    end.queue_pair.stop().unwrap();
    end.queue_pair.reset().unwrap();
    end.queue_pair.initialise(route.port).unwrap();
}

#[test]
fn two_hundred_queue_pairs_come_and_go() {
    let Some(adapter) = adapter() else { return };
    for round in 0..200 {
        let [a, b] = pair(&adapter);
        a.post(round, Work::WriteWord { value: round, to: b.remote(0) }).unwrap();
        assert_eq!(a.sent(), Completion { id: round, outcome: Outcome::Sent });
        assert_eq!(b.words[0].load(Ordering::SeqCst), round);
    }
}

#[test]
fn what_was_made_keeps_what_it_was_made_of() {
    let Some(adapter) = adapter() else { return };
    let [a, b] = pair(&adapter);
    // The adapter's own handle goes first: the queue pairs keep it open.
    drop(adapter);
    a.post(1, Work::WriteWord { value: 3, to: b.remote(0) }).unwrap();
    assert_eq!(a.sent().outcome, Outcome::Sent);
    let End { queue_pair, region, words } = a;
    drop((words, queue_pair, region));
    let key = b.region.remote_key();
    let domain = Arc::clone(Adapter::for_index(0).unwrap().domain());
    assert!(domain.region(key).is_some_and(|region| region.holds(b.remote(0).address, 8)));
    drop(b);
    assert!(domain.region(key).is_none());
}
