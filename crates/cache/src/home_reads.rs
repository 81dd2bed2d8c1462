//! Reads from the home in flight, and pages read there that wait for admission to the cache. A
//! change of the page meanwhile makes the content stale.
use std::cell::RefCell;
use std::collections::VecDeque;
use tantalum_base::{Error, FastMap, PageNo, PageRange};

/// A read from the home in flight.
struct InFlight {
    number: u64,
    range: PageRange,
    changed: bool,
}

/// Reads from the home, and the pages that they returned.
pub(crate) struct HomeReads<P> {
    state: RefCell<State<P>>,
    queue_pages_max: usize,
}

struct State<P> {
    next: u64,
    in_flight: Vec<InFlight>,
    /// Pages that wait for admission, each with the number of its valid entry.
    waiting: FastMap<PageNo, u64>,
    queue: VecDeque<(PageNo, u64, P)>,
    /// The error of the last read, if it failed.
    failure: Option<String>,
}

/// A read in flight, until dropped.
pub(crate) struct Reading<'a, P> {
    reads: &'a HomeReads<P>,
    number: u64,
}

impl<P> HomeReads<P> {
    /// An empty state. At most `queue_pages_max` pages wait for admission.
    pub fn new(queue_pages_max: u32) -> Self {
        let state = State {
            next: 0,
            in_flight: Vec::new(),
            waiting: FastMap::default(),
            queue: VecDeque::new(),
            failure: None,
        };
        HomeReads { state: RefCell::new(state), queue_pages_max: queue_pages_max as usize }
    }

    /// Records that `range` is being read.
    pub fn begin(&self, range: PageRange) -> Reading<'_, P> {
        let state = &mut *self.state.borrow_mut();
        state.next += 1;
        state.in_flight.push(InFlight { number: state.next, range, changed: false });
        Reading { reads: self, number: state.next }
    }

    /// Records that a read failed.
    pub fn failed(&self, error: &Error) {
        let before = self.state.borrow_mut().failure.replace(error.to_string());
        // Only the first failure is logged, as programs may retry again and again.
        if before.is_none() {
            tracing::warn!(%error, "reading the home failed");
        }
    }

    /// Records that a read succeeded.
    pub fn worked(&self) {
        self.state.borrow_mut().failure = None;
    }

    /// The error of the last read, if it failed.
    pub fn failure(&self) -> Option<String> {
        self.state.borrow().failure.clone()
    }

    /// Records that `range` changes.
    pub fn changed(&self, range: PageRange) {
        let state = &mut *self.state.borrow_mut();
        for read in state.in_flight.iter_mut().filter(|read| read.range.overlaps(range)) {
            read.changed = true;
        }
        if state.waiting.is_empty() {
            return;
        }
        if range.pages < state.waiting.len() as u64 {
            range.iter().for_each(|page| _ = state.waiting.remove(&page));
        } else {
            state.waiting.retain(|page, _| !range.contains(*page));
        }
    }

    /// Queues `page` with `content` for admission; false if the queue is full or already has the
    /// page.
    pub fn wait(&self, page: PageNo, content: P) -> bool {
        let state = &mut *self.state.borrow_mut();
        let room = state.queue.len() < self.queue_pages_max && !state.waiting.contains_key(&page);
        if room {
            state.next += 1;
            state.waiting.insert(page, state.next);
            state.queue.push_back((page, state.next, content));
        }
        room
    }

    /// Takes up to `most` pages out of the queue.
    pub fn take(&self, most: usize) -> Vec<(PageNo, u64, P)> {
        let queue = &mut self.state.borrow_mut().queue;
        let count = most.min(queue.len());
        queue.drain(..count).collect()
    }

    /// Whether entry `number` is still valid: `page` did not change since it was queued.
    pub fn is_wanted(&self, page: PageNo, number: u64) -> bool {
        self.state.borrow().waiting.get(&page) == Some(&number)
    }

    /// Ends the wait of entry `number` of `page`, whether the page was admitted or not.
    pub fn done(&self, page: PageNo, number: u64) {
        let waiting = &mut self.state.borrow_mut().waiting;
        if waiting.get(&page) == Some(&number) {
            waiting.remove(&page);
        }
    }

    /// Whether pages wait for admission.
    pub fn any_waits(&self) -> bool {
        !self.state.borrow().queue.is_empty()
    }
}

impl<P> Reading<'_, P> {
    /// Whether one of its pages changed since it began.
    pub fn has_changed(&self) -> bool {
        let state = self.reads.state.borrow();
        state.in_flight.iter().any(|read| read.number == self.number && read.changed)
    }
}

impl<P> Drop for Reading<'_, P> {
    fn drop(&mut self) {
        self.reads.state.borrow_mut().in_flight.retain(|read| read.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::Stamp;

    #[test]
    fn a_change_makes_what_was_read_worthless() {
        let reads = HomeReads::new(2);
        let one = reads.begin(PageRange::new(PageNo(3), 2));
        let other = reads.begin(PageRange::new(PageNo(5), 2));
        reads.changed(PageRange::new(PageNo(4), 1));
        assert_eq!((one.has_changed(), other.has_changed()), (true, false));
        drop((one, other));
        assert!(reads.state.borrow().in_flight.is_empty());

        let stamp = |page: u64| Stamp::new(PageNo(page), 1);
        assert!(reads.wait(PageNo(3), stamp(3)) && !reads.wait(PageNo(3), stamp(3)));
        assert!(reads.wait(PageNo(9), stamp(9)) && !reads.wait(PageNo(8), stamp(8)));
        reads.changed(PageRange::new(PageNo(0), 5));
        let taken = reads.take(9);
        let wanted: Vec<bool> =
            taken.iter().map(|(page, number, _)| reads.is_wanted(*page, *number)).collect();
        assert_eq!(wanted, [false, true]);
        // After a second read the earlier entry stays stale.
        assert!(reads.wait(PageNo(3), stamp(3)));
        assert!(!reads.is_wanted(PageNo(3), taken[0].1));
        reads.done(PageNo(3), taken[0].1);
        let again = reads.take(1);
        assert!(reads.is_wanted(PageNo(3), again[0].1));
        assert!(!reads.any_waits());
    }
}
