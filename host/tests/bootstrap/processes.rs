//! Ranks that are processes: this test's own program, started again.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use warpwire::abi::Rank;
use warpwire::bootstrap::{Bootstrap, Group, Tag, from_env};

use crate::jobs::free_port;
use crate::load::many_messages;

/// Says to a process of this program which part it plays.
const ROLE: &str = "BOOTSTRAP_TEST_ROLE";
/// No process of a test lives longer.
const LIFE: Duration = Duration::from_secs(90);

/// A process, killed when it is dropped.
struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Process {
    fn start(role: &str, variables: &[(&str, String)]) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "processes::part_of_a_process", "--nocapture", "--test-threads", "1"]);
        command.env(ROLE, role).envs(variables.iter().map(|(name, value)| (*name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The lines that it prints, up to the one with `mark`.
    fn wait_for(&mut self, mark: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "{mark:?} never came: {lines:?}");
            lines.push(line.trim_end().to_owned());
            if line.contains(mark) {
                return lines;
            }
        }
    }

    fn signal(&self, signal: &str) {
        assert!(
            Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success()
        );
    }

    /// What it printed by its end, and whether it ended well.
    fn output(mut self) -> (bool, String) {
        drop(self.child.stdin.take());
        let mut err = self.child.stderr.take().unwrap();
        let errors = thread::spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text).unwrap();
            text
        });
        let mut text = String::new();
        let end = Instant::now() + LIFE;
        let child = &mut self.child;
        let success = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status.success();
            }
            assert!(Instant::now() < end, "a process did not end");
            thread::sleep(Duration::from_millis(10));
        };
        self.lines.read_to_string(&mut text).unwrap();
        (success, text + &errors.join().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The variables of a rank, as torchrun sets them.
fn rank_of(rank: usize, size: usize, port: u16) -> Vec<(&'static str, String)> {
    vec![
        ("RANK", rank.to_string()),
        ("WORLD_SIZE", size.to_string()),
        ("MASTER_ADDR", "127.0.0.1".to_owned()),
        ("MASTER_PORT", port.to_string()),
        ("WARPWIRE_SECRET", format!("test {port}")),
        ("WARPWIRE_BOOTSTRAP_TIMEOUT", "30".to_owned()),
    ]
}

fn start(role: &str, size: usize) -> Vec<Process> {
    let port = free_port();
    (0..size).map(|rank| Process::start(role, &rank_of(rank, size, port))).collect()
}

/// What a process of this program does: nothing, unless it was started to play a part.
#[test]
fn part_of_a_process() {
    let Ok(role) = env::var(ROLE) else { return };
    let log = tracing_subscriber::fmt().with_ansi(false);
    match role.as_str() {
        // Its parent reads who has checked in.
        "check in" => log.with_writer(std::io::stdout).with_max_level(tracing::Level::DEBUG).init(),
        _ => log.with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init(),
    }
    match role.as_str() {
        "many messages" => many_messages(),
        "exchange" => exchange(&from_env().unwrap()),
        "wait" => wait(&from_env().unwrap()),
        "stand still" => stand_still(&from_env().unwrap()),
        "exit" => {
            let rank = from_env().unwrap();
            rank.barrier().unwrap();
            std::process::exit(0);
        }
        "check in" => match from_env() {
            Ok(_) => println!("started"),
            Err(error) => println!("failed: {error}"),
        },
        other => panic!("{other:?} is no part"),
    }
}

fn exchange(rank: &Group) {
    let (own, size) = (rank.rank().0, rank.size() as u32);
    let gathered = rank.all_gather(&own.to_le_bytes()).unwrap();
    assert!((0..size).zip(&gathered).all(|(number, bytes)| *bytes == number.to_le_bytes()));
    for round in 0..100u32 {
        let (next, before) = (Rank((own + 1) % size), Rank((own + size - 1) % size));
        rank.send(next, Tag(7), &(own * 1000 + round).to_le_bytes()).unwrap();
        assert_eq!(rank.recv(before, Tag(7)).unwrap(), (before.0 * 1000 + round).to_le_bytes());
        rank.barrier().unwrap();
    }
    println!("exchanged among {size}, {} of them here", rank.ranks_per_node());
}

/// Rank 2 waits to be killed or stopped; the others wait for it, each in another way. Nobody leaves before its input ends,
/// or one could be missed that is only done.
fn wait(rank: &Group) {
    rank.barrier().unwrap();
    println!("ready");
    let outcome = match rank.rank().0 {
        2 => rank.recv(Rank(0), Tag(0)).map(drop),
        1 => rank.recv(Rank(2), Tag(1)).map(drop).and_then(|()| rank.barrier()),
        _ => rank.barrier(),
    };
    println!("first: {}", outcome.unwrap_err());
    println!("later: {}", rank.recv(Rank(2), Tag(1)).unwrap_err());
    println!("send: {:?}", rank.send(Rank(2), Tag(1), b"x").map_err(|error| error.to_string()));
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Passes barriers until one fails.
fn stand_still(rank: &Group) {
    rank.barrier().unwrap();
    println!("ready");
    let error = loop {
        if let Err(error) = rank.barrier() {
            break error;
        }
    };
    println!("failed: {error}");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// In a process of its own, whose memory nobody else takes.
#[test]
fn a_hundred_thousand_messages_on_one_tag_keep_order_and_memory() {
    let (success, text) = Process::start("many messages", &[]).output();
    assert!(success, "{text}");
}

#[test]
fn processes_exchange_what_they_have() {
    for size in [2, 8] {
        for process in start("exchange", size) {
            let (success, text) = process.output();
            assert!(
                success && text.contains(&format!("exchanged among {size}, {size} of them here")),
                "{text}"
            );
        }
    }
}

#[test]
fn a_killed_rank_is_named_in_every_call() {
    let mut job = start("wait", 6);
    job.iter_mut().for_each(|process| drop(process.wait_for("ready")));
    job[2].signal("-KILL");
    for (rank, process) in job.iter_mut().enumerate().filter(|(rank, _)| *rank != 2) {
        let lines = process.wait_for("send: ");
        for call in ["first: ", "later: recv: ", "send: Err(\"send: "] {
            let line = lines.iter().find(|line| line.contains(call));
            assert!(line.is_some_and(|line| line.contains("rank 2 is lost")), "rank {rank}: {lines:?}");
        }
    }
}

#[test]
fn a_rank_that_stands_still_is_named_by_the_deadline() {
    let port = free_port();
    let rank = |rank: usize| {
        let mut variables = rank_of(rank, 6, port);
        variables.retain(|(name, _)| *name != "WARPWIRE_BOOTSTRAP_TIMEOUT");
        variables.push(("WARPWIRE_BOOTSTRAP_TIMEOUT", "8".to_owned()));
        Process::start("stand still", &variables)
    };
    let mut job: Vec<Process> = (0..6).map(rank).collect();
    job.iter_mut().for_each(|process| drop(process.wait_for("ready")));
    job[3].signal("-STOP");
    for (_, process) in job.iter_mut().enumerate().filter(|(rank, _)| *rank != 3) {
        // The barriers that rank 3 still was in, then the one that it is missed in.
        let lines = process.wait_for("failed: ");
        assert!(lines.last().unwrap().contains("rank 3 did not answer within 8s"), "{lines:?}");
    }
}

#[test]
fn a_rank_that_exits_after_its_part_disturbs_nobody() {
    for process in start("exit", 8) {
        let (success, text) = process.output();
        assert!(success, "{text}");
    }
}

#[test]
fn a_rank_that_dies_while_others_are_still_coming_is_named() {
    let port = free_port();
    let mut job: Vec<Process> =
        [0, 1, 2].map(|rank| Process::start("check in", &rank_of(rank, 4, port))).into();
    let checked_in = [job[0].wait_for("checked in"), job[0].wait_for("checked in")];
    assert!(checked_in.iter().flatten().any(|line| line.contains("checked in rank=2 ")), "{checked_in:?}");
    let dead = job.remove(2);
    dead.signal("-KILL");
    for process in job {
        let (success, text) = process.output();
        assert!(success && text.contains("failed: check-in: rank 2 is lost"), "{text}");
    }
}

#[test]
fn variables_are_checked_and_unknown_ones_named() {
    let port = free_port();
    let with = |name, value: &str| {
        let mut variables = rank_of(0, 1, port);
        variables.retain(|(known, _)| *known != name);
        variables.push((name, value.to_owned()));
        Process::start("check in", &variables).output().1
    };
    for (name, value) in [
        ("WARPWIRE_BOOTSTRAP_TIMEOUT", "0"),
        ("WARPWIRE_BOOTSTRAP_TIMEOUT", "-1"),
        ("WARPWIRE_BOOTSTRAP_TIMEOUT", "1e18"),
        ("WARPWIRE_BOOTSTRAP_TIMEOUT", "abc"),
        ("WARPWIRE_SOCKET_FAMILY", "5"),
        ("WARPWIRE_SOCKET_IFNAME", ""),
        ("WARPWIRE_HOST_ID", " "),
        ("RANK", "1"),
        ("WORLD_SIZE", "0"),
        ("MASTER_PORT", "port"),
    ] {
        let text = with(name, value);
        assert!(text.contains(&format!("failed: the environment variable {name} is {value:?}")), "{text}");
    }
    let text = with("WARPWIRE_SOCKET_IFNAME", "nosuch");
    assert!(text.contains("started"), "a root at an address of its own needs no interface: {text}");
    let text = with("WARPWIRE_HOSTID", "a");
    assert!(
        text.contains("WARPWIRE_HOSTID is none that is read") && text.contains("WARPWIRE_HOST_ID"),
        "{text}"
    );
    assert!(text.contains("started"), "{text}");
}

#[test]
fn ranks_of_one_machine_act_out_several_hosts() {
    let port = free_port();
    let rank = |rank: usize| {
        let mut variables = rank_of(rank, 4, port);
        variables.push(("WARPWIRE_HOST_ID", format!("node{}", rank % 2)));
        Process::start("exchange", &variables)
    };
    for process in (0..4).map(rank).collect::<Vec<_>>() {
        let (success, text) = process.output();
        assert!(success && text.contains("exchanged among 4, 2 of them here"), "{text}");
    }
}
