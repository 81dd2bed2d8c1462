//! The destager: writes dirty pages home in the background, in rounds.
//!
//! ```text
//! mod       when a round begins, and what follows a failure of the home
//! epoch     ordered: the journal first, then the places
//! dense     the fullest tracks first
//! slices    writes pages in place and marks them clean, a slice at a time
//! ```
mod dense;
mod epoch;
mod slices;

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use tantalum_base::{Error, ErrorKind, PageDevice, Result};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::WaitQueue;

use crate::journal::Closed;
use crate::options::Destage;
use crate::tiered::Tiered;

/// Times that the wait after a failure doubles.
const DOUBLINGS_MAX: u32 = 7;

/// What the destager is told, and tells.
pub(crate) struct Destager {
    /// Something to do, or something to do at once.
    work: WaitQueue,
    urgent: Cell<bool>,
    resting: Cell<bool>,
    at_rest: Cell<bool>,
    /// It rests, or a round has ended.
    progress: WaitQueue,
    /// The number of the round that was begun last.
    round: Cell<u64>,
    /// All rounds up to this one have ended well.
    ended: Cell<u64>,
    /// Somebody waits for this round.
    wanted: Cell<u64>,
    /// The last failure of a round, with the number of failures in a row.
    failure: RefCell<Option<Error>>,
    failures: Cell<u32>,
    /// The epoch that home has.
    epoch: Cell<u64>,
    /// An epoch is committed that has to be written in place before anything else.
    committed: RefCell<Option<Closed>>,
    /// Appends to the journal that are under way.
    appends: Cell<u32>,
    appended: WaitQueue,
    append_failure: RefCell<Option<Error>>,
}

impl Destager {
    /// One that begins with the epoch that was `committed` when the journal was opened. The `last` one that
    /// ever was is at home, or is that.
    pub fn new(committed: Option<Closed>, last: Option<Closed>) -> Self {
        let epoch = last.map_or(0, |closed| closed.epoch);
        Destager {
            work: WaitQueue::new("dirty pages to write home"),
            urgent: Cell::new(false),
            resting: Cell::new(false),
            at_rest: Cell::new(false),
            progress: WaitQueue::new("the destager"),
            round: Cell::new(epoch),
            ended: Cell::new(epoch),
            wanted: Cell::new(0),
            failure: RefCell::new(None),
            failures: Cell::new(0),
            epoch: Cell::new(epoch),
            committed: RefCell::new(committed),
            appends: Cell::new(0),
            appended: WaitQueue::new("the journal"),
            append_failure: RefCell::new(None),
        }
    }

    /// There are dirty pages.
    pub fn has_work(&self) {
        self.work.wake_all();
    }

    /// Pages should go home at once.
    pub fn is_urgent(&self) {
        if !self.urgent.replace(true) {
            self.work.wake_all();
        }
    }

    /// The epoch that home has; 0 where there is none.
    pub fn epoch(&self) -> u64 {
        self.epoch.get()
    }
}

