//! Copies and words in the order of one stream, and how far it has come.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use warpwire_device::abi::Global;

use super::delivery::Delivery;
use crate::device::{Device, Event, HostBuffer, Stream};
use crate::error::{Error, Result};
use crate::memory::RegisteredMemory;

/// Memories kept before the queue looks at its progress, behind a mark, of its own accord, so that they can be let go.
const KEPT_PER_MARK: usize = 64;
/// Words under way at once where they are copied.
const STAGED_WORDS: usize = 64;
/// How long a word waits for a place among them, behind the copies before it.
const ROOM: Duration = Duration::from_secs(60);
/// Looks at an unchanged progress before the stream itself is asked whether it has failed.
const LOOKS_PER_CHECK: u32 = 1024;

/// A stream, and what its work needs.
#[derive(Debug)]
pub(super) struct Queue {
    // Dropped in this order: the stream, which waits for its work, then what the work used.
    stream: Stream,
    words: Words,
    /// How small writes are made, where a kernel may make them.
    delivery: Option<Delivery>,
    kept: VecDeque<(u64, RegisteredMemory)>,
    /// The last mark that was set, and whether anything was queued behind it.
    last: u64,
    behind: bool,
    /// The last mark that the stream was seen to have passed.
    passed: u64,
    /// Memories kept since the progress was last looked at.
    unlooked: usize,
    looks: u32,
}

/// How words are set and marks are made.
#[derive(Debug)]
enum Words {
    /// By the stream itself. A mark is a number that it writes to a word of the host's: no driver call to look at it. Each
    /// word brings one, in the same call: a flush behind it needs no call of its own.
    Written { progress: HostBuffer<u64> },
    /// Where streams write no words (an old driver, or one that is set so): a word is copied from the host's memory, which
    /// arrives as a whole and after the copies before it, and a mark is an event.
    Copied { staged: HostBuffer<u64>, taken: u64, events: VecDeque<(u64, Event)> },
}

impl Queue {
    /// An empty queue with a stream of its own, by whichever way of setting words works on it.
    pub(super) fn new(device: &Device) -> Result<Self> {
        let (stream, progress) = (device.stream()?, device.allocate_host::<u64>(1)?);
        // SAFETY: the word is live until the stream has ended its work, and nobody else writes it.
        let tried = unsafe { stream.write_word(progress.address(), 0) }.and_then(|()| stream.synchronize());
        match tried {
            Ok(()) => Ok(Self::with(stream, Words::Written { progress })),
            Err(error) => {
                tracing::debug!(%error, "streams write no words here: a connection copies them");
                Self::copying(device)
            }
        }
    }

    /// The same, for writes within `device`: by a kernel where they are small. It is loaded now.
    pub(super) fn delivering(device: &Device) -> Result<Self> {
        let queue = Self::new(device)?;
        if let Words::Copied { .. } = queue.words {
            return Ok(queue);
        }
        match Delivery::new(device, &queue.stream) {
            Ok(delivery) => Ok(Self { delivery: Some(delivery), ..queue }),
            Err(error) => {
                tracing::debug!(%error, "no kernel for small writes: a connection copies them as it does large ones");
                Ok(queue)
            }
        }
    }

    /// As [`Queue::new`], with words that are copied.
    pub(super) fn copying(device: &Device) -> Result<Self> {
        let staged = device.allocate_host(STAGED_WORDS)?;
        Ok(Self::with(device.stream()?, Words::Copied { staged, taken: 0, events: VecDeque::new() }))
    }

    fn with(stream: Stream, words: Words) -> Self {
        let kept = VecDeque::new();
        Self { stream, words, delivery: None, kept, last: 0, behind: false, passed: 0, unlooked: 0, looks: 0 }
    }

    /// Queues a write, and behind it the setting of a word, where there is one.
    ///
    /// # Safety
    ///
    /// As for [`Stream::copy`] and [`Stream::write_word`]; `keep` is told of the memories at once.
    pub(super) unsafe fn write(
        &mut self,
        to: Global<u8>,
        from: Global<u8>,
        bytes: u64,
        word: Option<(Global<u64>, u64)>,
    ) -> Result<()> {
        if let (Some(delivery), Words::Written { progress }) = (&self.delivery, &self.words)
            && delivery.takes(bytes)
        {
            let mark = self.last + 1;
            // SAFETY: the caller's contract; for the progress as in `mark`. The queue drops the stream, which waits for its work,
            // before the delivery.
            unsafe { delivery.queue(&self.stream, [to, from], bytes, word, (progress.address(), mark)) }?;
            (self.last, self.behind) = (mark, false);
            return Ok(());
        }
        self.behind = true;
        // SAFETY: the caller's contract. The range is mapped here, so its length fits the address space.
        unsafe { self.stream.copy(to, from, bytes as usize) }?;
        match word {
            // SAFETY: the caller's contract.
            Some((at, value)) => unsafe { self.set(at, value) },
            None => Ok(()),
        }
    }

