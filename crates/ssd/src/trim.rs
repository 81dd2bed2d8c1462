//! Trim: ordered with the writes before and after it, and blocking writers no longer than needed.
//!
//! Older content must not reach the log after the trim. A concurrent write must not be split into a
//! part before the trim and a part after it. So writers wait until the trim has its place in the
//! log: their content is then newer, in the log as in the cache.
//!
//! A cache that is written back in whole batches reaches the log in command order. Once its last
//! batch is in flight, the trim follows, and takes effect when that batch has left the cache. Other
//! caches first write back their pages of the range. A durable cache blocks writers until the trim
//! is durable too. Otherwise their writes, acknowledged at once, could survive a power cut while
//! the trim issued before them is lost.
//!
//! Writes to the range itself wait until the trim is in effect. Otherwise readers would see them
//! before the trim.
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use tantalum_base::{Durability, PageDevice, PageNo, PageRange, Result};
use tantalum_media::ZoneMedia;
use tantalum_runtime::sync::WaitQueue;

use crate::options::CacheKind;
use crate::refusals::latched;
use crate::ssd::Drive;

/// Trims that have their place in the log but are not in effect yet.
pub(crate) struct Trims {
    ranges: RefCell<Vec<PageRange>>,
    ended: WaitQueue,
}

/// One such trim, until dropped.
struct Placed<'a>(&'a Trims, PageRange);

impl Trims {
    /// No trims.
    pub fn new() -> Self {
        Trims { ranges: RefCell::default(), ended: WaitQueue::new("a trim") }
    }

    /// Waits until no trim in [`Trims`] overlaps `range`.
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
    /// Trims `range`, which lies on the device, after all commands accepted before. `in_force` is
    /// called in the step in which the trim takes effect.
    pub(crate) async fn trim_in_turn(
        &self,
        range: PageRange,
        in_force: impl FnOnce(),
    ) -> Result<()> {
        self.check_stalled()?;
        let mut turn = Some(self.write_turn.acquire(1).await);
        let cached = self.cache.borrow().command_of_range(range);
        if self.options.cache.whole_batches() {
            self.wait_taken().await?;
        } else if let Some(command) = cached {
            self.drain_to(command).await?;
        }
        let others = async {
            match cached {
                Some(command) => self.wait_left_cache(command).await,
                None => Ok(()),
            }
        };
        let durable = self.limits().durability == Durability::OnAck;
        let placed = self.trims.place(range);
        let both = || {
            drop(placed);
            in_force();
        };
        let mut trim = pin!(self.ftl.trim_with(range, durable, others, both));
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

    /// Waits until `command`, which is or will be taken for write-back, has left the cache.
    pub(crate) async fn wait_left_cache(&self, command: u64) -> Result<()> {
        // A failed write-through command concerns only its own writer, unless the log failed.
        self.wait_ended(command).await.or_else(|_| self.check_failed())
    }

    /// Waits until all commands accepted before the call have their place in the log. Others may be
    /// accepted meanwhile: a caller that must not be overtaken holds the writers' turn.
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

/// The smallest range that contains all of `pages`.
pub(crate) fn range_of<P>(pages: &[(PageNo, P)]) -> PageRange {
    let numbers = || pages.iter().map(|(page, _)| page.0);
    let (first, last) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
    PageRange::new(PageNo(first), last - first + 1)
}
