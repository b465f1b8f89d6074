//! Jobs of small shell programs. A rank's standard input is its line to the launcher, so `echo … >&0` tells it something.

use std::collections::BTreeMap;
use std::fs;

use super::*;

/// Longer than anything that goes well takes.
const LONG: Duration = Duration::from_secs(120);

fn job(ranks: usize, script: &str) -> Launch {
    let arguments = vec![vec![OsString::from("-c"), script.into()]; ranks];
    Launch::new("/bin/sh", arguments).limit(LONG)
}

/// The failure of a job that has to fail.
fn failure(error: LaunchError) -> Failure {
    match error {
        LaunchError::Failed(failure) => *failure,
        other => panic!("the job failed otherwise: {other}"),
    }
}

fn is_running(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.lines().any(|line| line.starts_with("State:\tZ"))
}

#[test]
fn every_rank_knows_its_place_and_answers() {
    let script = r#"read word; echo "{\"rank\": $WARPWIRE_RANK, \"size\": $WARPWIRE_WORLD_SIZE, \"root\": \"$WARPWIRE_ROOT\", \"secret\": \"$WARPWIRE_SECRET\", \"word\": $word}" >&0; echo "not a message""#;
    let mut job = job(3, script).start().unwrap();
    job.tell(&7).unwrap();
    let answers: Vec<BTreeMap<String, serde_json::Value>> = job.hear().unwrap();
    for (rank, answer) in answers.iter().enumerate() {
        assert_eq!(answer["rank"], rank);
        assert_eq!((&answer["size"], &answer["word"]), (&3.into(), &7.into()));
        assert_eq!((&answer["root"], &answer["secret"]), (&answers[0]["root"], &answers[0]["secret"]));
    }
    job.finish().unwrap();
}

#[test]
fn what_the_user_has_set_counts() {
    let script = r#"echo "[\"$WARPWIRE_TEST_UNSET\", \"$PATH\"]" >&0"#;
    let launch = job(1, script).variable("WARPWIRE_TEST_UNSET", "given").variable("PATH", "/nowhere");
    let mut job = launch.start().unwrap();
    let seen: Vec<[String; 2]> = job.hear().unwrap();
    assert_eq!(seen, [["given".to_owned(), env::var("PATH").unwrap()]]);
    job.finish().unwrap();
}

#[test]
fn messages_come_in_order_however_far_a_rank_is_ahead() {
    let mut job = job(2, "for i in 0 1 2 3; do echo $((10 * WARPWIRE_RANK + i)) >&0; done").start().unwrap();
    for i in 0..4 {
        assert_eq!(job.hear::<u32>().unwrap(), [i, 10 + i]);
    }
    job.finish().unwrap();
}

#[test]
fn a_rank_that_listens_sees_that_nothing_more_comes() {
    let job = job(2, "while read line; do :; done").start().unwrap();
    job.finish().unwrap();
}

#[test]
fn a_failure_names_the_rank_with_its_last_lines_and_ends_the_others() {
    let script =
        "if [ $WARPWIRE_RANK = 1 ]; then echo first >&2; echo 'no luck' >&2; exit 3; fi; exec sleep 1000";
    let mut job = job(3, script).grace(Duration::ZERO).start().unwrap();
    let ids = job.ids();
    let failure = failure(job.hear::<u32>().unwrap_err());
    assert_eq!((failure.rank, failure.ranks, failure.status.code()), (1, 3, Some(3)));
    assert_eq!(failure.tail, ["first", "no luck"]);
    assert_eq!((failure.followed, failure.killed), (vec![], vec![0, 2]));
    assert!(!ids.into_iter().any(is_running));
}

#[test]
fn a_killed_rank_is_named_also_where_others_fail_for_it() {
    // The others end by themselves when rank 2 is gone, as ranks do whose peer is lost.
    let script = r#"
        if [ $WARPWIRE_RANK = 2 ]; then echo $$ >&0; exec sleep 1000; fi
        echo 0 >&0; read pid; while [ -e /proc/$pid/cmdline ] && [ -s /proc/$pid/cmdline ]; do sleep 0.01; done
        echo "rank 2 is lost" >&2; exit 1"#;
    let mut job = job(4, script).grace(LONG).start().unwrap();
    let pid = job.hear::<u32>().unwrap()[2];
    job.tell(&pid).unwrap();
    kill(pid);
    let failure = failure(job.finish().unwrap_err());
    assert_eq!(failure.rank, 2);
    assert!(failure.status.to_string().contains("SIGKILL"), "{}", failure.status);
    assert_eq!((failure.followed, failure.killed), (vec![0, 1, 3], vec![]));
}

#[test]
fn a_rank_that_ends_without_its_message_is_a_failure() {
    let mut job = job(2, "[ $WARPWIRE_RANK = 0 ] && echo 5 >&0; exit 0").start().unwrap();
    let failure = failure(job.hear::<u32>().unwrap_err());
    assert_eq!(failure.rank, 1);
    assert!(failure.to_string().contains("ended before it had said"), "{failure}");
}

#[test]
fn the_deadline_names_the_ranks_that_were_waited_for() {
    let script = "[ $WARPWIRE_RANK = 1 ] && exec sleep 1000; echo 5 >&0; read line";
    let mut job = job(3, script).limit(Duration::from_millis(500)).start().unwrap();
    let ids = job.ids();
    let error = job.hear::<u32>().unwrap_err();
    // On a machine under load the others may not have come to their message either.
    let LaunchError::Late { waited_for, .. } = &error else { panic!("{error}") };
    assert!(waited_for.contains(&1), "{error}");
    assert!(error.to_string().contains("rank"), "{error}");
    drop(job);
    assert!(!ids.into_iter().any(is_running));
}

#[test]
fn a_message_that_is_none_is_shown() {
    let mut job = job(2, "echo nonsense >&0; read line").start().unwrap();
    let error = job.hear::<u32>().unwrap_err();
    assert!(error.to_string().contains("rank 0 said \"nonsense\""), "{error}");
}

#[test]
fn what_a_rank_started_goes_with_it() {
    let mut job = job(1, "sleep 1000 & echo $! >&0; wait").start().unwrap();
    let started = job.hear::<u32>().unwrap()[0];
    assert!(is_running(started));
    drop(job);
    let begun = Instant::now();
    while is_running(started) {
        assert!(begun.elapsed() < LONG, "process {started} outlives its rank");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let error = Launch::new("/nowhere/program", vec![vec!["--flag".into()]]).start().err().unwrap();
    assert!(error.to_string().contains("/nowhere/program --flag"), "{error}");
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
