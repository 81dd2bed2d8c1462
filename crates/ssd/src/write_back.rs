//! Write-back: moves dirty frames to the FTL.
//!
//! With whole batches (write-through, ordered) all dirty pages are written as one atomic batch. So
//! rewrites may coalesce in the cache, and after any cut the device still holds a prefix of the
//! writes. While one batch is written, the next one gathers (group commit). A durable or volatile
//! cache writes back page by page in FIFO order, in full flash pages if possible.
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use tantalum_base::{Error, PageNo, Result};
use tantalum_ftl::fault_points::Fault;
use tantalum_media::ZoneMedia;

use crate::options::CacheKind;
use crate::ssd::Drive;
use crate::write_cache::TakenFrames;

/// The progress of write-back: the commands that were accepted, taken and ended, and their failures.
#[derive(Default)]
pub(crate) struct Progress {
    /// Commands that entered the cache.
    pub accepted: u64,
    /// All commands up to this one have left the cache.
    pub ended: u64,
    /// Write-back must go on until this command has ended.
    pub wanted: u64,
    /// Write-back of everything up to this command must begin; it need not be durable.
    pub pushed: u64,
    // Batches in flight, oldest first: (number, last command, done).
    batches: VecDeque<(u64, u64, bool)>,
    next_batch: u64,
    last_taken: u64,
    // Failed commands, as ranges (after, up to), kept while a task waits for one of them: at most
    // one range per waiter.
    failures: Vec<(u64, u64, Error)>,
    // Commands with waiters, and the number of waiters of each.
    awaited: BTreeMap<u64, u32>,
}

/// Registers a waiter for the outcome of a command, until dropped.
pub(crate) struct Awaited<'a> {
    progress: &'a RefCell<Progress>,
    command: u64,
}

impl<'a> Awaited<'a> {
    /// Call this in the step that accepts `command`, so that its failure is kept.
    pub(crate) fn new(progress: &'a RefCell<Progress>, command: u64) -> Self {
        *progress.borrow_mut().awaited.entry(command).or_default() += 1;
        Awaited { progress, command }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        let progress = &mut *self.progress.borrow_mut();
        if let Some(waiters) = progress.awaited.get_mut(&self.command) {
            *waiters -= 1;
            if *waiters == 0 {
                progress.awaited.remove(&self.command);
                progress.forget_failures();
            }
        }
    }
}

impl Progress {
    /// Starts a batch. With it, all commands up to `last` have been taken.
    fn start_batch(&mut self, last: u64) -> u64 {
        let number = self.next_batch;
        self.next_batch += 1;
        self.last_taken = last;
        self.batches.push_back((number, last, false));
        number
    }

    fn end_batch(&mut self, number: u64, failure: Option<Error>) {
        let mut after = self.ended;
        for (at, last, done) in &mut self.batches {
            if *at == number {
                *done = true;
                if let Some(error) = failure {
                    self.failures.push((after, *last, error));
                }
                break;
            }
            after = *last;
        }
        while let Some((_, last, true)) = self.batches.front() {
            self.ended = *last;
            self.batches.pop_front();
        }
        self.forget_failures();
    }

    /// Drops failures that all waiters have received.
    fn forget_failures(&mut self) {
        let Progress { failures, awaited, .. } = self;
        // The range of a batch that ends no command is empty, so no waiter needs its failure.
        failures.retain(|(after, last, _)| {
            awaited.range(after + 1..).next().is_some_and(|(command, _)| command <= last)
        });
    }

    /// Whether `command` has been taken for write-back completely.
    pub(crate) fn is_taken(&self, command: u64) -> bool {
        self.last_taken >= command
    }

    /// The result of `command`, once it has ended.
    pub(crate) fn outcome(&self, command: u64) -> Option<Result<()>> {
        if self.ended < command {
            return None;
        }
        let failed = |(after, last, _): &&(u64, u64, Error)| *after < command && command <= *last;
        Some(self.failures.iter().find(failed).map_or(Ok(()), |(_, _, error)| Err(error.clone())))
    }
}

impl<M: ZoneMedia> Drive<M> {
    /// Runs one flusher; `SsdOptions::write_backs_in_flight` of them run concurrently. Ends when
    /// the device fails.
    pub async fn run_flusher(&self) -> Result<()> {
        let mut pages = Vec::new();
        let mut taken = TakenFrames::default();
        loop {
            let batch = self.work.until(|| self.take_batch(&mut pages, &mut taken)).await;
            self.taken.wake_all();
            let durable = self.batch_is_durable();
            let mut result = self.write_to_log(&pages, durable).await;
            pages.clear();
            let acknowledges = self.options.cache == CacheKind::WriteThrough;
            if result.is_ok() && acknowledges && self.options.persist_mapping {
                // Once for all writers that share the batch.
                result = self.ftl.media().persist_mapping().await;
            }
            // These writes may already be acknowledged, so the device must fail instead.
            let failure = result.err();
            let fatal = failure.clone().filter(|_| !acknowledges || self.ftl.latched().is_some());
            if fatal.is_none() {
                // After a failure the frames stay: they may be the only copies of the pages.
                self.cache.borrow_mut().release(&mut taken);
            }
            self.progress.borrow_mut().end_batch(batch, failure);
            if let Some(error) = &fatal {
                self.failed.borrow_mut().get_or_insert_with(|| error.clone());
            }
            self.room.wake_all();
            self.ended.wake_all();
            self.taken.wake_all();
            // A partial flash page may be due now.
            self.work.wake_all();
            if let Some(error) = fatal {
                return Err(error);
            }
        }
    }

