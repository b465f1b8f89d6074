//! The service's life, with a program that stands for NVIDIA's.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// A program that stands for NVIDIA's: it notes in its folder of pipes how it was called, and what it was told.
fn program(name: &str, body: &str) -> PathBuf {
    let path = env::temp_dir().join(format!("warpwire-{name}-{}", std::process::id()));
    // Written by another process: where this one had it open, a test that starts a program at that moment would hand it on,
    // and a program that is open for writing cannot be run.
    let mut command = Command::new("sh");
    command.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(&path).stdin(Stdio::piped());
    let mut writer = command.spawn().unwrap();
    writer.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{body}\n").as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
    path
}

#[test]
fn it_is_started_in_folders_of_its_own_and_told_to_quit() {
    let notes = env::temp_dir().join(format!("warpwire-mps-notes-{}", std::process::id()));
    let body = format!(
        "if [ \"$1\" = -d ]; then echo \"start $CUDA_MPS_PIPE_DIRECTORY\" >>{0}; else read word; echo $word >>{0}; fi",
        notes.display()
    );
    let program = program("mps-good", &body);
    let mps = Mps::start_by(program.as_os_str()).unwrap().unwrap();
    let [(name, pipes), (_, logs)] = mps.variables();
    assert_eq!(name, PIPES);
    assert!(Path::new(&pipes).is_dir() && Path::new(&logs).is_dir() && pipes != logs);
    let mode = fs::metadata(Path::new(&pipes).parent().unwrap()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    drop(mps);
    let noted = fs::read_to_string(&notes).unwrap();
    assert_eq!(noted, format!("start {}\nquit\n", pipes.display()));
    assert!(!Path::new(&pipes).exists());
    fs::remove_file(program).unwrap();
    fs::remove_file(notes).unwrap();
}

#[test]
fn services_of_launchers_that_are_gone_are_ended_and_no_others() {
    let base = env::temp_dir().join(format!("warpwire-mps-folders-{}", std::process::id()));
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let left = base.join(format!("{NAME}{}-0", gone.id()));
    let kept = [format!("{NAME}{}-3", std::process::id()), format!("{NAME}x-0"), "other".to_owned()];
    let kept = kept.map(|name| base.join(name));
    fs::create_dir_all(left.join("pipe")).unwrap();
    kept.iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
    let notes = base.join("notes");
    let note = format!("read word; echo \"$word $CUDA_MPS_PIPE_DIRECTORY\" >>{}", notes.display());
    let program = program("mps-sweep", &note);
    sweep(program.as_os_str(), &base);
    assert!(!left.exists() && kept.iter().all(|folder| folder.exists()));
    assert_eq!(fs::read_to_string(&notes).unwrap(), format!("quit {}\n", left.join("pipe").display()));
    fs::remove_dir_all(base).unwrap();
    fs::remove_file(program).unwrap();
}

#[test]
fn one_that_does_not_start_is_an_error_with_its_words() {
    let program = program("mps-bad", "echo 'no such thing' >&2; exit 3");
    let error = Mps::start_by(program.as_os_str()).unwrap_err().to_string();
    assert!(error.contains("exit status: 3") && error.contains("no such thing"), "{error}");
    fs::remove_file(program).unwrap();
}

#[test]
fn a_machine_without_it_goes_on() {
    assert!(Mps::start_by("/nowhere/nvidia-cuda-mps-control".as_ref()).unwrap().is_none());
}
