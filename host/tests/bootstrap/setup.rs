//! Coming together, and the reasons not to.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use warpwire::abi::Rank;
use warpwire::bootstrap::{Bootstrap, Family, Group, LocalBootstrap, TcpBootstrap, TcpOptions, TcpRoot};
use warpwire::error::{BootstrapError, Refusal};
use warpwire::{Error, ErrorKind, Result};

use crate::jobs::{LONG, address_of, failure, free_port, keep_log, options, wait_for_check_in};

/// A job whose ranks meet at an address known beforehand.
fn meet(address: &str, size: usize) -> Vec<Result<Group>> {
    meet_as(address, size, |_| (Some("a test's"), options()))
}

fn meet_as(
    address: &str,
    size: usize,
    with: impl Fn(usize) -> (Option<&'static str>, TcpOptions) + Sync,
) -> Vec<Result<Group>> {
    let address = address.parse().unwrap();
    let (address, with) = (&address, &with);
    thread::scope(|scope| {
        let rank = |rank: usize| {
            let (secret, options) = with(rank);
            TcpBootstrap::meet(address, Rank(rank as u32), size, secret, options)
        };
        let ranks: Vec<_> = (0..size).map(|number| scope.spawn(move || rank(number))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn works(job: Vec<Result<Group>>) {
    let job: Vec<Group> = job.into_iter().map(Result::unwrap).collect();
    crate::jobs::each(job, |rank| {
        rank.barrier().unwrap();
        // Between ranks that are not the root, too.
        let gathered = rank.broadcast(Rank(1), b"hello").unwrap();
        assert_eq!(gathered, b"hello");
    });
}

#[test]
fn ranks_meet_at_addresses_of_every_form() {
    for form in ["127.0.0.1:", "lo:127.0.0.1:", "[::1]:", "lo:[::1]:", "localhost:", "lo:localhost:"] {
        works(meet(&format!("{form}{}", free_port()), 3));
    }
}

#[test]
fn ranks_meet_over_each_family() {
    works(meet_as(&format!("localhost:{}", free_port()), 3, |_| (None, options().family(Family::V4))));
    works(meet_as(&format!("[::1]:{}", free_port()), 3, |_| (None, options().family(Family::V6))));
    let root = TcpRoot::bind(options().family(Family::V6)).unwrap();
    let id = root.id().unwrap();
    assert!(format!("{id:?}").starts_with("UniqueId([::1]:"), "{id:?}");
    thread::scope(|scope| {
        let other =
            scope.spawn(|| TcpBootstrap::connect(&id.to_string().parse().unwrap(), Rank(1), 2, options()));
        works(vec![root.join(2), other.join().unwrap()]);
    });
}

#[test]
fn ranks_meet_over_link_local_addresses() {
    let listed = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let link_local = listed.lines().find(|line| line.starts_with("fe80"));
    let Some(name) = link_local.and_then(|line| line.split_whitespace().last()) else {
        return eprintln!("skipped: no interface of this machine has a link-local address");
    };
    let options = || TcpOptions::from_env().unwrap().timeout(LONG);
    let listed = format!("={name}");
    let root = TcpRoot::bind(options().interfaces(&listed).unwrap().family(Family::V6)).unwrap();
    let id = root.id().unwrap();
    if !format!("{id:?}").contains("fe80") {
        eprintln!("{name} has another address, which was chosen: {id:?}");
    }
    thread::scope(|scope| {
        let ranks: Vec<_> = (1..3)
            .map(|rank| scope.spawn(move || TcpBootstrap::connect(&id, Rank(rank), 3, options())))
            .collect();
        let first = root.join(3);
        works([first].into_iter().chain(ranks.into_iter().map(|rank| rank.join().unwrap())).collect());
    });
}

#[test]
fn a_job_of_one_needs_nobody() {
    works_alone(meet(&format!("127.0.0.1:{}", free_port()), 1).remove(0).unwrap());
    works_alone(TcpRoot::bind(options()).unwrap().join(1).unwrap());
    works_alone(LocalBootstrap::group(1).unwrap().remove(0));
}

fn works_alone(rank: Group) {
    assert_eq!((rank.rank(), rank.size(), rank.ranks_per_node(), rank.local_rank()), (Rank(0), 1, 1, 0));
    rank.barrier().unwrap();
    assert_eq!(rank.all_gather(b"x").unwrap(), [b"x"]);
}

#[test]
fn sizes_and_ranks_that_cannot_be_are_refused() {
    let address = "127.0.0.1:9".parse().unwrap();
    let meet = |rank, size| TcpBootstrap::meet(&address, Rank(rank), size, None, options()).unwrap_err();
    assert!(matches!(meet(0, 0), Error::RankCount { ranks: 0, least: 1, .. }));
    assert!(matches!(meet(0, usize::MAX), Error::RankCount { .. }));
    assert!(matches!(meet(4, 4), Error::NoSuchRank { rank: Rank(4), ranks: 4 }));
    assert!(matches!(LocalBootstrap::group(0).unwrap_err(), Error::RankCount { ranks: 0, .. }));
    assert!(matches!(TcpRoot::bind(options()).unwrap().join(0).unwrap_err(), Error::RankCount { .. }));
}

#[test]
fn ranks_that_do_not_come_are_named_to_all_who_did() {
    let timeout = Duration::from_secs(2);
    let root = TcpRoot::bind(options().timeout(timeout)).unwrap();
    let id = root.id().unwrap();
    let start = Instant::now();
    thread::scope(|scope| {
        let other = scope.spawn(|| TcpBootstrap::connect(&id, Rank(2), 4, options().timeout(timeout)));
        for error in [failure(root.join(4)), failure(other.join().unwrap())] {
            let text = error.to_string();
            assert!(text.starts_with("ranks 1, 3 of 4 did not check in within 2s"), "{text}");
            assert_eq!(Error::from(error).kind(), ErrorKind::Timeout);
        }
    });
    assert!(start.elapsed() >= timeout);
}

#[test]
fn a_root_that_is_not_there_is_an_error() {
    let address = format!("127.0.0.1:{}", free_port()).parse().unwrap();
    let timeout = Duration::from_millis(500);
    let error = failure(TcpBootstrap::meet(&address, Rank(1), 2, None, options().timeout(timeout)));
    let text = error.to_string();
    assert!(matches!(error, BootstrapError::RootUnreachable { .. }), "{text}");
    assert!(text.contains("rank 0 was not reached at 127.0.0.1") && text.contains("refused"), "{text}");
}

#[test]
fn a_rank_may_come_before_the_root() {
    let address = &format!("127.0.0.1:{}", free_port()).parse().unwrap();
    thread::scope(|scope| {
        let other = scope.spawn(|| TcpBootstrap::meet(address, Rank(1), 2, None, options()));
        thread::sleep(Duration::from_millis(300));
        let root = TcpBootstrap::meet(address, Rank(0), 2, None, options());
        works(vec![root, other.join().unwrap()]);
    });
}

#[test]
fn a_rank_of_another_job_is_turned_away_and_disturbs_nobody() {
    let port = free_port();
    let address = &format!("127.0.0.1:{port}").parse().unwrap();
    let meet = |rank, secret| TcpBootstrap::meet(address, Rank(rank), 2, Some(secret), options());
    thread::scope(|scope| {
        let root = scope.spawn(|| meet(0, "this job's"));
        let error = failure(meet(1, "that job's"));
        let secret = matches!(error, BootstrapError::Refused { refusal: Refusal::Secret, .. });
        assert!(secret, "{error}");
        assert!(error.to_string().contains("of another job"), "{error}");
        works(vec![meet(1, "this job's"), root.join().unwrap()].into_iter().rev().collect());
    });
}

/// Rank 0 of `size` with rank 1 there, and one more that cannot be: the errors of the three.
fn with_a_misfit(
    misfit: impl FnOnce(&warpwire::bootstrap::UniqueId) -> Result<Group>,
) -> [BootstrapError; 3] {
    keep_log();
    let root = TcpRoot::bind(options()).unwrap();
    let id = root.id().unwrap();
    thread::scope(|scope| {
        let root = scope.spawn(|| root.join(3));
        let other = scope.spawn(|| TcpBootstrap::connect(&id, Rank(1), 3, options()));
        // It has to be the later of the two.
        wait_for_check_in(address_of(&id), 1);
        let misfit = failure(misfit(&id));
        [misfit, failure(root.join().unwrap()), failure(other.join().unwrap())]
    })
}

#[test]
fn two_processes_with_one_rank_are_an_error_for_all() {
    let [misfit, root, other] = with_a_misfit(|id| TcpBootstrap::connect(id, Rank(1), 3, options()));
    let twice = Refusal::DuplicateRank { rank: 1 };
    assert!(matches!(&misfit, BootstrapError::Refused { refusal, .. } if *refusal == twice), "{misfit}");
    for error in [root, other] {
        assert!(matches!(&error, BootstrapError::CheckIn { refusal, .. } if *refusal == twice), "{error}");
        assert!(error.to_string().contains("calls itself rank 1, as another process does"), "{error}");
    }
}

#[test]
fn another_size_is_an_error_for_all() {
    let [misfit, root, other] = with_a_misfit(|id| TcpBootstrap::connect(id, Rank(3), 4, options()));
    for error in [misfit, root, other] {
        let text = error.to_string();
        assert!(text.contains("for a job of 4 ranks, and rank 0 for one of 3"), "{text}");
        assert_eq!(Error::from(error).kind(), ErrorKind::Refused);
    }
}

#[test]
fn one_that_comes_too_late_is_turned_away() {
    let root = TcpRoot::bind(options()).unwrap();
    let id = root.id().unwrap();
    thread::scope(|scope| {
        let other = scope.spawn(|| TcpBootstrap::connect(&id, Rank(1), 2, options()));
        let job = vec![root.join(2), other.join().unwrap()];
        let error = failure(TcpBootstrap::connect(&id, Rank(1), 2, options()));
        assert!(matches!(error, BootstrapError::Refused { refusal: Refusal::Complete, .. }), "{error}");
        works(job);
    });
}

#[test]
fn a_port_in_use_is_an_error_with_a_hint() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = failure(TcpBootstrap::meet(&address.parse().unwrap(), Rank(0), 2, None, options()));
    let text = error.to_string();
    assert!(text.contains(&address) && text.contains("another process has this port"), "{text}");
    let elsewhere = "192.0.2.254:5000".parse().unwrap();
    let text = failure(TcpBootstrap::meet(&elsewhere, Rank(0), 2, None, options())).to_string();
    assert!(text.contains("has to run where its address is"), "{text}");
}

#[test]
fn interfaces_and_names_that_are_not_there_are_errors() {
    let nosuch = options().interfaces("nosuch").unwrap();
    let text = failure(TcpRoot::bind(nosuch)).to_string();
    assert!(text.contains("nosuch") && text.contains("lo ("), "{text}");
    assert!(matches!(
        failure(options().interfaces("a,,b").map(drop)),
        BootstrapError::InvalidInterfaces { .. }
    ));
    for rank in [Rank(0), Rank(1)] {
        let address = "nosuch:127.0.0.1:5000".parse().unwrap();
        let text = failure(TcpBootstrap::meet(&address, rank, 2, None, options())).to_string();
        assert!(text.contains("named nosuch"), "{text}");
    }
    let address = "no-such-host.invalid:5000".parse().unwrap();
    let error = failure(TcpBootstrap::meet(&address, Rank(1), 2, None, options()));
    assert!(
        matches!(&error, BootstrapError::Unresolvable { host, .. } if host == "no-such-host.invalid"),
        "{error}"
    );
}

#[test]
fn somebody_elses_server_is_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string().parse().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        stream
    });
    let error = failure(TcpBootstrap::meet(&address, Rank(1), 2, None, options()));
    assert!(matches!(error, BootstrapError::Stranger { .. }), "{error}");
    server.join().unwrap();
}
