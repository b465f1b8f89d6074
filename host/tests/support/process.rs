//! Tests in several processes: a child is this test program again, running its test `child` alone.
#![allow(dead_code, reason = "each test file uses a part")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, io};

/// Longer than anything that goes well takes.
pub const LIMIT: Duration = Duration::from_secs(120);

const ROLE: &str = "MEMORY_TEST_ROLE";
/// What a line from child to parent begins with: the test harness prints lines of its own.
const MARK: &str = "@@ ";

/// What this process is to do, where it is a child.
pub fn role() -> Option<String> {
    env::var(ROLE).ok()
}

/// The child's next line from its parent; `None` at the end.
pub fn hear_parent() -> Option<String> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).expect("the parent's pipe can be read");
    let line = line.trim_end();
    (!line.is_empty()).then(|| line.to_owned())
}

/// A line to the parent.
pub fn tell_parent(line: &str) {
    println!("{MARK}{line}");
    io::stdout().flush().expect("the parent's pipe can be written");
}

/// A child process, killed on drop.
pub struct Child {
    process: std::process::Child,
    lines: Receiver<String>,
}

/// The command that runs this program's test `child` as `role`.
pub fn command(role: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program has a path"));
    command.args(["child", "--exact", "--nocapture", "--test-threads=1"]).env(ROLE, role);
    command
}

impl Child {
    pub fn start(role: &str) -> Self {
        Self::spawn(&mut command(role)).expect("the test program starts again")
    }

    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // Not at the line's beginning: the harness has written the test's name there.
                if let Some((_, told)) = line.split_once(MARK) {
                    let _ = sender.send(told.to_owned());
                }
            }
        });
        Ok(Self { process, lines })
    }

    pub fn tell(&mut self, line: &str) {
        let input = self.process.stdin.as_mut().expect("it is piped");
        writeln!(input, "{line}").and_then(|()| input.flush()).expect("the child reads");
    }

    pub fn hear(&mut self) -> String {
        self.lines.recv_timeout(LIMIT).expect("the child answers")
    }

    /// The child's next line, if it says one before it ends.
    pub fn try_hear(&mut self) -> Option<String> {
        self.lines.recv_timeout(LIMIT).ok()
    }

    /// Says something, and gives the answer.
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.hear()
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends it at once, as a fault would.
    pub fn kill(mut self) {
        self.process.kill().expect("the child can be killed");
        self.process.wait().expect("it has ended");
    }

    /// Closes its input, and waits until it has ended well.
    pub fn end(mut self) {
        drop(self.process.stdin.take());
        let begun = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().expect("the child can be waited for") {
                assert!(status.success(), "the child failed: {status}");
                return;
            }
            assert!(begun.elapsed() < LIMIT, "the child does not end");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Only where a test has failed before `end`.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn of_hex(text: &str) -> Vec<u8> {
    let digit = |c: u8| (c as char).to_digit(16).expect("a hexadecimal digit") as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