    /// Queues setting a word, and a mark behind it.
    ///
    /// # Safety
    ///
    /// As for [`Stream::write_word`]; `keep` is told of the memory at once.
    pub(super) unsafe fn set(&mut self, to: Global<u64>, value: u64) -> Result<()> {
        let mark = self.last + 1;
        let slot = match &mut self.words {
            Words::Written { progress } => {
                // SAFETY: the caller's contract for the first; for the second as in `mark`.
                unsafe { self.stream.write_words([(to, value), (progress.address(), mark)]) }?;
                (self.last, self.behind) = (mark, false);
                return Ok(());
            }
            Words::Copied { taken, .. } => {
                *taken += 1;
                *taken - 1
            }
        };
        // Each word has a mark of its own behind it, so the slot is free once all but the last
        // `STAGED_WORDS` of them are passed.
        let begun = Instant::now();
        while self.outstanding_words() > STAGED_WORDS as u64 {
            self.passed()?;
            if begun.elapsed() > ROOM {
                return Err(Error::StreamBusy { operation: "queue one more word" });
            }
            thread::yield_now();
        }
        let Words::Copied { staged, events, .. } = &mut self.words else { return Ok(()) };
        let index = slot % STAGED_WORDS as u64;
        // SAFETY: a word of the staging buffer, which no copy reads any more: see above.
        unsafe { AtomicU64::from_ptr(staged.as_ptr().add(index as usize)) }.store(value, Ordering::Release);
        let from = staged.address().add(index);
        // SAFETY: the caller's contract; the slot stays as it is until the copy's mark is passed.
        unsafe { self.stream.copy(to.cast(), from.cast(), size_of::<u64>()) }?;
        events.push_back((mark, self.stream.record()?));
        (self.last, self.behind) = (mark, false);
        Ok(())
    }

    /// Words in the staging buffer whose copies may not have ended. Every mark counts for one: some stand behind none.
    fn outstanding_words(&self) -> u64 {
        match &self.words {
            Words::Written { .. } => 0,
            Words::Copied { .. } => self.last - self.passed + 1,
        }
    }

    /// Keeps memories until what was queued so far is complete.
    pub(super) fn keep<const N: usize>(&mut self, memories: [&RegisteredMemory; N]) -> Result<()> {
        // A word has brought its mark; behind a copy there will be one.
        let mark = self.last + u64::from(self.behind);
        self.kept.extend(memories.into_iter().map(|memory| (mark, memory.clone())));
        self.unlooked += N;
        if self.unlooked >= KEPT_PER_MARK {
            self.mark()?;
            self.passed()?;
        }
        Ok(())
    }

    /// A mark behind everything queued so far.
    pub(super) fn mark(&mut self) -> Result<u64> {
        if !self.behind {
            return Ok(self.last);
        }
        let mark = self.last + 1;
        match &mut self.words {
            Words::Written { progress } => {
                // SAFETY: a word of the queue's own, which outlives the stream, and is looked at by atomic loads.
                unsafe { self.stream.write_word(progress.address(), mark) }?;
            }
            Words::Copied { events, .. } => events.push_back((mark, self.stream.record()?)),
        }
        (self.last, self.behind) = (mark, false);
        Ok(mark)
    }

    /// The last mark that the stream has passed.
    pub(super) fn passed(&mut self) -> Result<u64> {
        let before = self.passed;
        self.unlooked = 0;
        match &mut self.words {
            Words::Written { progress } => self.passed = read(progress),
            Words::Copied { events, .. } => {
                while let Some((mark, event)) = events.front()
                    && event.has_passed()?
                {
                    self.passed = *mark;
                    events.pop_front();
                }
            }
        }
        while self.kept.front().is_some_and(|(mark, _)| *mark <= self.passed) {
            self.kept.pop_front();
        }
        if self.passed == before && self.passed < self.last {
            self.look_after()?;
        } else {
            self.looks = 0;
        }
        Ok(self.passed)
    }

    /// A stream that has failed would leave its marks unpassed for ever: asked now and then, since that is a driver call.
    fn look_after(&mut self) -> Result<()> {
        self.looks += 1;
        if self.looks < LOOKS_PER_CHECK {
            return Ok(());
        }
        self.looks = 0;
        if !self.stream.is_idle()? {
            return Ok(());
        }
        // Its work has ended, the marks among it: a launch's failure comes out here.
        self.stream.synchronize()
    }
}