impl<R, M, H, J> Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    /// Works until it is told to rest, or the flash fails.
    pub(crate) async fn run_destager(&self) -> Result<()> {
        let worked = self.destage_until_rest().await;
        self.destager.at_rest.set(true);
        // Who waits for room, or for a page, has to hear that there will be none.
        self.dirty.borrow_mut().give_up();
        self.destager.progress.wake_all();
        self.may_change.wake_all();
        worked
    }

    async fn destage_until_rest(&self) -> Result<()> {
        loop {
            self.wait_for_work().await;
            if self.destager.resting.get() {
                return Ok(());
            }
            self.drive.check_failed()?;
            let began_ns = self.runtime.now_ns();
            let before = self.counts.borrow().home_pages_written;
            let round = match self.options.destage {
                Destage::Ordered => self.epoch().await,
                Destage::Dense => self.dense_round().await,
            };
            self.may_change.wake_all();
            if self.destager.resting.get() {
                return Ok(());
            }
            match round {
                Ok(()) => {
                    let pages = self.counts.borrow().home_pages_written - before;
                    self.pace.measured(pages, self.runtime.now_ns() - began_ns);
                    self.count(|counts| counts.rounds += 1);
                    self.destager.failures.set(0);
                    self.destager.failure.replace(None);
                    self.count(|counts| counts.home_failure = None);
                }
                Err(error) => {
                    self.dirty.borrow_mut().give_up();
                    self.may_change.wake_all();
                    self.drive.check_failed()?;
                    self.home_failed(&error);
                    self.destager.failure.replace(Some(error));
                    let failures = self.destager.failures.get();
                    self.destager.failures.set(failures + 1);
                    self.destager.progress.wake_all();
                    let doublings = failures.min(DOUBLINGS_MAX);
                    let wait = self.runtime.sleep(self.options.retry_after_ns << doublings);
                    let resting = || self.destager.resting.get().then_some(());
                    either(wait, self.destager.work.until(resting)).await;
                }
            }
            self.destager.progress.wake_all();
        }
    }

    /// Notes that an operation of the home failed.
    pub(crate) fn home_failed(&self, error: &Error) {
        self.count(|counts| {
            counts.home_errors += 1;
            counts.home_failure = Some(error.to_string());
        });
    }

    /// Whether there is anything to write home.
    fn has_dirty_pages(&self) -> bool {
        let dirty = self.dirty.borrow();
        !dirty.fresh.is_empty() || self.destager.committed.borrow().is_some()
    }

    /// Waits until a round is due: some time after there is something to do, or at once where it is urgent.
    async fn wait_for_work(&self) {
        let rests = || self.destager.resting.get() || self.drive.check_failed().is_err();
        let any = || (rests() || self.has_dirty_pages()).then_some(());
        self.destager.work.until(any).await;
        let is_urgent = || {
            let wanted = self.destager.wanted.get() > self.destager.ended.get();
            let full = self.drive.ftl().dirty_pages() > self.options.dirty_soft_pages;
            let committed = self.destager.committed.borrow().is_some();
            (rests() || wanted || full || committed || self.destager.urgent.get()).then_some(())
        };
        let later = self.runtime.sleep(self.options.destage_after_ns);
        either(later, self.destager.work.until(is_urgent)).await;
        self.destager.urgent.set(false);
    }

    /// Waits until the destager rests, for good.
    pub(crate) async fn rest_destager(&self) {
        self.destager.resting.set(true);
        self.destager.work.wake_all();
        self.destager.progress.until(|| self.destager.at_rest.get().then_some(())).await;
    }

    /// Writes home all that is dirty now.
    pub(crate) async fn destage_all(&self) -> Result<()> {
        self.drive.settle().await?;
        loop {
            if !self.has_dirty_pages() && self.dirty.borrow().round.is_empty() {
                return Ok(());
            }
            // The round under way may have begun before.
            let round = self.destager.round.get() + 1;
            self.destager.wanted.set(self.destager.wanted.get().max(round));
            self.destager.work.wake_all();
            let failures = self.destager.failures.get();
            let ended = || {
                if self.destager.at_rest.get() {
                    let context = "the cache is being closed";
                    return Some(Err(Error::new(ErrorKind::Closed, context)));
                }
                if self.destager.failures.get() > failures {
                    let failure = self.destager.failure.borrow().clone();
                    return failure.map(Err);
                }
                let empty = !self.has_dirty_pages() && self.dirty.borrow().round.is_empty();
                (empty || self.destager.ended.get() >= round).then_some(Ok(()))
            };
            self.destager.progress.until(ended).await?;
            if self.options.destage == Destage::Ordered && self.destager.ended.get() >= round {
                return Ok(());
            }
        }
    }
}

/// Completes with the first of two futures that does.
async fn either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| {
        let done = one.as_mut().poll(context).is_ready() || other.as_mut().poll(context).is_ready();
        if done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await
}
