//! Retries failed reads, after pauses that grow.
//!
//! The clock is that of the runtime on which the device was started ([`Ftl::start_tasks`]). Without a clock nothing is
//! retried, and no writer waits for a retry. A zone that holds unreadable pages has a task of its own; without such
//! zones no timer runs.
use std::rc::{Rc, Weak};
use tantalum_base::{Error, ErrorKind, PageNo, Payload, Result, SlotNo, Version, ZoneNo};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Runtime;

use crate::ftl::Ftl;
use crate::map::{MapEntry, Place};
use crate::parts::Parts;
use crate::read::{is_damage, wrong_content};
use crate::timer::{Started, Timer};

/// The pause before the first retry of a read. Each later pause is 1.5 times as long, so a page is read soon after it
/// becomes readable, relative to the time that this took.
const RETRY_PAUSE_MIN_NS: u64 = 100_000_000;

/// The longest of these pauses.
const RETRY_PAUSE_MAX_NS: u64 = 30_000_000_000;

/// Time that writers wait for room that there would be if all pages could be read: about as long as a path takes to
/// fail over or a controller to reset. A longer failure should be reported to programs.
const ROOM_WAIT_MAX_NS: u64 = 4_000_000_000;

/// The progress of cleaning in a zone until it found unreadable pages.
pub(crate) struct Interrupted {
    pub unreadable: Vec<(SlotNo, Error)>,
    /// Versions of the pages that were copied, durably.
    pub copied: Vec<Version>,
    /// Pages that were evicted, with their former entries.
    pub gone: Vec<(PageNo, MapEntry)>,
}

impl<M: ZoneMedia> Ftl<M> {
    /// Starts the cleaner, the checkpointer and, if there is a dump, the backup of the mapping on `runtime`, whose
    /// clock times the retries of reads. Call it once.
    pub fn start_tasks(self: &Rc<Self>, runtime: &impl Runtime) {
        let timer: Rc<dyn Timer> = Rc::new(runtime.clone());
        let _ = self.started.set(Started { device: Rc::downgrade(self), timer });
        let ftl = Rc::clone(self);
        runtime.spawn("cleaner", async move { ftl.run_cleaner().await });
        let ftl = Rc::clone(self);
        runtime.spawn("checkpointer", async move { ftl.run_checkpointer().await });
        if self.options.dump.is_some() {
            let ftl = Rc::clone(self);
            runtime.spawn("mapping backup", async move { ftl.run_backup().await });
        }
    }

    /// Leaves `zone`, which was being emptied, until its unreadable slots can be read.
    pub(crate) fn hold(&self, zone: ZoneNo, interrupted: Interrupted) {
        let now_ns = self.started.get().map_or(0, |started| started.timer.now_ns());
        let Interrupted { unreadable, mut copied, gone } = interrupted;
        {
            let parts = &mut *self.parts.borrow_mut();
            parts.take_pages_back(gone);
            parts.log.uncovered.moved(zone, &mut copied);
            parts.space.stop_emptying(zone);
            let needed = |(slot, _): &(SlotNo, Error)| parts.map.pages_of(*slot).next().is_some();
            let unreadable: Vec<_> = unreadable.into_iter().filter(needed).collect();
            if let Some((slot, error)) = unreadable.first() {
                let pages = unreadable.len();
                tracing::warn!(%zone, pages, first_slot = %slot, %error, "pages cannot be read: they stay in place and will be read again");
            }
            for (slot, error) in unreadable {
                parts.unreadable.failed(slot, error, now_ns);
            }
        }
        self.try_later(zone);
        self.zones_freed.wake_all();
    }

    /// Schedules retries of `page` after a read failed with `error`, if the error means that the content is wrong. The
    /// retries are those for pages that cleaning cannot read, so one place decides which pages are lost.
    pub fn read_page_again(&self, page: PageNo, error: &Error) {
        let now_ns = self.started.get().map_or(0, |started| started.timer.now_ns());
        let slot = match self.parts.borrow().map.get(page).place {
            Place::At(slot) if is_damage(error.kind()) => slot,
            _ => return,
        };
        let zone = self.geometry.zone_of(slot);
        {
            let unreadable = &mut self.parts.borrow_mut().unreadable;
            if unreadable.slots_in(zone).all(|known| known != slot) {
                unreadable.failed(slot, error.clone(), now_ns);
            }
        }
        self.try_later(zone);
    }

