//! Trim: atomic, although part of the range may be in the cache and part at home.
//!
//! The range is first recorded in NVRAM, which commits the trim: either the trimmer completes it,
//! or recovery does. The cache drops the range in the same step as the FTL's mapping. It must not
//! do so earlier, because an older version lies below a cached one, nor later, or a reader would
//! see half of the trim. Changes that would become visible in the range in the meantime wait:
//! otherwise they could be seen after the trim and then be dropped with it.
use crate::fault_points::Fault;
use std::future::ready;
use tantalum_base::{Error, ErrorKind, PageNo, PageRange, Payload, Result};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Runtime;

use super::device::{TxCache, latched};
use super::state::{CacheState, Use};

/// Keeps pages of a range from being written home and from becoming visible. Once the trim is
/// recorded this lasts to the trim's end, even if the command is dropped.
struct Trimming<'a, R: Runtime, M: ZoneMedia>(&'a TxCache<R, M>);

impl<R: Runtime, M: ZoneMedia> Drop for Trimming<'_, R, M> {
    fn drop(&mut self) {
        if self.0.state.borrow().nvram.trim.get().is_none() {
            self.0.trim_ended();
        }
    }
}

impl<R: Runtime, M: ZoneMedia> TxCache<R, M> {
    /// Waits while a page of transaction `number`, which is about to commit, is being trimmed, or is
    /// being moved to the extended cache: others need room while the commit waits for the trim.
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

    /// Trims `range`, which must lie on the device.
    pub(super) async fn trim_range(&self, range: PageRange) -> Result<()> {
        let _turn = self.trim_turn.acquire(1).await;
        // A trim whose command was dropped may still be running.
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

    /// Completes the recorded trim: an abandoned record would also drop pages written later. So the
    /// command, which may be dropped, only waits for this task. Ends when the device fails.
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
                // It is not known whether the trim took effect; the record stays for recovery. If the
                // log failed because of lack of space below it, the error does not show this: the log
                // may contain the trim, and the cache may have dropped the range.
                *self.trimmed.borrow_mut() = Some(Err(error.clone()));
                self.fail(error);
                return trimmed;
            }
            stores += self.change(|state| state.nvram.trim.with_mut(|trim| *trim = None));
            *self.trimmed.borrow_mut() = Some(trimmed.map(|()| stores));
            self.trim_ended();
        }
    }

    /// Lets everything go on that waited for the trim.
    fn trim_ended(&self) {
        self.state.borrow_mut().trimming = None;
        self.room.wake_all();
        self.work.wake_all();
    }
}

impl<P: Payload> CacheState<P> {
    /// Drops the committed versions of `range`, none of which may be on its way home.
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
