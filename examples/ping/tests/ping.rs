//! The example runs, and the README shows it as it is.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

/// Runs `ranks` processes of the example on the CPU's host, and gives what became of each.
fn run(ranks: u32, port: u16) -> Vec<Output> {
    let start = |rank: u32| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ping"));
        command.env("WARPWIRE_RANK", rank.to_string()).env("WARPWIRE_WORLD_SIZE", ranks.to_string());
        command
            .env("WARPWIRE_ROOT", format!("127.0.0.1:{port}"))
            .env("WARPWIRE_SECRET", "the example's test");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let processes: Vec<_> = (0..ranks).map(start).collect();
    // Both at once: neither ends before the other has read what it says.
    let waiting = processes.into_iter().map(|process| thread::spawn(|| process.wait_with_output().unwrap()));
    waiting.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// The same at a port that nobody else takes meanwhile.
fn run_somewhere(ranks: u32) -> Vec<Output> {
    for _ in 0..10 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let outputs = run(ranks, port);
        let taken = |output: &Output| {
            String::from_utf8_lossy(&output.stderr).contains("another process has this port")
        };
        if !outputs.iter().any(taken) {
            return outputs;
        }
    }
    panic!("no port is free");
}

#[test]
fn two_processes_exchange_messages() {
    for (rank, output) in run_somewhere(2).into_iter().enumerate() {
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "rank {rank}: {text}{errors}");
        let line = format!("rank {rank} on ");
        assert!(text.starts_with(&line) && text.contains(" 100 messages of 1048576 bytes, "), "{text}");
        assert!(text.trim_end().ends_with(" 0 words wrong"), "{text}");
    }
}

#[test]
fn another_number_of_ranks_is_refused() {
    for output in run_somewhere(3) {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains("this takes 2 ranks, not 3"), "{errors}");
    }
}

#[test]
fn the_readme_shows_it_in_full() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = fs::read_to_string(folder.join("src/main.rs")).unwrap();
    assert!(source.lines().count() < 80, "{} lines", source.lines().count());
    let readme = fs::read_to_string(folder.join("../../README.md")).unwrap();
    assert!(
        readme.contains(&format!("```rust\n{source}```\n")),
        "README.md has another version of src/main.rs"
    );
}