/// What the stream has written.
fn read(progress: &HostBuffer<u64>) -> u64 {
    // SAFETY: the host's view of the one word, aligned and live; the stream writes it as a whole.
    unsafe { AtomicU64::from_ptr(progress.as_ptr()) }.load(Ordering::Acquire)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use warpwire_device::abi::{ChannelId, OutboundHandle, Rank, SemaphoreHandle};
    use warpwire_kernels::ping_pong::{SemaphorePingPong, SemaphorePingPongArgs};

    use super::*;
    use crate::device::{DeviceSelector, LaunchConfig, builtin_module};
    use crate::memory::Transports;
    use crate::semaphore::HostSemaphore;

    /// While the stream stands still no mark is passed, and what its work needs is kept.
    #[test]
    fn nothing_is_let_go_before_it_is_complete() {
        let device = Device::open(DeviceSelector::Cpu).unwrap();
        for make in [Queue::new, Queue::copying, Queue::delivering] {
            let (gate, answer) = (HostSemaphore::new(&device).unwrap(), device.allocate::<u64>(1).unwrap());
            // Dropped first, also where an assertion fails: the kernel waits for the gate.
            let mut queue = make(&device).unwrap();
            let inbound = gate.handle(Rank(1), ChannelId(0)).inbound;
            let end = SemaphoreHandle { inbound, outbound: OutboundHandle { token: answer.address() } };
            let function = device.load(builtin_module()).unwrap().function::<SemaphorePingPong>().unwrap();
            let args = SemaphorePingPongArgs {
                ends: [end; 2],
                policy: queue.stream.policy(Rank(0), Duration::from_secs(60)),
                first_end: 1,
                rounds: 1,
                relaxed: 0,
                reserved: 0,
            };
            // SAFETY: gate, answer and queue live until the stream has ended its work.
            unsafe { queue.stream.launch(&function, LaunchConfig::new(1, 1), args) }.unwrap();

            let buffer = device.allocate_shareable::<u64>(3).unwrap();
            buffer.write(&[5, 0, 0]).unwrap();
            let before = Arc::strong_count(buffer.memory().0);
            let memory = RegisteredMemory::of(&buffer, Transports::CUDA_IPC).unwrap();
            let at = buffer.address();
            // SAFETY: the ranges lie in the memory that is kept.
            unsafe {
                queue.write(at.add(1).cast(), at.cast(), 8, None).unwrap();
                queue.keep([&memory]).unwrap();
                queue.set(at.add(2), 9).unwrap();
                queue.keep([&memory]).unwrap();
            }
            let mark = queue.mark().unwrap();
            assert_eq!(queue.mark().unwrap(), mark, "nothing was queued since");
            drop(memory);
            for _ in 0..3 * LOOKS_PER_CHECK {
                assert!(queue.passed().unwrap() < mark);
            }
            assert!(Arc::strong_count(buffer.memory().0) > before, "it is kept");
            assert_eq!(buffer.read().unwrap(), [5, 0, 0]);

            gate.signal();
            while queue.passed().unwrap() < mark {
                thread::yield_now();
            }
            assert_eq!(buffer.read().unwrap(), [5, 5, 9]);
            assert_eq!(Arc::strong_count(buffer.memory().0), before, "it is let go");
        }
    }

    /// A word brings its mark: what it needs is let go though nobody asks for one.
    #[test]
    fn words_alone_keep_nothing_for_ever() {
        let device = Device::open(DeviceSelector::Cpu).unwrap();
        for make in [Queue::new, Queue::copying, Queue::delivering] {
            let mut queue = make(&device).unwrap();
            let buffer = device.allocate_shareable::<u64>(1).unwrap();
            let memory = RegisteredMemory::of(&buffer, Transports::CUDA_IPC).unwrap();
            for value in 1..=5 * KEPT_PER_MARK as u64 {
                // SAFETY: the word lies in the memory that is kept.
                unsafe { queue.set(buffer.address(), value) }.unwrap();
                queue.keep([&memory]).unwrap();
                queue.stream.synchronize().unwrap();
                assert!(queue.kept.len() <= KEPT_PER_MARK, "{} are kept", queue.kept.len());
            }
            let last = queue.last;
            assert_eq!(queue.mark().unwrap(), last, "the word's own mark");
            assert_eq!(queue.passed().unwrap(), last);
            assert!(queue.kept.is_empty());
        }
    }

    /// Whoever sees a mark may look at the word that it came with. So the mark is written last: of two values for one place, the
    /// one that stays. By the stream, and by the kernel that makes small writes.
    #[test]
    fn a_word_is_written_before_its_mark() {
        let device = Device::open(DeviceSelector::Cpu).unwrap();
        let buffer = device.allocate_shareable::<u64>(2).unwrap();
        let [from, to] = [0, 1].map(|word| buffer.address().add(word).cast());
        for make in [Queue::new, Queue::delivering] {
            let mut queue = make(&device).unwrap();
            let Words::Written { progress } = &queue.words else {
                panic!("the CPU device's streams write words")
            };
            let place = progress.address();
            // SAFETY: a word of the queue's own, which outlives the stream, and two of the buffer, which outlives the queue.
            unsafe { queue.write(to, from, 8, Some((place, 1 << 40))) }.unwrap();
            queue.stream.synchronize().unwrap();
            assert_eq!(queue.passed().unwrap(), queue.last, "the word was written behind its mark");
        }
    }
}
