//! How ends meet, and what becomes of one whose peer does not come.

use std::collections::BTreeSet;

use socket2::SockRef;

use super::*;
use crate::bootstrap::{Bootstrap, LocalBootstrap};
use crate::net::payload::decode;

/// Both ends are asked in one thread, in whichever order: a rank need not be waited for where it waits.
#[test]
fn ends_meet_whoever_is_asked_first() {
    let device = cpu();
    let site = site(&device);
    for round in 0..8 {
        let ends = [endpoint(&device, LOOPBACK), endpoint(&device, LOOPBACK)];
        let said = [0, 1].map(|end: usize| ends[end].description().unwrap());
        let links = ends
            .into_iter()
            .zip(said.iter().rev())
            .map(|(end, description)| Connection::over(end.join(peer(1, &site, description), LONG).unwrap()));
        let links: Vec<_> = links.collect();
        let (buffer, _registered, there) = word(&device);
        links[round % 2].update(&there, 0, 7).unwrap();
        links[round % 2].flush(LONG).unwrap();
        assert_eq!(buffer.read().unwrap(), [7]);
    }
}

#[test]
fn ends_that_do_not_meet_say_whom_they_waited_for() {
    let device = cpu();
    let site = site(&device);
    let short = Duration::from_millis(100);
    let mut seen = BTreeSet::new();
    for _ in 0..100 {
        // Either the one that listens is never called, or the one that calls finds a listener that is not served.
        let (one, other) = (endpoint(&device, LOOPBACK), endpoint(&device, LOOPBACK));
        let description = other.description().unwrap();
        let there = peer(9, &site, &description);
        let connection = Connection::over(Arc::new(one.meet(there, Deadline::after(short)).unwrap()));
        eventually("it fails", || connection.mark().is_err());
        let error = text(connection.mark());
        let known = ["did not connect within 100ms", "did not answer in time"];
        let which = known.iter().position(|part| error.contains(part));
        assert!(error.contains("to rank 9 has failed") && which.is_some(), "{error}");
        seen.extend(which);
        if seen.len() == 2 {
            return;
        }
    }
    panic!("a hundred ends were all of one kind: {seen:?}");
}

#[test]
fn a_connection_that_has_yet_to_come_about_can_be_closed() {
    let device = cpu();
    let site = site(&device);
    for _ in 0..8 {
        let (one, other) = (endpoint(&device, LOOPBACK), endpoint(&device, LOOPBACK));
        let description = other.description().unwrap();
        // With a limit beyond the test's patience: the close alone can end it.
        let link = one.join(peer(9, &site, &description), 10 * LONG).unwrap();
        let connection = Connection::over(link);
        connection.close();
        assert!(text(connection.mark()).contains("was closed by this rank"));
    }
}

/// Whichever end closes, and whether they have met by then or not, the other hears of it.
#[test]
fn an_end_that_closes_at_once_is_heard_of() {
    let device = cpu();
    let site = site(&device);
    for _ in 0..20 {
        let ends = [endpoint(&device, LOOPBACK), endpoint(&device, LOOPBACK)];
        let said = [0, 1].map(|end: usize| ends[end].description().unwrap());
        let links = ends.into_iter().zip(said.iter().rev()).map(|(end, description)| {
            Connection::over(end.join(peer(1, &site, description), 10 * LONG).unwrap())
        });
        let links: Vec<_> = links.collect();
        links[0].close();
        let (_buffer, _registered, there) = word(&device);
        eventually("the other has failed", || links[1].update(&there, 0, 1).is_err());
        let error = text(links[1].update(&there, 0, 1));
        assert!(error.contains("to rank 1 has failed: "), "{error}");
    }
}

#[test]
fn an_end_that_has_gone_is_not_waited_for() {
    let device = cpu();
    let site = site(&device);
    let mut gone = 0;
    for _ in 0..100 {
        let (one, other) = (endpoint(&device, LOOPBACK), endpoint(&device, LOOPBACK));
        let description = other.description().unwrap();
        let listens = one.listens(&decode(&description).unwrap());
        drop(other);
        if listens {
            // It would wait for its deadline, since nobody tells it.
            continue;
        }
        // With a limit beyond the test's patience.
        let deadline = Deadline::after(10 * LONG);
        let there = peer(9, &site, &description);
        let connection = Connection::over(Arc::new(one.meet(there, deadline).unwrap()));
        eventually("it fails", || connection.mark().is_err());
        let error = text(connection.mark());
        assert!(error.contains("to rank 9 has failed: at 127.0.0.1:"), "{error}");
        gone += 1;
        if gone == 3 {
            return;
        }
    }
    panic!("a hundred ends would all have listened");
}

