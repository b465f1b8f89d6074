//! The rank's side of its line to the launcher.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use anyhow::{Context, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The line to the launcher, which is this process' standard input.
pub struct Control {
    stream: BufReader<UnixStream>,
}

impl Control {
    /// Of a process that a launcher started.
    pub fn attach() -> anyhow::Result<Self> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        // A terminal, a pipe or a file has no peer.
        stream.peer_addr().context("this command is for processes that the launcher starts")?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Tells the launcher something, as one line.
    pub fn tell<T: Serialize>(&mut self, message: &T) -> anyhow::Result<()> {
        let line = serde_json::to_string(message)? + "\n";
        self.stream.get_mut().write_all(line.as_bytes()).context("the launcher does not listen")
    }

    /// What the launcher says next; `None` where it has nothing more to say. Waits for it: where the launcher dies, so does
    /// this process.
    pub fn hear<T: DeserializeOwned>(&mut self) -> anyhow::Result<Option<T>> {
        let mut line = String::new();
        self.stream.read_line(&mut line).context("cannot hear the launcher")?;
        if line.is_empty() {
            return Ok(None);
        }
        ensure!(line.ends_with('\n'), "the launcher broke off");
        serde_json::from_str(&line).map(Some).with_context(|| format!("the launcher said {line:?}"))
    }
}
