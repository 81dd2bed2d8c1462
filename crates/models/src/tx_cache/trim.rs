//! Trim: all or nothing, though part of the range is in the cache and part of it at home.
//!
//! The range is noted in NVRAM first, and that decides: the trimmer completes it, or recovery. The
//! cache gives the range up in the step in which the FTL's mapping does: not before, as under a
//! cached version lies an older one, and not behind it, or a reader would see half of the trim.
//! What would become visible in the range meanwhile waits: else it could be seen behind the trim
//! and then be dropped with it.
use crate::fault_points::Fault;
use std::future::ready;
use tantalum_base::{Error, ErrorKind, PageNo, PageRange, Payload, Result};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Runtime;

use super::device::{TxCache, latched};
use super::state::{CacheState, Use};

/// Keeps a range from being written home, and from becoming visible. Once the trim is noted it
/// does so to the trim's end, also where the command was given up.
struct Trimming<'a, R: Runtime, M: ZoneMedia>(&'a TxCache<R, M>);

impl<R: Runtime, M: ZoneMedia> Drop for Trimming<'_, R, M> {
    fn drop(&mut self) {
        if self.0.state.borrow().nvram.trim.get().is_none() {
            self.0.trim_ended();
        }
    }
}

impl<R: Runtime, M: ZoneMedia> TxCache<R, M> {
    /// Waits while a page of transaction `number`, which is about to commit, is being trimmed, or is on
    /// its way to the extended cache: while the commit waits for the trim, others need room.
    pub(super) async fn wait_for_trim(&self, number: u32) -> Result<()> {
        let clear = || {
            let state = self.state.borrow();
            let moving = state.transactions[number as usize].in_flight > 0
                && !Fault::ControlOvertakes.is_planted();
            let trimming = state.trimming.is_some_and(|range| {
                let chain = state.nvram.chain(state.nvram.tx_header(number).first);
                chain.iter().any(|at| range.contains(state.nvram.header(*at).page))
            });
            self.unless_failed(!moving && !trimming)
        };
        self.room.until(clear).await
    }

    /// Gives `range` up, which lies on the device.
    pub(super) async fn trim_range(&self, range: PageRange) -> Result<()> {
        let _turn = self.trim_turn.acquire(1).await;
        // One whose command was given up may be under way still.
        self.room.until(|| self.unless_failed(self.state.borrow().trimming.is_none())).await?;
        self.state.borrow_mut().trimming = Some(range);
        let _trimming = Trimming(self);
        let quiet = || {
            let going = self.state.borrow().going_home.iter().any(|page| range.contains(*page));
            self.unless_failed(!going)
        };
        self.room.until(quiet).await?;
        self.trimmed.borrow_mut().take();
        let noted = self.change(|state| state.nvram.trim.with_mut(|trim| *trim = Some(range)));
        self.trim_work.wake_all();
        let ended = || {
            let trimmed = self.trimmed.borrow_mut().take();
            trimmed.or_else(|| self.unless_failed(false).map(|failed| failed.map(|()| 0)))
        };
        let stores = self.room.until(ended).await?;
        self.pay(noted + stores).await;
        Ok(())
    }

    /// Brings the trim that is noted to its end: a note that was left alone would take with it what
    /// is written later. So the command, which may be given up, only waits for this. Ends when the
    /// device fails.
    pub(super) async fn run_trimmer(&self) -> Result<()> {
        loop {
            let due = || match &*self.failed.borrow() {
                Some(error) => Some(Err(latched(error))),
                None => self.state.borrow().nvram.trim.get().map(Ok),
            };
            let range = self.trim_work.until(due).await?;
            let mut stores = 0;
            let drop_range = || stores += self.change(|state| state.drop_range(range));
            let trimmed = self.ftl.trim_with(range, true, ready(Ok(())), drop_range).await;
            let no_room = |error: &Error| {
                error.kind() == ErrorKind::OutOfSpace && self.ftl.latched().is_none()
            };
            if let Err(error) = &trimmed
                && !no_room(error)
            {
                // Whether it took effect is not known; the note stays for recovery. A log that failed
                // for want of space below it does not say so: it may hold the trim, and the cache may
                // have given the range up.
                *self.trimmed.borrow_mut() = Some(Err(error.clone()));
                self.fail(error);
                return trimmed;
            }
            stores += self.change(|state| state.nvram.trim.with_mut(|trim| *trim = None));
            *self.trimmed.borrow_mut() = Some(trimmed.map(|()| stores));
            self.trim_ended();
        }
    }

    /// What was held up by a trim goes on.
    fn trim_ended(&self) {
        self.state.borrow_mut().trimming = None;
        self.room.wake_all();
        self.work.wake_all();
    }
}

impl<P: Payload> CacheState<P> {
    /// Drops the committed versions of `range`, none of which is on its way home.
    fn drop_range(&mut self, range: PageRange) {
        let drop_page = |state: &mut Self, page: PageNo| {
            if let Some(old) = state.nvram.mapping.take(page.0 as u32) {
                state.left_cache(old);
            }
        };
        if range.pages <= self.headers.len() as u64 {
            for page in range.iter() {
                if self.nvram.mapped(page).is_some() {
                    drop_page(self, page);
                }
            }
            return;
        }
        for header in 0..self.headers.len() as u32 {
            if matches!(self.headers[header as usize].usage, Use::Committed | Use::Lost) {
                let page = self.nvram.header(header).page;
                if range.contains(page) {
                    drop_page(self, page);
                }
            }
        }
    }
}
