//! Virtual machines: started, followed, ended.

use super::tools::Tools;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// QEMU's exit status is twice what `init.sh` writes to isa-debug-exit's port, and one.
const PASSED: i32 = 2 * 16 + 1;
const FAILED: i32 = 2 * 17 + 1;

/// The memory of one, in MiB.
const MEMORY: u32 = 1536;

/// How a machine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every test program passed.
    Passed,
    /// One has failed.
    Failed,
    /// It ended without saying, or could not set itself up: QEMU's exit status.
    Lost(Option<i32>),
}

impl Verdict {
    fn of(status: Option<i32>) -> Verdict {
        match status {
            Some(PASSED) => Verdict::Passed,
            Some(FAILED) => Verdict::Failed,
            other => Verdict::Lost(other),
        }
    }
}

/// A line of a machine's console.
#[derive(Debug)]
pub struct Line {
    /// Which machine.
    pub host: u32,
    /// Its text.
    pub text: String,
}

/// A running machine; killed on drop.
#[derive(Debug)]
pub struct Machine {
    host: u32,
    process: Child,
}

impl Machine {
    /// Boots. Its console goes to `lines`. With several hosts they share the network at `socket`, which host 0 makes.
    pub fn start(
        tools: &Tools,
        image: &Path,
        (host, hosts): (u32, u32),
        socket: &Path,
        lines: Sender<Line>,
    ) -> Result<Machine> {
        let mut command = tools.qemu();
        // Software emulation everywhere: the same on every machine, whether it has /dev/kvm or not.
        command.args(["-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", &MEMORY.to_string()]);
        command.args(["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"]);
        command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]);
        command.arg("-kernel").arg(&tools.kernel).arg("-initrd").arg(image);
        let words = format!("console=ttyS0 quiet panic=-1 warpwire.host={host} warpwire.hosts={hosts}");
        command.args(["-append", &words]);
        command.args(["-netdev", &network(host, hosts, socket)]);
        let device = format!("virtio-net-pci,netdev=net,romfile=,mac=52:54:00:09:00:{:02x}", host + 1);
        command.args(["-device", &device]);
        let process = spawn(&mut command, host, lines)?;
        Ok(Machine { host, process })
    }

    /// Its verdict, when it has ended.
    pub fn poll(&mut self) -> Result<Option<Verdict>> {
        let status = self.process.try_wait().context("cannot wait for QEMU")?;
        Ok(status.map(|status| Verdict::of(status.code())))
    }

    /// Which it is.
    pub fn host(&self) -> u32 {
        self.host
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It has ended already, but after a failure.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn network(host: u32, hosts: u32, socket: &Path) -> String {
    if hosts == 1 {
        return "hubport,id=net,hubid=0".into();
    }
    let server = if host == 0 { "on" } else { "off" };
    format!("stream,id=net,server={server},addr.type=unix,addr.path={}", socket.display())
}

fn spawn(command: &mut Command, host: u32, lines: Sender<Line>) -> Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut process = command.spawn().context("cannot run QEMU")?;
    let Some(console) = process.stdout.take() else { bail!("QEMU's console is not there") };
    thread::spawn(move || {
        for line in BufReader::new(console).split(b'\n').map_while(Result::ok) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if lines.send(Line { host, text }).is_err() {
                break;
            }
        }
    });
    Ok(process)
}

/// Waits until host 0 has made the socket.
pub fn wait_for_socket(socket: &Path, deadline: Instant) -> Result<()> {
    while !socket.exists() {
        if Instant::now() > deadline {
            bail!("QEMU has made no {}", socket.display());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Hands the consoles' lines to `show` until every machine has ended, and gives their verdicts by host.
pub fn follow(
    mut machines: Vec<Machine>,
    lines: &Receiver<Line>,
    deadline: Instant,
    mut show: impl FnMut(&Line),
) -> Result<Vec<(u32, Verdict)>> {
    let mut verdicts = Vec::new();
    while !machines.is_empty() {
        while let Ok(line) = lines.recv_timeout(Duration::from_millis(50)) {
            show(&line);
        }
        let mut running = Vec::new();
        for mut machine in machines {
            match machine.poll()? {
                Some(verdict) => verdicts.push((machine.host(), verdict)),
                None => running.push(machine),
            }
        }
        machines = running;
        if let Some(machine) = machines.first()
            && Instant::now() > deadline
        {
            bail!("host {} had not ended in time, and was stopped", machine.host());
        }
    }
    while let Ok(line) = lines.recv_timeout(Duration::from_millis(200)) {
        show(&line);
    }
    verdicts.sort_by_key(|(host, _)| *host);
    Ok(verdicts)
}

/// A path for the socket: short, since the kernel takes no more than 107 bytes.
pub fn socket_path() -> PathBuf {
    let path = std::env::temp_dir().join(format!("warpwire-rdma-{}.sock", std::process::id()));
    // Left by a process of the same number.
    let _ = fs::remove_file(&path);
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_status_is_the_verdict() {
        assert_eq!(Verdict::of(Some(33)), Verdict::Passed);
        assert_eq!(Verdict::of(Some(35)), Verdict::Failed);
        // A machine that powers off without a word, or that a signal has ended, has not passed.
        assert_eq!(Verdict::of(Some(0)), Verdict::Lost(Some(0)));
        assert_eq!(Verdict::of(None), Verdict::Lost(None));
    }

    #[test]
    fn hosts_are_joined_by_a_socket() {
        let socket = Path::new("/tmp/s");
        assert!(!network(0, 1, socket).contains("/tmp/s"));
        assert!(network(0, 2, socket).contains("server=on"));
        assert!(network(1, 2, socket).contains("server=off"));
    }
}