    /// Schedules retries of `zone` after a pause, and again until it can be read.
    fn try_later(&self, zone: ZoneNo) {
        let Some(Started { device, timer }) = self.started.get() else { return };
        if !self.parts.borrow_mut().unreadable.begin_tries(zone) {
            return;
        }
        let (device, task_timer) = (Weak::clone(device), Rc::clone(timer));
        let task = async move {
            let mut pause_ns = RETRY_PAUSE_MIN_NS;
            loop {
                task_timer.sleep(pause_ns).await;
                let Some(ftl) = device.upgrade() else { return };
                if !ftl.try_again(zone, task_timer.now_ns()).await {
                    return;
                }
                pause_ns = (pause_ns + pause_ns / 2).min(RETRY_PAUSE_MAX_NS);
            }
        };
        timer.detach("reads of unreadable pages", Box::pin(task));
    }

    /// Reads the unreadable slots of `zone` again; returns true if another retry is needed.
    async fn try_again(&self, zone: ZoneNo, now_ns: u64) -> bool {
        let slots: Vec<SlotNo> = self.parts.borrow().unreadable.slots_in(zone).collect();
        // The pins keep the zone from being reset until a checkpoint records the slots that are lost.
        let _pinned = self.pins.pin(&slots);
        let mut lost = false;
        for slot in slots.iter().copied() {
            if self.parts.borrow().log.latched().is_some() {
                break;
            }
            match self.read_again(slot).await {
                Ok(()) => self.parts.borrow_mut().unreadable.forget(slot),
                Err(error) if error.kind() == ErrorKind::PowerCut => return false,
                Err(error) => {
                    let parts = &mut *self.parts.borrow_mut();
                    lost |= parts.failed_again(slot, error, now_ns);
                }
            }
        }
        if lost && let Err(error) = self.checkpoint().await {
            self.latch(&error);
        }
        let goes_on = {
            let parts = &mut *self.parts.borrow_mut();
            let is_held = parts.unreadable.holds(zone);
            if !is_held {
                tracing::warn!(%zone, "all pages of the zone can be read again, or are no longer needed");
                parts.release_zone(zone);
            }
            let goes_on = is_held && parts.log.latched().is_none();
            if !goes_on {
                parts.unreadable.end_tries(zone);
            }
            goes_on
        };
        self.zones_freed.wake_all();
        self.cleaner.wanted.wake_all();
        goes_on
    }

    /// Reads `slot` and compares it with the mapping. A slot that nothing refers to is not read and counts as good.
    async fn read_again(&self, slot: SlotNo) -> Result<()> {
        let expected = {
            let map = &self.parts.borrow().map;
            map.pages_of(slot).next().map(|page| (page, map.get(page)))
        };
        let Some((page, entry)) = expected else { return Ok(()) };
        let (mut content, mut spare) = ([M::Page::zero()], [None]);
        self.media.read_with_spares(&[slot], &mut content, &mut spare).await?;
        let ([content], [spare]) = (content, spare);
        match entry.holds(page, &content, spare.as_ref()) {
            true => Ok(()),
            false => Err(wrong_content(page, slot, &entry, &content, spare.as_ref())),
        }
    }

