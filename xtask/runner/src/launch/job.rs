//! A job: all of its ranks, from their start to their end.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{Failure, LaunchError};
use super::interrupt::Watch;
use super::meeting::Meeting;
use super::member::{Member, spelled};
use super::mps::Mps;
use super::placement::Placement;
use crate::queues;

/// How long a job may take where nobody says otherwise.
const LIMIT: Duration = Duration::from_secs(300);
/// How long the other ranks have, once one has failed, to see it and say so.
const GRACE: Duration = Duration::from_secs(3);
/// How long a killed process may take to be gone: the driver frees a GPU's memory first.
const GONE: Duration = Duration::from_secs(30);
/// How often signals, the deadline and the processes are looked at while nothing comes from any rank.
const TICK: Duration = Duration::from_millis(50);
/// The same, while a process is about to end.
const SHORT_TICK: Duration = Duration::from_millis(1);

/// What to start, and how often.
pub struct Launch {
    program: OsString,
    arguments: Vec<Vec<OsString>>,
    variables: Vec<(OsString, OsString)>,
    limit: Duration,
    grace: Duration,
    mps: Option<Mps>,
    forwards: bool,
}

impl Launch {
    /// `program`, as many times as there are lists of arguments: the first is rank 0's.
    pub fn new(program: impl Into<OsString>, arguments: Vec<Vec<OsString>>) -> Self {
        let (program, variables) = (program.into(), Vec::new());
        Self { program, arguments, variables, limit: LIMIT, grace: GRACE, mps: None, forwards: false }
    }

    /// This very program.
    pub fn this_program(arguments: Vec<Vec<OsString>>) -> Result<Self, LaunchError> {
        let program = env::current_exe().map_err(|source| LaunchError::System {
            what: "cannot tell where this program is".to_owned(),
            source,
        })?;
        Ok(Self::new(program, arguments))
    }

    /// How long all of it may take.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// How long the other ranks have, once one has failed, to end by themselves.
    #[cfg(test)]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Every rank has this in its environment, unless this program has it in its own: the user's word counts.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        if env::var_os(name).is_none() {
            self.variables.push((name.into(), value.into()));
        }
        self
    }

    /// The ranks are placed like that: where they share GPUs, by a multi-process service, which ends with the job, and with a
    /// share of the hardware queues each.
    pub fn placed(mut self, placement: &Placement) -> Result<Self, LaunchError> {
        if placement.shares {
            self.mps = Mps::start()?;
            self.variables.extend(self.mps.iter().flat_map(Mps::variables));
            let queues = queues::of_a_rank(self.arguments.len());
            self.variables.extend(queues.map(|(name, value)| (name.into(), value.into())));
        }
        Ok(self)
    }

    /// What the ranks print on their standard output goes to this program's, with the rank before each line.
    pub fn forward_output(mut self) -> Self {
        self.forwards = true;
        self
    }

    /// Starts every rank. From here on signals end the job first. The calling thread has to keep the job until its end: the
    /// system kills the ranks when that thread ends.
    pub fn start(self) -> Result<Job, LaunchError> {
        let watch = Watch::begin()
            .map_err(|source| LaunchError::System { what: "cannot watch for signals".to_owned(), source })?;
        let Self { program, arguments, variables, limit, grace, mps, forwards } = self;
        let ranks = arguments.len();
        let mut job = Job {
            members: Vec::with_capacity(ranks),
            limit,
            deadline: Instant::now() + limit,
            grace,
            meeting: Meeting::new()?,
            _mps: mps,
            watch,
        };
        for (rank, arguments) in arguments.into_iter().enumerate() {
            let mut command = Command::new(&program);
            command.args(&arguments);
            command.envs(variables.iter().map(|(name, value)| (name, value)));
            command.envs(job.meeting.variables(rank, ranks));
            let started = Member::start(rank, command, forwards);
            let member = started.map_err(|source| {
                let program = spelled(&program, &arguments);
                LaunchError::Start { rank, program, source }
            })?;
            job.members.push(member);
        }
        Ok(job)
    }
}

/// Running ranks. Dropped before its end, it kills them, and waits until they are gone.
pub struct Job {
    members: Vec<Member>,
    limit: Duration,
    deadline: Instant,
    grace: Duration,
    meeting: Meeting,
    /// Ends behind the ranks, and before a signal takes its effect.
    _mps: Option<Mps>,
    watch: Watch,
}

impl Job {
    /// The ranks' processes.
    #[cfg(test)]
    pub fn ids(&self) -> Vec<u32> {
        self.members.iter().map(Member::id).collect()
    }

    /// Gives the ranks `limit` more from now on, whatever they had before.
    pub fn extend(&mut self, limit: Duration) {
        self.limit = limit;
        self.deadline = Instant::now() + limit;
    }

