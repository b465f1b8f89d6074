//! What arrives at the thread that stores signals, in its order.

use super::token;
use crate::error::Result;

/// A word of this rank's, by the names that it gave to its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct WordName {
    /// The key of its memory.
    pub(super) key: u32,
    /// Where it lies.
    pub(super) address: u64,
}

impl WordName {
    /// The message that names it, with the value that it has before the next signal.
    pub(super) fn message(self, before: u64) -> [u64; 3] {
        [u64::from(self.key), self.address, before]
    }
}

/// What a completion says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// From now on signals are of this word, which has this value.
    Named(WordName, u64),
    /// The low half of the word's next value.
    Low(u32),
}

impl Arrival {
    /// A message, read.
    pub(super) fn of_message([key, address, before]: [u64; 3]) -> Self {
        // The sender has made it of 32 bits; of any others no region is found.
        Self::Named(WordName { key: u32::try_from(key).unwrap_or(u32::MAX), address }, before)
    }
}

/// Where signals go.
pub(super) trait Sink {
    /// Returns once data that arrived before the last completion is visible to whoever sees a later store.
    fn flush(&mut self, word: WordName) -> Result<()>;

    /// Stores a word, at system scope with release order.
    fn store(&mut self, word: WordName, value: u64) -> Result<()>;
}

/// The word that signals are of, and its value.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    current: Option<(WordName, u64)>,
}

impl Inbox {
    /// Takes what one poll has found. Of several signals to one word the last is stored: whoever waits for one before it
    /// sees more. The order is: completions, a flush, the store.
    ///
    /// # Errors
    ///
    /// The sink's; `None` of them for a signal of no word.
    pub(super) fn take(
        &mut self,
        arrivals: &[Arrival],
        sink: &mut impl Sink,
    ) -> Result<(), Option<crate::Error>> {
        let mut unstored = false;
        for arrival in arrivals {
            match *arrival {
                Arrival::Named(word, before) => {
                    if std::mem::take(&mut unstored) {
                        self.store(sink)?;
                    }
                    self.current = Some((word, before));
                }
                Arrival::Low(low) => {
                    let (_, value) = self.current.as_mut().ok_or(None)?;
                    *value = token::rebuild(*value, low);
                    unstored = true;
                }
            }
        }
        if unstored { self.store(sink) } else { Ok(()) }
    }

    fn store(&self, sink: &mut impl Sink) -> Result<(), Option<crate::Error>> {
        let (word, value) = self.current.ok_or(None)?;
        sink.flush(word)?;
        sink.store(word, value)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Trace(Vec<String>);

    impl Sink for Trace {
        fn flush(&mut self, word: WordName) -> Result<()> {
            self.0.push(format!("flush {}", word.address));
            Ok(())
        }

        fn store(&mut self, word: WordName, value: u64) -> Result<()> {
            self.0.push(format!("store {} {value}", word.address));
            Ok(())
        }
    }

    fn word(address: u64) -> WordName {
        WordName { key: 1, address }
    }

    fn traced(inbox: &mut Inbox, arrivals: &[Arrival]) -> Vec<String> {
        let mut trace = Trace::default();
        inbox.take(arrivals, &mut trace).unwrap();
        trace.0
    }

    #[test]
    fn data_is_flushed_before_each_store() {
        let mut inbox = Inbox::default();
        let first = [Arrival::Named(word(8), 0), Arrival::Low(1)];
        assert_eq!(traced(&mut inbox, &first), ["flush 8", "store 8 1"]);
        assert_eq!(traced(&mut inbox, &[Arrival::Low(2)]), ["flush 8", "store 8 2"]);
        // Several of one poll: one store of the last.
        assert_eq!(traced(&mut inbox, &[Arrival::Low(3), Arrival::Low(4)]), ["flush 8", "store 8 4"]);
        assert_eq!(traced(&mut inbox, &[]), [] as [&str; 0]);
    }

    #[test]
    fn no_word_is_lost_when_another_is_named() {
        let mut inbox = Inbox::default();
        let near = (1 << 32) - 1;
        let arrivals = [
            Arrival::Named(word(8), near),
            Arrival::Low(0),
            Arrival::Named(word(16), 6),
            Arrival::Low(7),
            Arrival::Named(word(8), 1 << 32),
            Arrival::Low(1),
        ];
        let wrapped = 1u64 << 32;
        assert_eq!(
            traced(&mut inbox, &arrivals),
            [
                "flush 8".to_owned(),
                format!("store 8 {wrapped}"),
                "flush 16".to_owned(),
                "store 16 7".to_owned(),
                "flush 8".to_owned(),
                format!("store 8 {}", wrapped + 1),
            ]
        );
    }

    #[test]
    fn a_signal_of_no_word_is_an_error() {
        assert!(matches!(Inbox::default().take(&[Arrival::Low(1)], &mut Trace::default()), Err(None)));
    }

    #[test]
    fn messages_name_words() {
        let name = WordName { key: u32::MAX - 1, address: 1 << 40 };
        assert_eq!(Arrival::of_message(name.message(9)), Arrival::Named(name, 9));
    }
}
