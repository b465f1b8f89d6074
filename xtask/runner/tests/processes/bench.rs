//! The benchmark's rows between processes and between devices.

use rustix::process::{Signal, kill_process};

use super::runner::{Running, errors, run};

#[test]
fn every_case_between_processes_and_between_devices_is_measured() {
    for (rows, gpus, cases) in [("processes", "2", 10), ("multi", "3", 16), ("multi", "2", 13)] {
        let output = run(&["bench", rows, "--device", "cpu", "--gpus", gpus, "--repetitions", "9"]);
        let table = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(output.status.success() && !table.contains("FAILED"), "{table}\n{}", errors(&output));
        let measured = table.lines().filter(|line| line.starts_with("  ") && line.contains(" ["));
        // The heads of the tables have brackets too.
        assert_eq!(measured.filter(|line| !line.contains("[min, max]")).count(), cases, "{table}");
    }
}

#[test]
fn one_device_is_too_few_for_rows_between_devices() {
    let output = run(&["bench", "multi", "--device", "cpu", "--gpus", "1"]);
    assert!(!output.status.success());
    assert!(errors(&output).contains("a row between devices needs 2 of them at least, not 1"));
}

#[test]
fn a_rank_that_is_killed_fails_its_case_and_the_next_ones_are_measured() {
    let bench = Running::start(&["bench", "processes", "--device", "cpu", "--repetitions", "100"]);
    kill_process(bench.rank(1), Signal::KILL).unwrap();
    let (status, table, errors) = bench.output();
    assert_eq!(status.code(), Some(1), "{errors}");
    assert_eq!(table.matches("FAILED").count(), 1, "{table}");
    assert!(table.contains("FAILED: rank 1 of 2 failed: signal: 9 (SIGKILL)"), "{table}");
    assert!(errors.contains("1 of 10 cases failed"), "{errors}");
}