    /// Called if cleaning finds only zones with unreadable pages. Writers then wait for these zones, for a limited
    /// time.
    pub(crate) fn wait_for_readable(&self) {
        let Some(Started { device, timer }) = self.started.get() else { return };
        if !self.parts.borrow_mut().unreadable.patience.begin(timer.now_ns()) {
            return;
        }
        let (device, task_timer) = (Weak::clone(device), Rc::clone(timer));
        let task = async move {
            let mut left_ns = ROOM_WAIT_MAX_NS;
            loop {
                task_timer.sleep(left_ns).await;
                let Some(ftl) = device.upgrade() else { return };
                let now_ns = task_timer.now_ns();
                let left = {
                    let patience = &mut ftl.parts.borrow_mut().unreadable.patience;
                    patience.watch(now_ns, ROOM_WAIT_MAX_NS)
                };
                ftl.zones_freed.wake_all();
                let Some(left) = left else { return };
                left_ns = left;
            }
        };
        timer.detach("writers' wait for unreadable pages", Box::pin(task));
    }

    /// From now on hosts' changes wait for the room that unreadable pages occupy, without a limit of time. Used if the
    /// caller has already acknowledged these changes, or changes that come before them.
    pub fn wait_for_room(&self) {
        self.waits_for_room.set(true);
    }

    /// The reason why there is no room for hosts' changes, if unreadable pages occupy it and the time to wait for them
    /// is over.
    pub fn stall(&self) -> Option<Error> {
        let parts = self.parts.borrow();
        let refuses = parts.refuses() && !parts.unreadable.is_empty();
        refuses.then(|| parts.out_of_space())
    }
}

impl Parts {
    /// Notes that `slot` could not be read again, because of `error`. Returns whether its pages are now lost, or at
    /// home because they were clean. The caller must then write a checkpoint, because nothing else tells the next
    /// recovery.
    fn failed_again(&mut self, slot: SlotNo, error: Error, now_ns: u64) -> bool {
        let pages: Vec<PageNo> = self.map.pages_of(slot).collect();
        let Some(page) = pages.first() else { return false };
        let is_clean = self.map.get(*page).clean;
        self.unreadable.failed(slot, error.clone(), now_ns);
        if !is_clean && !self.unreadable.is_lost(slot, now_ns) {
            return false;
        }
        let mut lost = false;
        for page in pages {
            if !is_clean {
                tracing::error!(%page, %slot, %error, "the content of a page was wrong at each retry: the page is lost until it is written again");
            }
            let entry = self.map.get(page);
            lost |= self.lose(page, entry);
        }
        lost
    }

    /// Makes `zone` a candidate for cleaning again: everything in it can be read, or is no longer needed.
    fn release_zone(&mut self, zone: ZoneNo) {
        self.relocation.stuck = false;
        self.unreadable.patience.end();
        self.relocation.evacuation_wanted |= self.space.get(zone).failing;
    }

    /// The number of pages that cannot be read now, and the number of zones that hold them.
    pub(crate) fn unreadable_pages_and_zones(&self) -> (u64, u32) {
        let pages = self.unreadable.slots().map(|slot| self.map.pages_of(slot).count() as u64);
        (pages.sum(), self.unreadable.zones())
    }

    /// Zones that cleaning leaves free while pages cannot be read. A cleaning that fails takes space for its copies and
    /// frees none, and a checkpoint must always find room.
    pub(crate) fn kept_while_unreadable(&self) -> u32 {
        match self.unreadable.is_empty() {
            true => 0,
            false => self.space.reserve_zones().saturating_sub(2),
        }
    }

    /// Whether cleaning finds no space, and the time to wait for unreadable pages is over.
    pub(crate) fn refuses(&self) -> bool {
        self.relocation.stuck && !self.unreadable.patience.lasts()
    }

    /// The error for a write for which cleaning finds no space.
    pub(crate) fn out_of_space(&self) -> Error {
        let Some((slot, error)) = self.unreadable.first() else {
            let context = "no zone is free, and cleaning can free none";
            return Error::new(ErrorKind::OutOfSpace, context);
        };
        let (pages, zones) = self.unreadable_pages_and_zones();
        let context = format!(
            "no zone is free, and {pages} pages in {zones} zones cannot be read now, so these \
             zones cannot be cleaned (the first page is in slot {slot}): repair the medium, or \
             give the pages up with `tantalum check VOLUME.toml --accept-loss`"
        );
        Error::with_source(ErrorKind::OutOfSpace, context, error.clone())
    }
}
