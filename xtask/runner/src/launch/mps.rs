//! NVIDIA's multi-process service, for ranks that share a GPU.
//!
//! `nvidia-cuda-mps-control -d` starts its daemon, and `quit` on its standard input ends it (NVIDIA, "Multi-Process Service",
//! R580). A daemon is known by the folder of its pipes, so one of the job's own disturbs no other.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::error::LaunchError;

const PROGRAM: &str = "nvidia-cuda-mps-control";
const PIPES: &str = "CUDA_MPS_PIPE_DIRECTORY";
const LOGS: &str = "CUDA_MPS_LOG_DIRECTORY";
/// How long the daemon may take to start, and to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where the daemon leaves its process' number, in the folder of its pipes.
const PID_FILE: &str = "nvidia-cuda-mps-control.pid";

/// A running service, in folders of its own, ended on drop.
#[derive(Debug)]
pub struct Mps {
    program: OsString,
    folder: PathBuf,
    /// Whether there is a daemon to be ended.
    runs: bool,
}

impl Mps {
    /// Starts one. `None` where the user has one already ([`PIPES`] is set), or where the machine has none: then a line on the
    /// error stream says that the ranks take turns.
    pub fn start() -> Result<Option<Self>, LaunchError> {
        if let Some(pipes) = env::var_os(PIPES) {
            eprintln!("the ranks share a GPU by the multi-process service at {}", pipes.display());
            return Ok(None);
        }
        Self::start_by(PROGRAM.as_ref())
    }

    fn start_by(program: &OsStr) -> Result<Option<Self>, LaunchError> {
        let mut mps = Self { program: program.to_owned(), folder: folder()?, runs: false };
        let log = mps.folder.join("start.log");
        let output = || File::options().create(true).append(true).open(&log);
        let system = |source| LaunchError::System { what: format!("cannot write {}", log.display()), source };
        // Files, not pipes: the daemon keeps them open.
        let mut command = mps.command();
        command.arg("-d").stdin(Stdio::null());
        command.stdout(output().map_err(system)?).stderr(output().map_err(system)?);
        let failed = |reason: String| {
            let said = fs::read_to_string(&log).unwrap_or_default();
            let reason = format!("{reason} {}", said.trim()).trim().to_owned();
            LaunchError::Mps { program: program.to_string_lossy().into_owned(), reason }
        };
        match command.spawn().and_then(wait) {
            Ok(Some(status)) if status.success() => {
                mps.runs = true;
                Ok(Some(mps))
            }
            Ok(Some(status)) => Err(failed(format!("it ended with {status}."))),
            Ok(None) => Err(failed(format!("it did not return within {PATIENCE:?}."))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!(
                    "there is no {}: ranks that share a GPU take turns on it, some 2 ms each",
                    program.display()
                );
                Ok(None)
            }
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// What tells a process to use it.
    pub fn variables(&self) -> [(OsString, OsString); 2] {
        [(PIPES.into(), self.pipes().into()), (LOGS.into(), self.folder.join("log").into())]
    }

    fn pipes(&self) -> PathBuf {
        self.folder.join("pipe")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.envs(self.variables());
        command
    }

    /// Asks the daemon to end, and waits for the answer.
    fn quit(&self) -> io::Result<bool> {
        let mut client =
            self.command().stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        if let Some(mut input) = client.stdin.take() {
            input.write_all(b"quit\n")?;
        }
        Ok(wait(client)?.is_some_and(|status| status.success()))
    }
}

impl Drop for Mps {
    fn drop(&mut self) {
        // The file lies in the job's own folder, so the process is the job's own daemon.
        let pid =
            fs::read_to_string(self.pipes().join(PID_FILE)).ok().and_then(|text| text.trim().parse().ok());
        if self.runs && !self.quit().unwrap_or(false) {
            tracing::warn!("the multi-process service does not end by itself, and is killed");
            if let Some(daemon) = pid.and_then(Pid::from_raw) {
                let _ = kill_process(daemon, Signal::TERM);
            }
        }
        // Logs alone; what cannot be removed is in the way of nobody.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A new folder that other users cannot enter, with one for pipes and one for logs in it.
fn folder() -> Result<PathBuf, LaunchError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // The pipes' names have to fit a Unix socket's address (108 bytes), so not under a `TMPDIR` that may be long.
    let folder = Path::new("/tmp").join(format!("warpwire-mps-{}-{number}", std::process::id()));
    let made = || {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        [folder.clone(), folder.join("pipe"), folder.join("log")]
            .iter()
            .try_for_each(|folder| builder.create(folder))
    };
    made().map_err(|source| LaunchError::System {
        what: format!("cannot make {}", folder.display()),
        source,
    })?;
    Ok(folder)
}

/// Waits for a short command; `None` where it had to be killed.
fn wait(mut child: Child) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program that stands for NVIDIA's: it notes in its folder of pipes how it was called, and what it was told.
    fn program(name: &str, body: &str) -> PathBuf {
        let path = env::temp_dir().join(format!("warpwire-{name}-{}", std::process::id()));
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
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
}
