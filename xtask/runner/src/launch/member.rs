//! One rank's process.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{self, PipeReader, Write};
use std::net::Shutdown;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, getpid, getppid, kill_process_group, set_parent_process_death_signal};

use super::lines::Lines;

/// How many of a rank's last lines a report shows.
const TAIL: usize = 12;

/// A rank's process, killed on drop.
pub struct Member {
    rank: usize,
    child: Child,
    /// What the rank tells, and what it is told.
    control: Lines<UnixStream>,
    output: Lines<PipeReader>,
    forwards: bool,
    errors: Lines<PipeReader>,
    said: VecDeque<String>,
    tail: VecDeque<String>,
    status: Option<ExitStatus>,
    killed: bool,
}

impl Member {
    /// Starts `command` as rank `rank`. Its standard output goes to the launcher's where that `forwards` it, else to the
    /// launcher's standard error. The thread that calls this has to outlive the process, which is killed with it.
    pub fn start(rank: usize, mut command: Command, forwards: bool) -> io::Result<Self> {
        let (control, far) = UnixStream::pair()?;
        let ((output, standard_output), (errors, standard_error)) = (io::pipe()?, io::pipe()?);
        command.stdin(OwnedFd::from(far)).stdout(standard_output).stderr(standard_error).process_group(0);
        let launcher = getpid();
        // SAFETY: between fork and exec the closure makes two system calls and touches no memory of this process.
        unsafe { command.pre_exec(move || die_with(launcher)) };
        let child = command.spawn()?;
        // Its ends of the pipes go with the command, so that the reading ends see theirs when the process has gone.
        drop(command);
        Ok(Self {
            rank,
            child,
            control: Lines::new(control)?,
            output: Lines::new(output)?,
            errors: Lines::new(errors)?,
            forwards,
            said: VecDeque::new(),
            tail: VecDeque::new(),
            status: None,
            killed: false,
        })
    }

    /// What there is to be waited for.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.control.descriptor(), self.output.descriptor(), self.errors.descriptor()].into_iter().flatten()
    }

    /// Takes in what has come: messages, lines, the end.
    pub fn look(&mut self) -> io::Result<()> {
        if self.status.is_none() {
            // Before the pipes are read: whatever it wrote is in them by then.
            self.status = self.child.try_wait()?;
        }
        let (rank, forwards) = (self.rank, self.forwards);
        self.control.read(|line| self.said.push_back(line))?;
        self.output.read(|line| {
            if forwards {
                show(&mut io::stdout().lock(), rank, &line);
            } else {
                show(&mut io::stderr(), rank, &line);
            }
        })?;
        self.errors.read(|line| {
            show(&mut io::stderr(), rank, &line);
            self.tail.push_back(line);
            if self.tail.len() > TAIL {
                self.tail.pop_front();
            }
        })
    }

    /// Whether it has told something that nobody has taken yet.
    pub fn has_said(&self) -> bool {
        !self.said.is_empty()
    }

    /// What it told first.
    pub fn take_said(&mut self) -> Option<String> {
        self.said.pop_front()
    }

    /// Tells it a line. A rank that listens no more is not told: how it ends says more.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        let Some(control) = self.control.source() else { return Ok(()) };
        // The socket holds far more than a line, so a rank that listens never makes this one wait.
        match control.write_all(format!("{line}\n").as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            told => told,
        }
    }

    /// Has nothing more to tell it.
    pub fn close(&mut self) {
        if let Some(control) = self.control.source() {
            // A failure means that it listens no more.
            let _ = control.shutdown(Shutdown::Write);
        }
    }

    /// How it ended, once it has.
    pub fn status(&self) -> Option<ExitStatus> {
        self.status
    }

    /// Whether it has closed its side of the line, and so is about to end.
    pub fn is_leaving(&self) -> bool {
        self.status.is_none() && self.control.descriptor().is_none()
    }

    /// Whether the launcher killed it.
    pub fn was_killed(&self) -> bool {
        self.killed
    }

    /// The last lines of its standard error.
    pub fn tail(&self) -> Vec<String> {
        self.tail.iter().cloned().collect()
    }

    /// Its process.
    #[cfg(test)]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, and what it has started in its group, unless it has ended.
    pub fn kill(&mut self) {
        if self.status.is_some() {
            return;
        }
        self.killed = true;
        // Nobody has waited for the process, so its number is still its own. A failure means that it has just ended.
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Asks for this process to be killed when its launcher dies; fails where that has happened already.
fn die_with(launcher: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(launcher) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}

/// A rank's line on one of the launcher's streams, in one piece.
fn show(stream: &mut impl Write, rank: usize, line: &str) {
    // Nowhere to say it is no reason to end.
    let _ = stream.write_all(format!("[rank {rank}] {line}\n").as_bytes());
}

/// A command as it is shown.
pub fn spelled(program: &OsStr, arguments: &[impl AsRef<OsStr>]) -> String {
    let words = std::iter::once(program).chain(arguments.iter().map(AsRef::as_ref));
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
