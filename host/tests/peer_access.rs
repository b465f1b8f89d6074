//! The program `peer_access_check`.

use std::path::Path;
use std::process::{Command, Output};

fn check(hide_gpus: bool) -> Option<Output> {
    // Not where the tests alone were carried to another machine.
    let program = Path::new(env!("CARGO_BIN_EXE_peer_access_check"));
    if !program.exists() {
        println!("skipped: {} is not here", program.display());
        return None;
    }
    let mut command = Command::new(program);
    if hide_gpus {
        command.env("CUDA_VISIBLE_DEVICES", "");
    }
    Some(command.output().expect("the program starts"))
}

#[test]
fn cuda_that_does_not_start_is_told_from_missing_access() {
    let Some(output) = check(true) else { return };
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.starts_with("CUDA could not start: "), "{text}");
    if cfg!(feature = "cuda") {
        assert!(text.contains("CUDA_ERROR") || text.contains("libcuda"), "{text}");
        assert!(
            text.contains("install the NVIDIA driver") || text.contains("CUDA_VISIBLE_DEVICES"),
            "{text}"
        );
    } else {
        assert!(text.contains("--features cuda"), "{text}");
    }
}

#[test]
fn with_gpus_the_matrix_is_shown() {
    let Some(output) = check(false) else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(2) => println!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim()),
        Some(code @ (0 | 1)) => assert_eq!(code == 1, text.contains("NO"), "{text}"),
        other => panic!("exit status {other:?}: {text}"),
    }
}
