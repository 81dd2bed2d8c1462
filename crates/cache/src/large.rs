//! Transactions that outgrow their memory. Their pages are staged in pages of the flash that no
//! host can read and that have no place on the home. The commit remaps the pages of hosts to these,
//! all in one epoch.
//!
//! Staged pages are neither destaged nor evicted. They count as dirty pages, because the commit
//! makes them dirty. So a commit always has room, in the flash and in the journal. Some room is
//! left for other pages, which are destaged meanwhile.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageDevice, PageNo, PageRange, Result};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::Runtime;

use crate::fault_points::Fault;
use crate::page_set::PageSet;
use crate::tiered::Tiered;

/// Advice to get more room for pages that are newer in the flash than on the home.
const MORE_ROOM: &str = "raise home.dirty_max, or media.size of a new volume";

impl<R, M, H, J> Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    /// Whether `range` consists of pages that have no home.
    pub(crate) fn is_staging(&self, range: PageRange) -> bool {
        range.first >= self.staging.first && range.pages > 0
    }

    /// Writes pages of a transaction, from `first` on, that have no home.
    pub(crate) async fn stage(&self, first: PageNo, pages: &[M::Page]) -> Result<()> {
        let range = PageRange::new(first, pages.len() as u64);
        loop {
            self.drive.check_failed()?;
            let is_open = || (!self.destager.closing.get()).then_some(());
            self.may_change.until(is_open).await;
            self.wait_for_room_to_stage(range).await?;
            let accept = || {
                if is_open().is_none() || !self.has_room_to_stage(range) {
                    return None;
                }
                self.staged.borrow_mut().insert_range(range);
                Some((first.0..).map(PageNo).zip(pages.iter().cloned()))
            };
            if self.drive.write_if(range, pages.len() as u32, accept).await? {
                return Ok(());
            }
        }
    }

    /// Number of pages of `range` that are not staged yet.
    fn more_staged(&self, range: PageRange) -> u64 {
        range.pages - self.staged.borrow().count_in(range)
    }

    fn has_room_to_stage(&self, range: PageRange) -> bool {
        self.dirty_and_staged() + self.more_staged(range) <= self.options.dirty_hard_pages
            || Fault::StagedWithoutRoom.is_planted()
    }

    /// Number of pages that are newer than on the home, or will be when their transactions commit.
    pub(crate) fn dirty_and_staged(&self) -> u64 {
        self.drive.ftl().dirty_pages() + self.staged.borrow().len()
    }

    /// Waits until the pages of `range` may be staged: other pages are destaged to make room.
    async fn wait_for_room_to_stage(&self, range: PageRange) -> Result<()> {
        let room = || {
            if let Err(error) = self.drive.check_failed() {
                return Some(Err(error));
            }
            let most = self.options.staged_pages_max;
            let wanted = self.staged.borrow().len() + self.more_staged(range);
            if wanted > most && !Fault::StagedWithoutRoom.is_planted() {
                return Some(Err(no_room(most)));
            }
            self.has_room_to_stage(range).then_some(Ok(()))
        };
        if let Some(room) = room() {
            return room;
        }
        self.destager.hurry();
        let began_ns = self.runtime.now_ns();
        let waited = self.may_change.until(room).await;
        let waited_ns = self.runtime.now_ns() - began_ns;
        self.count(|counts| counts.throttled_ns += waited_ns);
        waited
    }

    /// Trims staged pages that are no longer needed.
    pub(crate) async fn give_up_staged(&self, range: PageRange) -> Result<()> {
        self.drive.trim(range).await?;
        self.staged.borrow_mut().remove_range(range);
        self.may_change.wake_all();
        Ok(())
    }

    /// Remaps pages to the staged ones, and trims `zeros`. `ended` is called in the step in which
    /// readers see this.
    pub(crate) async fn take_over_in_turn(
        self: Rc<Self>,
        pairs: Vec<(PageNo, PageNo)>,
        zeros: Vec<PageRange>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let trims = zeros.len() as u64;
        // An epoch that is being closed and written to the journal must have all of this commit, or
        // nothing of it.
        let turn = loop {
            self.wait_for_trim_room(trims).await?;
            let turn = self.trim_turn.acquire(1).await;
            if self.has_room_for_trims(trims) {
                break turn;
            }
        };
        let mut changing = PageSet::new();
        pairs.iter().for_each(|(page, _)| _ = changing.insert(*page));
        zeros.iter().for_each(|range| _ = changing.insert_range(*range));
        self.trimming.replace(changing);
        let round = Rc::new(Cell::new(0));
        let staged: Vec<PageNo> = pairs.iter().map(|(_, place)| *place).collect();
        let (tiered, round_of) = (Rc::clone(&self), Rc::clone(&round));
        let in_force = move || {
            let changed = tiered.trimming.take();
            round_of.set(tiered.changes_in_force(&changed, trims));
            let mut waiting = tiered.staged.borrow_mut();
            staged.iter().for_each(|place| _ = waiting.remove(*place));
            drop(waiting);
            ended();
        };
        let taken_over = self.drive.take_over(pairs, zeros, in_force).await;
        self.trimming.take();
        drop(turn);
        taken_over?;
        self.until_safe(round.get()).await
    }

    /// Records that all pages of `changed` change in this step, partly by `trims` ranges of trims.
    /// Returns the round that will destage them.
    pub(crate) fn changes_in_force(&self, changed: &PageSet, trims: u64) -> u64 {
        self.trims.set(self.trims.get() + trims);
        let round = self.round_of_changes();
        if self.dirty.borrow().is_empty() {
            self.home_is_behind_now();
        }
        let mut dirty = self.dirty.borrow_mut();
        for run in changed.runs_in(PageRange::new(PageNo(0), self.staging.first.0)) {
            dirty.changed_range(run);
            self.reads.changed(run);
        }
        drop(dirty);
        self.destager.wake();
        round
    }
}

fn no_room(most: u64) -> Error {
    let mib = (most * PAGE_BYTES as u64) as f64 / f64::from(1 << 20);
    let context = format!(
        "open transactions write more than the {mib:.1} MiB that may wait in the flash for their commits: {MORE_ROOM}"
    );
    Error::new(ErrorKind::OutOfSpace, context)
}

/// The error of a transaction that writes zeros to more ranges of pages than the journal has room for.
pub(crate) fn too_many_zeros(ranges: u64, most: u64) -> Error {
    let context = format!(
        "a transaction writes zeros to {ranges} separate ranges of pages, and the journal beside \
         the home has room for {most}: {MORE_ROOM}"
    );
    Error::new(ErrorKind::OutOfSpace, context)
}
