//! The requests of one send queue that have not completed.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::verbs::{Region, Request, Work};

/// What is under way, oldest first. Numbers count from 1 and rise with each request.
#[derive(Debug)]
pub(super) struct Flight {
    depth: usize,
    last: u64,
    completed: u64,
    under_way: VecDeque<Entry>,
    /// Receives of the peer's that were used up so far.
    receives: u64,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    work: Work,
    /// The source, which stays registered until the request has completed.
    _region: Option<Arc<Region>>,
}

impl Flight {
    /// Nothing under way, room for `depth` requests.
    pub(super) fn new(depth: usize) -> Self {
        Self { depth, last: 0, completed: 0, under_way: VecDeque::with_capacity(depth), receives: 0 }
    }

    /// Requests that there is room for.
    pub(super) fn room(&self) -> usize {
        self.depth - self.under_way.len()
    }

    /// The number of the last request.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The last number up to which all have completed.
    pub(super) fn completed(&self) -> u64 {
        self.completed
    }

    /// Receives of the peer's that all requests so far have used up, and `works` will.
    pub(super) fn receives_with(&self, works: &[Work]) -> u64 {
        self.receives + works.iter().filter(|work| takes_receive(work)).count() as u64
    }

    /// Numbers requests that are about to be posted; there is room for them. The last tells of its success: a queue completes
    /// in order, so that it tells of the others' too.
    pub(super) fn number(&mut self, works: &[Work], region: Option<&Arc<Region>>) -> Vec<Request> {
        self.receives = self.receives_with(works);
        let count = works.len();
        let number = |(index, &work): (usize, &Work)| {
            self.last += 1;
            self.under_way.push_back(Entry { id: self.last, work, _region: region.cloned() });
            Request { id: self.last, work, signalled: index + 1 == count }
        };
        works.iter().enumerate().map(number).collect()
    }

    /// All up to `id` have completed.
    pub(super) fn complete(&mut self, id: u64) {
        self.completed = self.completed.max(id);
        while self.under_way.front().is_some_and(|entry| entry.id <= id) {
            self.under_way.pop_front();
        }
    }

    /// What a request was, for an error.
    pub(super) fn words(&self, id: u64) -> String {
        let entry = self.under_way.iter().find(|entry| entry.id == id);
        entry.map_or_else(|| "a request".to_owned(), |entry| entry.work.words())
    }
}

fn takes_receive(work: &Work) -> bool {
    matches!(work, Work::WriteImmediate { .. } | Work::Send { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNAL: Work = Work::WriteImmediate { value: 1 };
    const MESSAGE: Work = Work::Send { words: [0; 3] };

    #[test]
    fn the_last_of_each_call_tells_of_all() {
        let mut flight = Flight::new(4);
        let requests = flight.number(&[MESSAGE, SIGNAL], None);
        assert_eq!(requests.iter().map(|r| (r.id, r.signalled)).collect::<Vec<_>>(), [(1, false), (2, true)]);
        assert_eq!((flight.room(), flight.last(), flight.completed()), (2, 2, 0));
        flight.number(&[SIGNAL], None);
        flight.complete(2);
        assert_eq!((flight.room(), flight.completed()), (3, 2));
        assert_eq!(flight.words(3), SIGNAL.words());
        flight.complete(3);
        assert_eq!((flight.room(), flight.last(), flight.completed()), (4, 3, 3));
    }

    #[test]
    fn receives_are_counted() {
        let mut flight = Flight::new(8);
        assert_eq!(flight.receives_with(&[MESSAGE, SIGNAL]), 2);
        flight.number(&[MESSAGE, SIGNAL], None);
        let word = Work::WriteWord { value: 0, to: crate::verbs::Remote { address: 0, key: 0 } };
        assert_eq!(flight.receives_with(&[word, SIGNAL]), 3);
    }
}
