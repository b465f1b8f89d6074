//! Ranks and launchers that are ended from outside.

use std::os::unix::process::ExitStatusExt;

use rustix::process::{Signal, kill_process};

use super::runner::{Running, wait_for_end};

/// A demo that goes on for minutes, unless something ends it.
fn long() -> Running {
    let sizes = vec!["1M"; 2000].join(",");
    Running::start(&["demo", "--processes", "--ranks", "4", "--device", "cpu", "--json", "--size", &sizes])
}

#[test]
fn a_rank_that_is_killed_in_the_middle_ends_everything_and_is_named() {
    let mut demo = long();
    assert!(demo.line().contains("\"right\":true"));
    let ranks = demo.ranks();
    assert_eq!(ranks.len(), 4);
    kill_process(demo.rank(2), Signal::KILL).unwrap();
    let (status, errors) = demo.end();
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(errors.contains("rank 2 of 4 failed: signal: 9 (SIGKILL)"), "{errors}");
    ranks.into_iter().for_each(|(_, pid)| wait_for_end(pid));
}

#[test]
fn a_rank_that_is_killed_as_it_starts_ends_everything_and_is_named() {
    let demo = long();
    kill_process(demo.rank(1), Signal::KILL).unwrap();
    let (status, errors) = demo.end();
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(errors.contains("rank 1 of 4 failed: signal: 9 (SIGKILL)"), "{errors}");
}

#[test]
fn an_interrupt_ends_the_ranks_and_then_the_launcher() {
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15)] {
        let mut demo = long();
        demo.line();
        let ranks = demo.ranks();
        assert_eq!(ranks.len(), 4);
        demo.signal(signal);
        let (status, errors) = demo.end();
        assert_eq!(status.signal(), Some(number), "{errors}");
        ranks.into_iter().for_each(|(_, pid)| wait_for_end(pid));
    }
}

#[test]
fn ranks_do_not_outlive_a_launcher_that_is_killed() {
    // Programs that neither listen to the launcher nor tell it anything.
    let launch = Running::start(&["launch", "--ranks", "3", "--", "/bin/sleep", "1000"]);
    let ranks = [0, 1, 2].map(|rank| launch.rank(rank));
    launch.signal(Signal::KILL);
    let (status, _) = launch.end();
    assert_eq!(status.signal(), Some(9));
    ranks.into_iter().for_each(wait_for_end);
}

#[test]
fn a_run_beyond_its_limit_is_ended_and_says_for_whom_it_waited() {
    let sizes = vec!["1M"; 2000].join(",");
    let demo = Running::start(&[
        "demo",
        "--processes",
        "--ranks",
        "2",
        "--device",
        "cpu",
        "--limit",
        "2",
        "--size",
        &sizes,
    ]);
    let (status, errors) = demo.end();
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(errors.contains("the ranks had 2s, and rank"), "{errors}");
}
