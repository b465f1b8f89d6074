//! Which connections have something to read or room to write.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

/// What happened to which number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

/// What is waited for on a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Interest {
    pub(crate) const READ: Self = Self { read: true, write: false };

    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.read);
        flags.set(EventFlags::OUT, self.write);
        flags
    }
}

/// The descriptors waited for.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

/// Looked at in one turn.
const EVENTS: usize = 128;
/// No wait takes longer: a clock that is off must not make it endless.
const LONGEST: Duration = Duration::from_secs(60);

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)? })
    }

    /// Waits for other things on a descriptor than before. Waiting for nothing takes it out: a connection that has broken
    /// would else be reported without end.
    pub(crate) fn set(
        &self,
        source: &impl AsFd,
        token: u64,
        before: Interest,
        now: Interest,
    ) -> io::Result<()> {
        let none = Interest::default();
        let data = EventData::new_u64(token);
        match (before == none, now == none) {
            (true, true) => {}
            (true, false) => epoll::add(&self.epoll, source, data, now.flags())?,
            (false, true) => epoll::delete(&self.epoll, source)?,
            (false, false) if before == now => {}
            (false, false) => epoll::modify(&self.epoll, source, data, now.flags())?,
        }
        Ok(())
    }

    /// Waits until something happens or it is `until`.
    pub(crate) fn wait(&self, until: Option<Instant>) -> io::Result<Vec<Readiness>> {
        let left =
            until.map_or(LONGEST, |until| until.saturating_duration_since(Instant::now()).min(LONGEST));
        // Rounded up to the millisecond that the system counts in, or the last one would be spent spinning.
        let left = left + Duration::from_micros(999);
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let mut room = [MaybeUninit::uninit(); EVENTS];
        let events = match epoll::wait(&self.epoll, &mut room, Some(&timeout)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => &mut [],
            Err(error) => return Err(error.into()),
        };
        let readiness = |event: &Event| {
            let flags = event.flags;
            let broken = flags.intersects(EventFlags::HUP | EventFlags::ERR);
            Readiness {
                token: event.data.u64(),
                readable: broken || flags.contains(EventFlags::IN),
                writable: broken || flags.contains(EventFlags::OUT),
            }
        };
        Ok(events.iter().map(readiness).collect())
    }
}