    /// Writes a batch to the log. If there is no room because pages of the medium cannot be read,
    /// the batch waits, and keeps its place before later batches. Tasks that wait for frames or for
    /// a flush are woken with the reason.
    async fn write_to_log(&self, pages: &[(PageNo, M::Page)], durable: bool) -> Result<()> {
        if self.options.cache == CacheKind::WriteThrough {
            return self.ftl.write(pages, durable).await;
        }
        let mut write = pin!(self.ftl.write_back(pages, durable));
        poll_fn(|context| {
            let written = write.as_mut().poll(context);
            self.note_stall();
            written
        })
        .await
    }

    fn note_stall(&self) {
        let stall = self.ftl.stall();
        if stall.is_some() != self.stalled.borrow().is_some() {
            self.stalled.replace(stall);
            self.room.wake_all();
            self.ended.wake_all();
        }
    }

    /// Whether the batch must be durable when the FTL returns: because writers wait for it, or
    /// because a durable cache then frees the frames.
    fn batch_is_durable(&self) -> bool {
        match self.options.cache {
            _ if Fault::EarlyAcknowledgement.is_planted() => false,
            CacheKind::Durable | CacheKind::WriteThrough => true,
            CacheKind::Ordered => {
                let progress = self.progress.borrow();
                progress.wanted > progress.ended
            }
            CacheKind::Volatile => false,
        }
    }

    /// Number of pages of the next batch; 0 if none is due with `dirty` frames.
    fn due_pages(&self, dirty: u32, progress: &Progress) -> u32 {
        if dirty == 0 {
            return 0;
        }
        let begun = progress.is_taken(progress.wanted.max(progress.pushed));
        let urgent = !begun || self.writers_wait.get() > 0;
        if self.options.cache.whole_batches() {
            let waits = self.options.cache == CacheKind::Ordered
                && !urgent
                && dirty <= self.options.write_back_start_pages;
            return if waits { 0 } else { dirty };
        }
        let wanted =
            if urgent { dirty } else { dirty.saturating_sub(self.options.write_back_start_pages) };
        let most = wanted.min(self.batch_pages);
        // Whole flash pages, if there are enough pages for one.
        if most >= self.unit_pages {
            most - most % self.unit_pages
        } else if urgent {
            most
        } else {
            0
        }
    }

    /// Wakes the flushers if a batch is due. Most writes only add to a batch that is not due yet.
    pub(crate) fn wake_flushers(&self) {
        let dirty = self.cache.borrow().dirty_frames();
        if self.due_pages(dirty, &self.progress.borrow()) > 0 {
            self.work.wake_all();
        }
    }

    /// Takes the next batch if one is due, and returns its number.
    fn take_batch(
        &self,
        pages: &mut Vec<(PageNo, M::Page)>,
        taken: &mut TakenFrames,
    ) -> Option<u64> {
        let mut cache = self.cache.borrow_mut();
        let mut progress = self.progress.borrow_mut();
        let most = self.due_pages(cache.dirty_frames(), &progress);
        if most == 0 {
            return None;
        }
        cache.take(most, pages, taken);
        let last =
            cache.oldest_command().map_or(progress.accepted, |oldest| oldest.saturating_sub(1));
        Some(progress.start_batch(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::ErrorKind;

    #[test]
    fn who_waits_hears_of_the_failure_however_many_come_behind_it() {
        let progress = RefCell::new(Progress::default());
        let slow = Awaited::new(&progress, 1);
        for command in 1..=200 {
            let awaited = Awaited::new(&progress, command);
            let batch = progress.borrow_mut().start_batch(command);
            let error = Error::new(ErrorKind::OutOfSpace, format!("command {command}"));
            // Every other batch fails, the first one too.
            progress.borrow_mut().end_batch(batch, (command % 2 == 1).then_some(error));
            let failed = progress.borrow().outcome(command).unwrap().is_err();
            assert_eq!(failed, command % 2 == 1, "command {command}");
            drop(awaited);
            assert!(progress.borrow().failures.len() <= 1, "what was heard of is forgotten");
        }
        let heard = progress.borrow().outcome(1).unwrap().unwrap_err();
        assert!(heard.to_string().contains("command 1"), "{heard}");
        drop(slow);
        assert!(progress.borrow().failures.is_empty() && progress.borrow().awaited.is_empty());
    }

    #[test]
    fn a_failing_batch_that_ends_no_command_is_nobodys_to_hear() {
        let progress = RefCell::new(Progress::default());
        let _awaited = Awaited::new(&progress, 2);
        let first = progress.borrow_mut().start_batch(1);
        let part = progress.borrow_mut().start_batch(1);
        let error = Error::new(ErrorKind::OutOfSpace, "a part of command 2");
        progress.borrow_mut().end_batch(part, Some(error));
        progress.borrow_mut().end_batch(first, None);
        assert!(progress.borrow().failures.is_empty());
        assert!(progress.borrow().outcome(1).unwrap().is_ok());
    }

    #[test]
    fn a_failure_is_of_the_commands_of_its_batch_alone_in_whatever_order_batches_end() {
        let progress = RefCell::new(Progress::default());
        let _awaited: Vec<_> = (1..=9).map(|command| Awaited::new(&progress, command)).collect();
        let batches = [3, 6, 9].map(|last| progress.borrow_mut().start_batch(last));
        let error = Error::new(ErrorKind::OutOfSpace, "the second");
        progress.borrow_mut().end_batch(batches[1], Some(error));
        assert!(progress.borrow().outcome(4).is_none(), "the first is not done");
        progress.borrow_mut().end_batch(batches[2], None);
        progress.borrow_mut().end_batch(batches[0], None);
        let failed = |command| progress.borrow().outcome(command).unwrap().is_err();
        let failed: Vec<u64> = (1..=9).filter(|command| failed(*command)).collect();
        assert_eq!(failed, [4, 5, 6]);
    }
}