    /// Tells every rank.
    pub fn tell<T: Serialize>(&mut self, message: &T) -> Result<(), LaunchError> {
        let system = |what: &str, source| LaunchError::System { what: what.to_owned(), source };
        let line =
            serde_json::to_string(message).map_err(|error| system("cannot write a message", error.into()))?;
        for member in &mut self.members {
            member.tell(&line).map_err(|source| system("cannot tell the ranks", source))?;
        }
        Ok(())
    }

    /// The next message of every rank, by rank. Waits for all of them.
    pub fn hear<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, LaunchError> {
        self.wait(|member| member.has_said())?;
        let said: Vec<String> = self.members.iter_mut().filter_map(Member::take_said).collect();
        let parse = |(rank, said): (usize, String)| {
            serde_json::from_str(&said).map_err(|source| LaunchError::Message { rank, said, source })
        };
        said.into_iter().enumerate().map(parse).collect()
    }

    /// Has nothing more to tell, and waits until every rank has ended, and well.
    pub fn finish(mut self) -> Result<(), LaunchError> {
        self.members.iter_mut().for_each(Member::close);
        self.wait(|member| member.status().is_some_and(|status| status.success()))
    }

    /// Waits until all ranks are as they should be. Where one fails, or ends before, all of them are ended.
    fn wait(&mut self, ready: impl Fn(&Member) -> bool) -> Result<(), LaunchError> {
        loop {
            self.look(self.deadline)?;
            let lost = |member: &Member| {
                let status = member.status();
                status.is_some_and(|status| !status.success() || !ready(member))
            };
            if self.members.iter().any(lost) {
                return Err(self.fail(lost));
            }
            if self.members.iter().all(&ready) {
                return Ok(());
            }
            if let Some(signal) = self.watch.signal() {
                self.end();
                return Err(LaunchError::Interrupted { signal });
            }
            if Instant::now() >= self.deadline {
                let waited_for = self.ranks(|member| !ready(member));
                self.end();
                return Err(LaunchError::Late { limit: self.limit, waited_for });
            }
        }
    }

    /// Waits until something comes from a rank, at most until `until` and a tick, and takes it in.
    fn look(&mut self, until: Instant) -> Result<(), LaunchError> {
        let system = |what: &str, source| LaunchError::System { what: what.to_owned(), source };
        let tick = if self.members.iter().any(Member::is_leaving) { SHORT_TICK } else { TICK };
        let time = tick.min(until.saturating_duration_since(Instant::now()));
        let descriptors = self.members.iter().flat_map(Member::descriptors);
        let mut waited_for: Vec<PollFd<'_>> =
            descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)).collect();
        if waited_for.is_empty() {
            // Programs that closed all three, and have not ended.
            thread::sleep(time);
        } else {
            let time = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
            match poll(&mut waited_for, Some(&time)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(system("cannot wait for the ranks", error.into())),
            }
        }
        let looked = self.members.iter_mut().try_for_each(Member::look);
        looked.map_err(|source| system("cannot read what the ranks say", source))
    }

    /// Lets the others see that a rank was lost, ends what is left, and says which was the first.
    fn fail(&mut self, lost: impl Fn(&Member) -> bool) -> LaunchError {
        let first = self.ranks(&lost);
        let until = Instant::now() + self.grace;
        let running = |job: &Self| job.members.iter().any(|member| member.status().is_none());
        while running(self) && Instant::now() < until && self.watch.signal().is_none() {
            if self.look(until).is_err() {
                break;
            }
        }
        // A process that a signal ended did not react to another's end, whatever was seen first; those that were lost at the
        // same look are in no order.
        let by_signal = |member: &Member| {
            !member.was_killed() && member.status().is_some_and(|status| status.signal().is_some())
        };
        let rank = self.ranks(by_signal).first().or(first.first()).copied().unwrap_or_default();
        self.end();
        let others = |which: &dyn Fn(&Member) -> bool| {
            let mut ranks = self.ranks(which);
            ranks.retain(|other| *other != rank);
            ranks
        };
        let failed = |member: &Member| member.status().is_some_and(|status| !status.success());
        let member = &self.members[rank];
        LaunchError::Failed(Box::new(Failure {
            rank,
            ranks: self.members.len(),
            status: member.status().unwrap_or_default(),
            tail: member.tail(),
            followed: others(&|member| failed(member) && !member.was_killed()),
            killed: others(&Member::was_killed),
        }))
    }

    /// Kills what still runs, and waits until it is gone.
    fn end(&mut self) {
        self.members.iter_mut().for_each(Member::kill);
        let until = Instant::now() + GONE;
        while self.members.iter().any(|member| member.status().is_none()) {
            if self.look(until).is_err() || Instant::now() >= until {
                let left = self.ranks(|member| member.status().is_none());
                tracing::error!("ranks {left:?} were killed and are not gone: the system holds them");
                return;
            }
        }
    }

    fn ranks(&self, which: impl Fn(&Member) -> bool) -> Vec<usize> {
        (0..).zip(&self.members).filter(|(_, member)| which(member)).map(|(rank, _)| rank).collect()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
