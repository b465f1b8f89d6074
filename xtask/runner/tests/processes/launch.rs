//! Any program as the ranks of a job.

use super::runner::{errors, run};

#[test]
fn a_programs_output_is_kept_apart_with_the_rank_before_it() {
    let script = "echo \"$WARPWIRE_RANK of $WARPWIRE_WORLD_SIZE, $0\"; echo aside >&2";
    let output = run(&["launch", "--ranks", "3", "--", "/bin/sh", "-c", script, "--install"]);
    assert!(output.status.success(), "{}", errors(&output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let expected = [0, 1, 2].map(|rank| format!("[rank {rank}] {rank} of 3, --install"));
    assert_eq!(lines, expected);
    assert_eq!(errors(&output).matches("] aside").count(), 3);
}

#[test]
fn a_rank_that_fails_fails_the_job() {
    let script = "[ $WARPWIRE_RANK = 1 ] && exit 7; exec sleep 1000";
    let output = run(&["launch", "--ranks", "2", "--", "/bin/sh", "-c", script]);
    assert_eq!(output.status.code(), Some(1));
    let text = errors(&output);
    assert!(text.contains("rank 1 of 2 failed: exit status: 7; rank 0 had to be killed"), "{text}");
    let output = run(&["launch", "--ranks", "2", "--limit", "1", "--", "/bin/sleep", "1000"]);
    assert!(errors(&output).contains("the ranks had 1s, and ranks 0, 1 have not come to the end"));
    assert!(errors(&run(&["launch", "--", "/nowhere/program"])).contains("rank 0 cannot be started"));
    assert_eq!(run(&["launch"]).status.code(), Some(2), "a program has to be named");
}
