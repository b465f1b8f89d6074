//! The program, run and watched.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longer than anything that goes well takes, also on a machine under load.
pub const LIMIT: Duration = Duration::from_secs(240);

/// The program with these arguments.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwire-runner"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub fn run(arguments: &[&str]) -> Output {
    let output = command(arguments).output().expect("the program starts");
    println!("{arguments:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    output
}

/// What it printed on its error stream.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The program while it runs; killed on drop.
pub struct Running {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// Starts it.
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = command(arguments);
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        Self { process, output }
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the program's output can be read");
        line
    }

    /// Its rank `rank`, once that has started.
    pub fn rank(&self, rank: u32) -> Pid {
        let begun = Instant::now();
        loop {
            if let Some(pid) =
                self.ranks().into_iter().find_map(|(number, pid)| (number == rank).then_some(pid))
            {
                return pid;
            }
            assert!(begun.elapsed() < LIMIT, "rank {rank} does not start");
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Its ranks that run, by what their environment says.
    pub fn ranks(&self) -> Vec<(u32, Pid)> {
        let parent = format!("PPid:\t{}", self.process.id());
        let number = |pid: i32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let mut variables = environment.split(|&byte| byte == 0);
            let rank = variables.find_map(|variable| variable.strip_prefix(b"WARPWIRE_RANK="))?;
            status.lines().any(|line| line == parent).then(|| String::from_utf8_lossy(rank).parse().ok())?
        };
        let pids = fs::read_dir("/proc").expect("there is /proc").flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| Some((number(pid)?, Pid::from_raw(pid)?))).collect()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.process.id().cast_signed()).expect("it has a number");
        kill_process(pid, signal).expect("it can be signalled");
    }

    /// Waits for its end: how it ended, what else it printed, and what it printed on its error stream.
    pub fn output(mut self) -> (ExitStatus, String, String) {
        let mut errors = self.process.stderr.take().expect("it is piped");
        // Both at once: neither pipe may fill up.
        let errors = thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).map(|_| text)
        });
        let mut output = String::new();
        self.output.read_to_string(&mut output).expect("its output can be read");
        let errors = errors.join().expect("the reader ends").expect("its error stream can be read");
        let status = self.process.wait().expect("it can be waited for");
        println!("{status}\n{output}\n{errors}");
        (status, output, errors)
    }

    /// Waits for its end: how it ended, and what it printed on its error stream.
    pub fn end(self) -> (ExitStatus, String) {
        let (status, _, errors) = self.output();
        (status, errors)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only where a test has failed before `end`.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until a process is gone.
pub fn wait_for_end(pid: Pid) {
    let begun = Instant::now();
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
        if status.is_empty() || status.lines().any(|line| line.starts_with("State:\tZ")) {
            return;
        }
        assert!(begun.elapsed() < LIMIT, "process {} is still there", pid.as_raw_nonzero());
        thread::sleep(Duration::from_millis(2));
    }
}
