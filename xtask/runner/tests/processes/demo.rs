//! What goes well, and what is refused.

use super::runner::{errors, run};

#[test]
fn every_row_of_2_3_and_8_processes_is_right() {
    for ranks in ["2", "3", "8"] {
        let sizes = "4,12,1000,4100,16K,100004";
        let output =
            run(&["demo", "--processes", "--ranks", ranks, "--device", "cpu", "--size", sizes, "--json"]);
        assert!(output.status.success(), "{}", errors(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let rows: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let bytes: Vec<u64> = rows.iter().map(|row| row["bytes"].as_u64().unwrap()).collect();
        assert_eq!(bytes, [4, 12, 1000, 4100, 16384, 100_004]);
        for row in &rows {
            assert_eq!(row["right"], true, "{row}");
            assert_eq!(row["ranks"].to_string(), ranks);
            assert!(row["microseconds"].as_f64().unwrap() > 0.0);
            assert!(row["largest_error"].as_f64().unwrap() < 1e-5, "{row}");
        }
        // Two terms may add up without an error, more do not.
        assert!(ranks == "2" || rows.iter().any(|row| row["largest_error"].as_f64().unwrap() > 0.0));
    }
}

#[test]
fn processes_print_the_same_table_as_threads() {
    let table = |more: &[&str]| {
        let arguments =
            [&["demo", "allreduce", "--ranks", "2", "--device", "cpu", "--size", "4,4100"], more].concat();
        let output = run(&arguments);
        assert!(output.status.success(), "{}", errors(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let (threads, processes) = (table(&[]), table(&["--processes"]));
    let head = |text: &str| text.lines().next().unwrap().to_owned();
    assert_eq!(head(&threads), head(&processes));
    for text in [threads, processes] {
        assert_eq!(text.lines().filter(|line| line.ends_with("  right")).count(), 2, "{text}");
    }
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let refused = |arguments: &[&str], part: &str| {
        let output = run(arguments);
        let text = errors(&output);
        assert!(!output.status.success() && text.contains(part), "{text}");
        assert!(!text.contains("[rank"), "{text}");
    };
    for ranks in ["0", "1", "9999"] {
        refused(
            &["demo", "--processes", "--device", "cpu", "--ranks", ranks],
            "--ranks: an all-reduce has 2 to",
        );
    }
    refused(&["demo", "--processes", "--device", "cpu", "--size", "6"], "not a whole number of f32");
    refused(&["demo", "--processes", "--device", "cpu", "--limit", "0"], "--limit");
    refused(&["demo", "--processes", "--device", "gpu"], "gpu");
    // The ranks' own commands have nobody to talk to.
    for rank in [
        &["demo-rank", "--device", "cpu", "--size", "4", "--timeout", "1"][..],
        &["bench-rank", "--device", "cpu"],
        &["residency-rank", "--device", "cpu"],
    ] {
        refused(rank, "this command is for processes that the launcher starts");
    }
}

#[test]
fn a_message_too_large_is_refused_by_every_rank_and_by_the_launcher() {
    let output = run(&["demo", "--processes", "--ranks", "3", "--device", "cpu", "--size", "8388612"]);
    let text = errors(&output);
    assert!(!output.status.success() && output.stdout.is_empty(), "{text}");
    assert!(text.contains("of 3 failed: exit status: 1"), "{text}");
    for rank in 0..3 {
        assert!(text.contains(&format!("[rank {rank}] error: ")), "{text}");
    }
}

#[test]
fn processes_fill_a_device_and_one_block_more_is_refused() {
    let output = run(&["residency", "--ranks", "3", "--device", "cpu"]);
    assert!(output.status.success(), "{}", errors(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        text.lines().filter(|line| line.contains("would have to be resident together")).count(),
        3,
        "{text}"
    );
}