/// An end that listens for rank 1 of `own`'s job, that rank's own end, and what it has to know.
fn one_that_listens(
    device: &Device,
    own: &Arc<dyn Bootstrap>,
    deadline: Deadline,
) -> (Connection, Box<EthernetEndpoint>, Vec<u8>) {
    let site = site(device);
    loop {
        let (one, other) = (endpoint(device, LOOPBACK), endpoint(device, LOOPBACK));
        let (said, description) = (one.description().unwrap(), other.description().unwrap());
        if !one.listens(&decode(&description).unwrap()) {
            continue;
        }
        let life = Life::new(Arc::downgrade(own), Rank(1));
        let there = Peer { life, ..peer(1, &site, &description) };
        let connection = Connection::over(Arc::new(one.meet(there, deadline).unwrap()));
        return (connection, other, said);
    }
}

/// A job of two ranks: this one's part, and the other's.
fn job() -> [Arc<dyn Bootstrap>; 2] {
    let ranks = LocalBootstrap::group(2).unwrap();
    <[_; 2]>::try_from(ranks).unwrap().map(|rank| Arc::new(rank) as Arc<dyn Bootstrap>)
}

#[test]
fn a_peer_that_dies_before_it_comes_is_not_waited_for() {
    let device = cpu();
    let [own, theirs] = job();
    // With a limit beyond the test's patience.
    let (connection, _other, _) = one_that_listens(&device, &own, Deadline::after(10 * LONG));
    connection.mark().unwrap();
    theirs.abort();
    eventually("it fails", || connection.mark().is_err());
    let error = text(connection.mark());
    assert!(error.contains("to rank 1 has failed: it was aborted"), "{error}");
}

#[test]
fn an_abort_of_this_ranks_ends_what_waits_for_peers() {
    let device = cpu();
    let [own, _theirs] = job();
    let (connection, _other, _) = one_that_listens(&device, &own, Deadline::after(10 * LONG));
    own.abort();
    eventually("it fails", || connection.mark().is_err());
    let error = text(connection.mark());
    assert!(error.contains("to rank 1 has failed: ") && error.contains("aborted"), "{error}");
}

/// Its connections outlive its part in the job; so does this end's, whose own part is then over as well.
#[test]
fn a_peer_that_has_left_in_peace_may_still_come() {
    let device = cpu();
    let site = site(&device);
    let [own, theirs] = job();
    let (connection, other, said) = one_that_listens(&device, &own, Deadline::after(LONG));
    drop(theirs);
    eventually("its leave is known", || own.expect_present(Rank(1)).is_err());
    // Looked at several times.
    thread::sleep(4 * greeting::LOOK);
    connection.mark().unwrap();
    drop(own);
    thread::sleep(2 * greeting::LOOK);
    let _theirs = other.join(peer(0, &site, &said), LONG).unwrap();
    let (buffer, _registered, there) = word(&device);
    connection.update(&there, 0, 5).unwrap();
    connection.flush(LONG).unwrap();
    assert_eq!(buffer.read().unwrap(), [5]);
}

#[test]
fn descriptions_that_cannot_be_read_are_refused() {
    let device = cpu();
    let site = site(&device);
    for description in [&b""[..], b"nonsense"] {
        let end = endpoint(&device, LOOPBACK);
        let error = text(end.join(peer(9, &site, description), LONG));
        assert!(error.contains("rank 9") && error.contains("cannot be read"), "{error}");
    }
    let end = endpoint(&device, LOOPBACK);
    let description = end.description().unwrap();
    let error = text(end.join(peer(9, &site, &description), LONG));
    assert!(error.contains("cannot connect to itself"), "{error}");
}

/// What finds out that a host has gone without a word.
#[test]
fn both_ends_sockets_look_after_their_peers() {
    let device = cpu();
    let site = site(&device);
    let ends = [endpoint(&device, LOOPBACK), endpoint(&device, LOOPBACK)];
    let said = [0, 1].map(|end: usize| ends[end].description().unwrap());
    let links: Vec<_> = ends
        .into_iter()
        .zip(said.iter().rev())
        .map(|(end, description)| end.meet(peer(1, &site, description), Deadline::after(LONG)).unwrap())
        .collect();
    for link in &links {
        eventually("they meet", || link.queue.has_met());
        let socket = SockRef::from(link.socket.get().unwrap());
        assert!(socket.keepalive().unwrap() && socket.tcp_nodelay().unwrap());
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(service::SILENCE));
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(10));
    }
}
