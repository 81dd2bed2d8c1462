//! Ordered: everything that is dirty at one moment is written to the journal, and then in place on
//! the home.
//!
//! The epoch is closed in one step, while no trim is in flight: everything accepted before belongs
//! to it, everything later does not. It must be durable in the flash before the journal is
//! committed. Otherwise the home might have a change that the flash lost, and only half of an
//! atomic write. Before a page of the epoch changes that is not in the journal yet, its old content
//! is appended to the journal (`Tiered::preserve`). If that content cannot be read, the epoch is
//! abandoned and the change need not wait: a later epoch includes it.
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, PageRange, Payload, Result};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::Runtime;

use super::Failure;
use super::slices::{HomeWrite, all_ended};
use crate::fault_points::Fault;
use crate::journal::{Closed, Journal, Run};
use crate::tiered::{Tiered, invalid};

/// Batches in flight.
const BATCHES: usize = 3;

impl<R, M, H, J> Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    pub(super) fn journal(&self) -> Result<&Journal<J, M::Page>> {
        self.journal.as_ref().ok_or_else(|| invalid("there is no journal beside the home"))
    }

    /// Runs one epoch, or finishes the one that was committed before.
    pub(super) async fn epoch(&self) -> Result<(), Failure> {
        if self.destager.committed.borrow().is_none() {
            self.write_down_epoch().await?;
        }
        self.write_in_place().await
    }

    /// Closes an epoch and commits it to the journal.
    async fn write_down_epoch(&self) -> Result<(), Failure> {
        let journal = self.journal()?;
        self.read_first_unreadable().await?;
        let turn = self.trim_turn.acquire(1).await;
        let dirty = self.drive.ftl().dirty_pages() + u64::from(self.drive.options().cache_pages);
        if dirty > journal.pages_max() {
            self.find_clean_pages().await?;
        }
        let epoch = self.destager.round.get() + 1;
        self.destager.epoch_failure.replace(None);
        journal.begin(epoch);
        self.settle_closing().await?;
        // No await from here until the epoch has its pages: these are all changes up to this
        // version.
        let version = self.drive.ftl().durable_version();
        let (trims, unix_ms) = (self.trims.get(), (self.unix_ms)());
        {
            let dirty = &mut *self.dirty.borrow_mut();
            dirty.take_all();
            dirty.pending.extend(&dirty.round);
            let fill_room = journal.pages_max().saturating_sub(dirty.round.len());
            self.destager.fill_room.set(fill_room);
        }
        self.destager.round.set(epoch);
        self.destager.took_all_ns.set(Some(self.runtime.now_ns()));
        let filled = all_ended((0..BATCHES).map(|_| self.fill_journal())).await;
        // Writers may still be appending pages. No other epoch may begin before they are done.
        let done = || (self.destager.appends.get() == 0).then_some(());
        self.destager.appended.until(done).await;
        filled?;
        if let Some(failure) = self.destager.epoch_failure.borrow().clone() {
            return Err(failure);
        }
        if self.destager.resting.get() {
            return Ok(());
        }
        let version = match Fault::LaterChangesClean.is_planted() {
            true => self.drive.ftl().last_version(),
            false => version,
        };
        if !Fault::UnreadPagesClean.is_planted() {
            journal.lacks(self.dirty.borrow().lacked.iter());
        }
        let closed = Closed { epoch, unix_ms, version };
        journal.commit(closed).await?;
        self.destager.committed.replace(Some(closed));
        self.destager.mark_safe(epoch);
        // No trim came meanwhile, as this task holds the trim turn.
        self.trims.set(self.trims.get() - trims);
        self.may_change.wake_all();
        drop(turn);
        Ok(())
    }

    /// Waits until everything accepted is durable in the flash. Meanwhile nothing else is accepted.
    /// So the epoch that is closed then has every change up to a version, and none after it. This
    /// makes it possible to decide whether the home is ahead of a damaged log.
    async fn settle_closing(&self) -> Result<()> {
        if Fault::EpochNotSettled.is_planted() {
            return Ok(());
        }
        self.destager.closing.set(true);
        let settled = self.drive.settle().await;
        self.destager.closing.set(false);
        self.may_change.wake_all();
        settled
    }

    /// Appends pages of the epoch to the journal until all are there.
    async fn fill_journal(&self) -> Result<(), Failure> {
        loop {
            let batch = self.next_batch();
            if batch.is_empty() || self.destager.resting.get() {
                return Ok(());
            }
            if let Some(failure) = self.destager.epoch_failure.borrow().clone() {
                return Err(failure);
            }
            self.write_to_journal(batch).await;
        }
    }

    /// Pages of the epoch that are not in the journal yet, and the clean pages between them that
    /// join two writes into one long write. A clean page did not change since the epoch was closed;
    /// otherwise it would be dirty.
    fn next_batch(&self) -> Vec<PageNo> {
        let most = self.options.journal_batch_pages as usize;
        let mut dirty = self.dirty.borrow_mut();
        let mut batch: Vec<PageNo> = dirty.pending.iter().take(most).collect();
        if !self.mode().keeps_written() {
            return batch;
        }
        let mut filled = Vec::new();
        for pair in batch.windows(2) {
            let gap = PageRange::new(PageNo(pair[0].0 + 1), pair[1].0 - pair[0].0 - 1);
            let room = self.destager.fill_room.get();
            let fits = gap.pages <= u64::from(self.options.fill_pages_max).min(room);
            let is_clean = |page| self.drive.is_clean(page) && !dirty.contains(page);
            if fits && gap.iter().all(is_clean) {
                self.destager.fill_room.set(room - gap.pages);
                filled.extend(gap.iter());
            }
        }
        filled.iter().for_each(|page| dirty.fill(*page));
        self.count(|counts| counts.home_pages_filled += filled.len() as u64);
        batch.extend(filled);
        batch.sort_unstable();
        batch
    }

    /// Reads pages of the epoch as of the first poll of this future, lets them change, and appends
    /// them to the journal. If that fails, the epoch fails.
    pub(crate) async fn write_to_journal(&self, pages: Vec<PageNo>) {
        let (mut contents, mut trimmed) = (Vec::new(), Vec::<PageRange>::new());
        let claimed: Vec<PageNo> = {
            let dirty = &mut *self.dirty.borrow_mut();
            let claimed = pages.into_iter().filter(|page| dirty.pending.remove(*page));
            let claimed: Vec<PageNo> = claimed.collect();
            claimed.iter().for_each(|page| _ = dirty.moving.insert(*page));
            claimed
        };
        for page in &claimed {
            if self.drive.is_trimmed(*page) {
                match trimmed.last_mut() {
                    Some(run) if run.end() == *page => run.pages += 1,
                    _ => trimmed.push(PageRange::new(*page, 1)),
                }
            } else if self.drive.holds(*page) {
                contents.push((*page, M::Page::zero()));
            }
        }
        self.destager.appends.set(self.destager.appends.get() + 1);
        let read = self.read_dirty(&mut contents).await;
        {
            let dirty = &mut *self.dirty.borrow_mut();
            claimed.iter().for_each(|page| _ = dirty.moving.remove(*page));
        }
        if let Err(failure) = read {
            // Recorded before any of these pages changes: the epoch must not be committed without
            // their old content.
            self.destager.epoch_failure.borrow_mut().get_or_insert(failure);
            self.may_change.wake_all();
        } else {
            self.may_change.wake_all();
            if let Err(error) = self.append(contents, &trimmed).await {
                self.destager.epoch_failure.borrow_mut().get_or_insert(error.into());
            }
        }
        self.destager.appends.set(self.destager.appends.get() - 1);
        self.destager.appended.wake_all();
    }

    async fn append(&self, contents: Vec<(PageNo, M::Page)>, zeros: &[PageRange]) -> Result<()> {
        let journal = self.journal()?;
        let pages = contents.len() as u64;
        if pages > 0 {
            journal.append(contents).await?;
        }
        for range in zeros {
            journal.append_zeros(*range).await?;
        }
        self.count(|counts| counts.journal_pages_written += pages);
        Ok(())
    }

    /// Collects the writes for the dirty pages of a run. The run belongs to an epoch that may be on
    /// the home already, completely or in part, so only dirty pages may be missing there. Clean
    /// pages are on the home already. They may even be newer there, if the volume used
    /// [`Destage::Dense`](crate::Destage::Dense) for a while and destaged them without a journal.
    fn put_what_is_dirty(&self, run: Run<M::Page>, writes: &mut Vec<HomeWrite<M::Page>>) {
        let dirty = self.dirty.borrow();
        match run {
            _ if Fault::CleanPagesReplaced.is_planted() => writes.push(HomeWrite::of(run)),
            Run::Contents { first, pages } => {
                let mut numbered = (first.0..).map(PageNo).zip(pages).peekable();
                while let Some((page, content)) = numbered.next() {
                    if !dirty.contains(page) {
                        continue;
                    }
                    let mut contents = vec![content];
                    while let Some((_, content)) = numbered.next_if(|(at, _)| dirty.contains(*at)) {
                        contents.push(content);
                    }
                    writes.push(HomeWrite::Contents(page, Rc::from(contents)));
                }
            }
            Run::Zeros(range) => {
                let zeros = |range| writes.push(HomeWrite::Zeros(range));
                dirty.fresh.runs_in(range).chain(dirty.round.runs_in(range)).for_each(zeros);
            }
        }
    }

    /// Writes the committed epoch in place.
    async fn write_in_place(&self) -> Result<(), Failure> {
        let Some(closed) = *self.destager.committed.borrow() else { return Ok(()) };
        let journal = self.journal()?;
        let most = self.home.limits().atomic_write_pages_max.max(1) as usize;
        // The home may already have pages of the epoch, or newer content of them.
        let again = self.destager.reopened.get() || self.dirty.borrow().round.is_empty();
        let mut next = Some(PageNo(0));
        while let Some(from) = next {
            let (mut writes, mut pages) = (Vec::new(), 0);
            let mut at = from;
            next = None;
            while pages < u64::from(self.options.slice_pages) {
                let Some(run) = journal.next_run(at, most).await? else { break };
                let range = run.range();
                at = range.end();
                next = Some(at);
                // Zeros cost almost nothing.
                pages += if matches!(run, Run::Zeros(_)) { 1 } else { range.pages };
                match again {
                    true => self.put_what_is_dirty(run, &mut writes),
                    false => writes.push(HomeWrite::of(run)),
                }
            }
            if self.destager.resting.get() {
                return Ok(());
            }
            self.write_slice(writes).await?;
        }
        journal.mark_applied().await?;
        self.destager.reopened.set(false);
        self.destager.committed.replace(None);
        self.destager.epoch.set(closed.epoch);
        self.destager.ended.set(closed.epoch);
        // If a page of the round is in no run of the journal, the home already has it.
        self.dirty.borrow_mut().end_round();
        Ok(())
    }
}
