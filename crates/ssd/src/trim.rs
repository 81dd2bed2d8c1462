//! Trim: in order with the writes before and behind it, and no longer in their way than that takes.
//!
//! Older contents must not reach the log behind the trim, and of a write that comes meanwhile not one
//! part before it and another behind it. So writers wait, but only until the trim has its place in
//! the log's order: what they write then is newer there, as it is in the cache.
//!
//! A cache that goes to the log in whole batches is there in the order of the commands, once its last
//! batch is on its way; the trim follows and is in force when that batch has left the cache. Of any
//! other cache what it holds of the range is written back first. A durable one keeps the writers
//! waiting until the trim is durable too: they would be acknowledged at once, and after a power cut be
//! there without the trim that was issued before them.
//!
//! What is written to the range itself waits until the trim is in force: readers would see it before the
//! trim that it comes behind.
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use tantalum_base::{Durability, PageDevice, PageNo, PageRange, Result};
use tantalum_media::ZoneMedia;
use tantalum_runtime::sync::WaitQueue;

use crate::options::CacheKind;
use crate::refusals::latched;
use crate::ssd::Drive;

/// Trims that have their place in the log and are not in force.
pub(crate) struct Trims {
    ranges: RefCell<Vec<PageRange>>,
    ended: WaitQueue,
}

/// One of them, until this is dropped.
struct Placed<'a>(&'a Trims, PageRange);

impl Trims {
    /// None.
    pub fn new() -> Self {
        Trims { ranges: RefCell::default(), ended: WaitQueue::new("a trim") }
    }

    /// Waits until none of them touches `range`.
    pub async fn wait_in_force(&self, range: PageRange) {
        let clear = || {
            let ranges = self.ranges.borrow();
            (!ranges.iter().any(|trimmed| trimmed.overlaps(range))).then_some(())
        };
        self.ended.until(clear).await;
    }

    fn place(&self, range: PageRange) -> Placed<'_> {
        self.ranges.borrow_mut().push(range);
        Placed(self, range)
    }
}

impl Drop for Placed<'_> {
    fn drop(&mut self) {
        let mut ranges = self.0.ranges.borrow_mut();
        if let Some(at) = ranges.iter().position(|range| *range == self.1) {
            ranges.swap_remove(at);
        }
        drop(ranges);
        self.0.ended.wake_all();
    }
}

impl<M: ZoneMedia> Drive<M> {
    /// Gives `range` up, which lies on the device, behind all that was accepted before.
    pub(crate) async fn trim_in_turn(&self, range: PageRange) -> Result<()> {
        let mut turn = Some(self.write_turn.acquire(1).await);
        let cached = self.cache.borrow().command_of_range(range);
        if self.options.cache.whole_batches() {
            self.wait_taken().await?;
        } else if let Some(command) = cached {
            self.drain_to(command).await?;
        }
        let others = async {
            match cached {
                Some(command) => self.wait_gone(command).await,
                None => Ok(()),
            }
        };
        let durable = self.limits().durability == Durability::OnAck;
        let placed = self.trims.place(range);
        let mut trim = pin!(self.ftl.trim_with(range, durable, others, || drop(placed)));
        poll_fn(|context| {
            let polled = trim.as_mut().poll(context);
            // The first poll gives the trim its place in the log.
            if self.options.cache != CacheKind::Durable {
                turn.take();
            }
            polled
        })
        .await
    }

    /// Waits until `command`, which is or will be taken to be written back, has left the cache.
    pub(crate) async fn wait_gone(&self, command: u64) -> Result<()> {
        // A write-through command that failed is its writer's to hear of, where the log did not fail.
        self.wait_ended(command).await.or_else(|_| self.check_failed())
    }

    /// Waits until all that was accepted before the call has its place in the log's order. Others may
    /// be accepted meanwhile: who must not be overtaken holds the writers' turn.
    async fn wait_taken(&self) -> Result<()> {
        let accepted = {
            let mut progress = self.progress.borrow_mut();
            progress.pushed = progress.accepted;
            progress.accepted
        };
        self.work.wake_all();
        let taken = || match &*self.failed.borrow() {
            Some(error) => Some(Err(latched(error))),
            None => self.progress.borrow().is_taken(accepted).then_some(Ok(())),
        };
        self.taken.until(taken).await
    }
}

/// The range in which all of `pages` lie.
pub(crate) fn range_of<P>(pages: &[(PageNo, P)]) -> PageRange {
    let numbers = || pages.iter().map(|(page, _)| page.0);
    let (first, last) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
    PageRange::new(PageNo(first), last - first + 1)
}
