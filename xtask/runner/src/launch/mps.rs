//! NVIDIA's multi-process service, for ranks that share a GPU.
//!
//! `nvidia-cuda-mps-control -d` starts its daemon, and `quit` on its standard input ends it (NVIDIA, "Multi-Process Service",
//! R580). A daemon is known by the folder of its pipes, so one of the job's own disturbs no other. A launcher that is killed
//! leaves its daemon behind, and the next one that starts its own ends it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::error::LaunchError;

const PROGRAM: &str = "nvidia-cuda-mps-control";
const PIPES: &str = "CUDA_MPS_PIPE_DIRECTORY";
const LOGS: &str = "CUDA_MPS_LOG_DIRECTORY";
/// How long the daemon may take to start, and to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where the folders are, and how their names begin; then come the launcher's process and a number. The pipes' names have to
/// fit a Unix socket's address (108 bytes), so not under a `TMPDIR` that may be long.
const FOLDERS: &str = "/tmp";
const NAME: &str = "warpwire-mps-";
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
        sweep(PROGRAM.as_ref(), Path::new(FOLDERS));
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
    let folder = Path::new(FOLDERS).join(format!("{NAME}{}-{number}", std::process::id()));
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

/// Ends the services of this user's launchers that were killed.
fn sweep(program: &OsStr, folders: &Path) {
    // What cannot be looked at is left as it is.
    for folder in fs::read_dir(folders).into_iter().flatten().flatten() {
        let name = folder.file_name();
        let launcher =
            name.to_str().and_then(|name| name.strip_prefix(NAME)?.split_once('-')?.0.parse::<u32>().ok());
        let is_own =
            folder.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == geteuid().as_raw());
        if launcher.is_some_and(|pid| is_own && !Path::new("/proc").join(pid.to_string()).exists()) {
            drop(Mps { program: program.to_owned(), folder: folder.path(), runs: true });
        }
    }
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
mod tests;
