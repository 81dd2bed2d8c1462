//! The destager: writes dirty pages to the home in the background, in rounds.
//!
//! ```text
//! mod         when a round begins, and the reaction to a failure
//! epoch       ordered: the journal first, then in place
//! recount     after a kill: finds pages that count as dirty but are already on the home
//! dense       the fullest tracks first
//! unreadable  dirty pages that the flash cannot read: they are retried
//! slices      writes pages in place and marks them clean, a slice at a time
//! ```
mod dense;
mod epoch;
mod recount;
mod slices;
mod unreadable;

use std::cell::{Cell, RefCell};
use tantalum_base::{Error, ErrorKind, PageDevice, Result};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{Runtime, first};

use crate::journal::Closed;
use crate::options::Destage;
use crate::tiered::Tiered;
use unreadable::{Failure, Retries};

/// Maximum number of times that the wait after a failure doubles.
const DOUBLINGS_MAX: u32 = 7;

/// The state of the destager: requests to it, and its results.
pub(crate) struct Destager {
    /// Woken when there is something to do, or something urgent.
    work: WaitQueue,
    urgent: Cell<bool>,
    resting: Cell<bool>,
    at_rest: Cell<bool>,
    /// Woken when the destager rests, or a round has ended.
    progress: WaitQueue,
    /// Number of the last round that was begun.
    round: Cell<u64>,
    /// All rounds up to this one have succeeded.
    ended: Cell<u64>,
    /// All rounds up to this one are safe without the flash: on the home, or in the journal beside
    /// it.
    safe: Cell<u64>,
    /// Everything acknowledged before this time is safe without the flash.
    safe_since_ns: Cell<u64>,
    /// The time at which the present round took everything dirty; `None` if it took less.
    took_all_ns: Cell<Option<u64>>,
    /// The latest round that a task waits for.
    wanted: Cell<u64>,
    /// The last failure of a round, and the number of consecutive failures.
    failure: RefCell<Option<Error>>,
    failures: Cell<u32>,
    /// Rounds that failed since opening.
    rounds_failed: Cell<u64>,
    /// The last epoch that is on the home.
    epoch: Cell<u64>,
    /// A committed epoch that must be written in place before anything else.
    committed: RefCell<Option<Closed>>,
    /// That epoch was committed before the last opening.
    reopened: Cell<bool>,
    /// An epoch is being closed: no change is accepted.
    pub(crate) closing: Cell<bool>,
    /// Number of clean pages that the journal has room for in the present epoch.
    fill_room: Cell<u64>,
    /// Appends to the journal in flight.
    appends: Cell<u32>,
    appended: WaitQueue,
    /// The reason why the present epoch cannot be committed.
    epoch_failure: RefCell<Option<Failure>>,
    unreadable: Retries,
}

