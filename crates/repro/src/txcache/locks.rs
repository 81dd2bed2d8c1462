//! The host's concurrency control: a page belongs to one transaction from its first write to the
//! commit. Other transactions wait for it, first come, first served; so the order of two writes of a
//! page is known.
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use tantalum_base::{FastMap, PageNo, PageRange};
use tantalum_runtime::sync::WaitQueue;

/// The owner and the waiters of each page.
pub(super) struct PageLocks {
    /// The tickets of the requests for each page, oldest first: the first one owns it.
    pages: RefCell<FastMap<PageNo, VecDeque<u64>>>,
    next_ticket: Cell<u64>,
    given_back: WaitQueue,
}

/// The pages of one transaction, until this is dropped.
pub(super) struct Locked<'a> {
    locks: &'a PageLocks,
    ticket: u64,
    pages: Vec<PageNo>,
}

impl PageLocks {
    pub fn new() -> Self {
        PageLocks {
            pages: RefCell::default(),
            next_ticket: Cell::new(0),
            given_back: WaitQueue::new("another transaction's pages"),
        }
    }

    /// The lock set of a new transaction, which is empty.
    pub fn none(&self) -> Locked<'_> {
        let ticket = self.next_ticket.replace(self.next_ticket.get() + 1);
        Locked { locks: self, ticket, pages: Vec::new() }
    }
}

impl Locked<'_> {
    /// Locks the pages of `range`, one after the other. It locks no page beyond one that another
    /// transaction owns, and ranges ascend, so there is no deadlock.
    pub async fn extend(&mut self, range: PageRange) {
        for page in range.iter() {
            assert!(self.pages.last().is_none_or(|last| *last < page), "{page} comes too late");
            self.locks.pages.borrow_mut().entry(page).or_default().push_back(self.ticket);
            self.pages.push(page);
            let own =
                || (self.locks.pages.borrow()[&page].front() == Some(&self.ticket)).then_some(());
            self.locks.given_back.until(own).await;
        }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let mut pages = self.locks.pages.borrow_mut();
        for page in &self.pages {
            if let Some(tickets) = pages.get_mut(page) {
                tickets.retain(|ticket| *ticket != self.ticket);
                if tickets.is_empty() {
                    pages.remove(page);
                }
            }
        }
        drop(pages);
        self.locks.given_back.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;
    use tantalum_runtime::virtual_time::Schedule;
    use tantalum_runtime::{Runtime, Virtual};

    fn range(first: u64, pages: u64) -> PageRange {
        PageRange::new(PageNo(first), pages)
    }

    /// Clients increment counts that they read before they waited: if two owned a page at once, one
    /// increment would be lost.
    #[test]
    fn a_page_belongs_to_one_at_a_time_and_nobody_waits_for_ever() {
        let runtime = Virtual::new(Schedule::Shuffled(5));
        let (locks, counts) = (Rc::new(PageLocks::new()), Rc::new(RefCell::new([0u32; 12])));
        let handle = runtime.clone();
        let (told, done) = (Rc::clone(&locks), Rc::clone(&counts));
        let ended = runtime.run(async move {
            let clients: Vec<_> = (0..7u64)
                .map(|client| {
                    let (runtime, locks) = (handle.clone(), Rc::clone(&told));
                    let counts = Rc::clone(&done);
                    handle.spawn("client", async move {
                        for round in 0..30 {
                            let mut locked = locks.none();
                            for first in [(client + round) % 3, 4 + client % 2, 8] {
                                let range = range(first, 2);
                                locked.extend(range).await;
                                let before = *counts.borrow();
                                runtime.sleep(1 + client * round % 5).await;
                                for page in range.iter() {
                                    counts.borrow_mut()[page.index()] = before[page.index()] + 1;
                                }
                            }
                        }
                    })
                })
                .collect();
            for client in clients {
                client.await;
            }
        });
        ended.unwrap();
        assert_eq!(counts.borrow().iter().sum::<u32>(), 7 * 30 * 6);
        assert!(locks.pages.borrow().is_empty());
    }
}