impl Destager {
    /// A destager that begins with the epoch that was `committed` when the journal was opened.
    /// `last` is the last epoch ever committed: it is on the home, or is that one.
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
            safe: Cell::new(epoch),
            safe_since_ns: Cell::new(0),
            took_all_ns: Cell::new(None),
            wanted: Cell::new(0),
            failure: RefCell::new(None),
            failures: Cell::new(0),
            rounds_failed: Cell::new(0),
            epoch: Cell::new(epoch),
            committed: RefCell::new(committed),
            closing: Cell::new(false),
            reopened: Cell::new(committed.is_some()),
            fill_room: Cell::new(0),
            appends: Cell::new(0),
            appended: WaitQueue::new("the journal"),
            epoch_failure: RefCell::new(None),
            unreadable: Retries::default(),
        }
    }

    /// Wakes the destager: there are dirty pages.
    pub fn wake(&self) {
        self.work.wake_all();
    }

    /// Requests that pages are destaged at once.
    pub fn hurry(&self) {
        if !self.urgent.replace(true) {
            self.work.wake_all();
        }
    }

    /// The number of the next round, which takes everything dirty by then.
    pub fn round_after_this(&self) -> u64 {
        self.round.get() + 1
    }

    /// Records that a task waits for this round.
    pub fn want(&self, round: u64) {
        self.wanted.set(self.wanted.get().max(round));
        self.work.wake_all();
    }

    /// Whether a task waits for a round that has not begun, and that must take everything dirty.
    fn is_next_wanted(&self) -> bool {
        self.wanted.get() > self.round.get()
    }

    /// Marks round `round` as safe without the flash, and wakes its waiters.
    fn mark_safe(&self, round: u64) {
        self.safe.set(round);
        if let Some(took_ns) = self.took_all_ns.get() {
            self.safe_since_ns.set(took_ns);
        }
        self.progress.wake_all();
    }

    /// The last epoch that is on the home; 0 if there is none.
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
    /// Works until it is asked to rest, or the flash fails.
    pub(crate) async fn run_destager(&self) -> Result<()> {
        let worked = self.destage_until_rest().await;
        self.destager.at_rest.set(true);
        // Tasks that wait for room or for a page are woken, as no round will end their wait.
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
            let before = self.counts.borrow().pages_cleaned;
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
                    let pages = self.counts.borrow().pages_cleaned - before;
                    self.pace.measured(pages, self.runtime.now_ns() - began_ns);
                    self.count(|counts| counts.rounds += 1);
                    self.destager.failures.set(0);
                    self.destager.failure.replace(None);
                    self.home_works();
                    self.all_were_read();
                }
                Err(failure) => {
                    self.dirty.borrow_mut().give_up();
                    self.may_change.wake_all();
                    self.drive.check_failed()?;
                    self.round_failed(failure).await;
                }
            }
            self.destager.progress.wake_all();
        }
    }

    /// Reports a failed round to its waiters, and waits before the next round, longer each time.
    async fn round_failed(&self, failure: Failure) {
        let error = match &failure {
            Failure::Unreadable => {
                let error = self.unreadable_error();
                tracing::warn!(%error, "dirty pages stay in the flash");
                error
            }
            Failure::Other(error) => {
                self.home_failed(error);
                error.clone()
            }
        };
        self.destager.failure.replace(Some(error));
        self.destager.rounds_failed.set(self.destager.rounds_failed.get() + 1);
        self.destager.progress.wake_all();
        if matches!(failure, Failure::Unreadable) && self.options.destage == Destage::Dense {
            // Other pages need not wait for the unreadable ones.
            self.destager.failures.set(0);
            self.home_works();
            return;
        }
        let failures = self.destager.failures.get();
        self.destager.failures.set(failures + 1);
        let wait = self.runtime.sleep(self.options.retry_after_ns << failures.min(DOUBLINGS_MAX));
        let resting = || self.destager.resting.get().then_some(());
        first(wait, self.destager.work.until(resting)).await;
    }

    fn home_works(&self) {
        if self.counts.borrow().home_failure.is_some() {
            tracing::info!("the home works again");
        }
        self.count(|counts| counts.home_failure = None);
    }

    /// Records that an operation of the home failed.
    pub(crate) fn home_failed(&self, error: &Error) {
        tracing::warn!(%error, "the home failed; dirty pages stay in the flash and are tried again");
        self.count(|counts| {
            counts.home_errors += 1;
            counts.home_failure = Some(error.to_string());
        });
    }

    /// Records that a change arrives while the home has everything.
    pub(crate) fn home_is_behind_now(&self) {
        self.destager.safe_since_ns.set(self.runtime.now_ns());
    }

    /// Time since everything written was safe without the flash; 0 if nothing is dirty.
    pub(crate) fn destage_lag_ns(&self) -> u64 {
        match self.dirty.borrow().len() {
            0 => 0,
            _ => self.runtime.now_ns() - self.destager.safe_since_ns.get(),
        }
    }

    /// Whether an epoch is committed that the home does not have yet.
    fn has_epoch(&self) -> bool {
        self.destager.committed.borrow().is_some()
    }

    /// Whether there is anything to destage.
    fn has_dirty_pages(&self) -> bool {
        let dirty = self.dirty.borrow();
        !dirty.fresh.is_empty() || !dirty.unreadable.is_empty() || self.has_epoch()
    }

    /// Whether a round has anything to do now. Rounds of `Destage::Dense` skip unreadable pages
    /// until their retry is due.
    fn has_work_now(&self) -> bool {
        let is_fresh = !self.dirty.borrow().fresh.is_empty();
        is_fresh || self.has_epoch() || self.is_due_again()
    }

    /// Waits until a round is due: some time after there is something to do, or at once if it is
    /// urgent.
    async fn wait_for_work(&self) {
        let rests = || self.destager.resting.get() || self.drive.check_failed().is_err();
        let any = || (rests() || self.has_work_now()).then_some(());
        while any().is_none() {
            match self.unreadable_due_ns() {
                None => self.destager.work.until(any).await,
                Some(due_ns) => {
                    let due = self.runtime.sleep_until(due_ns);
                    first(due, self.destager.work.until(any)).await;
                }
            }
        }
        let is_urgent = || {
            let wanted = self.destager.wanted.get() > self.destager.ended.get();
            let full = self.drive.ftl().dirty_pages() > self.options.dirty_soft_pages;
            (rests() || wanted || full || self.has_epoch() || self.destager.urgent.get())
                .then_some(())
        };
        let later = self.runtime.sleep(self.options.destage_after_ns);
        first(later, self.destager.work.until(is_urgent)).await;
        self.destager.urgent.set(false);
    }

    /// Makes the destager rest for good, and waits until it does.
    pub(crate) async fn rest_destager(&self) {
        self.destager.resting.set(true);
        self.destager.work.wake_all();
        let rests = self.destager.progress.until(|| self.destager.at_rest.get().then_some(()));
        // After the home is given up no page is marked clean, so the present round can be abandoned.
        first(rests, self.home_waits.until_given_up()).await;
    }

    /// Waits until `round` is safe without the flash.
    pub(crate) async fn wait_for_round(&self, round: u64) -> Result<()> {
        let destager = &self.destager;
        destager.want(round);
        let failed = destager.rounds_failed.get();
        let safe = || match destager.safe.get() >= round {
            true => Some(Ok(())),
            false => self.why_no_round(failed).map(Err),
        };
        destager.progress.until(safe).await
    }

    /// The reason why no round will succeed, or why one failed after the first `failed` failures.
    fn why_no_round(&self, failed: u64) -> Option<Error> {
        let destager = &self.destager;
        if destager.at_rest.get() {
            let closed = || Error::new(ErrorKind::Closed, "the cache is being closed");
            return Some(self.drive.check_failed().err().unwrap_or_else(closed));
        }
        let failure = destager.failure.borrow();
        failure.clone().filter(|_| destager.rounds_failed.get() > failed)
    }

    /// Destages everything that is dirty now.
    pub(crate) async fn destage_all(&self) -> Result<()> {
        self.drive.settle().await?;
        loop {
            if !self.has_dirty_pages() && self.dirty.borrow().round.is_empty() {
                return Ok(());
            }
            // The round in progress may have begun before.
            let round = self.destager.round.get() + 1;
            self.destager.want(round);
            let failed = self.destager.rounds_failed.get();
            let ended = || {
                if let Some(error) = self.why_no_round(failed) {
                    return Some(Err(error));
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
