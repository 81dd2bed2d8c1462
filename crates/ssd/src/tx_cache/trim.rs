//! Trim: all or nothing, though part of the range is in the cache and part of it at home.
//!
//! The range is noted in NVRAM first, and that decides: recovery completes it. The cache gives the
//! range up in the step in which the FTL's mapping does: not before, as under a cached version lies
//! an older one, and not behind it, or a reader would see half of the trim. What would become visible
//! in the range meanwhile waits: else it could be seen behind the trim and then be dropped with it.
use tantalum_base::{ErrorKind, PageNo, PageRange, Payload, Result};
use tantalum_ftl::planted::{Fault, is_planted};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Runtime;

use super::device::{TxCache, latched};
use super::state::{State, Use};

/// Keeps a range from being written home.
struct Trimming<'a, R: Runtime, M: ZoneMedia>(&'a TxCache<R, M>);

impl<R: Runtime, M: ZoneMedia> Drop for Trimming<'_, R, M> {
    fn drop(&mut self) {
        self.0.state.borrow_mut().trimming = None;
        self.0.room.wake_all();
        self.0.work.wake_all();
    }
}

impl<R: Runtime, M: ZoneMedia> TxCache<R, M> {
    /// Waits while a page of transaction `number`, which is about to commit, is being trimmed, or is on
    /// its way to the extended cache: while the commit waits for the trim, others need room.
    pub(super) async fn wait_for_trim(&self, number: u32) -> Result<()> {
        let clear = || {
            if let Some(error) = &*self.failed.borrow() {
                return Some(Err(latched(error)));
            }
            let state = self.state.borrow();
            let moving = state.transactions[number as usize].in_flight > 0;
            if moving && !is_planted(Fault::ControlOvertakes) {
                return None;
            }
            let Some(range) = state.trimming else { return Some(Ok(())) };
            let chain = state.nvram.chain(state.nvram.tx_header(number).first);
            let trimming = chain.iter().any(|at| range.contains(state.nvram.header(*at).page));
            (!trimming).then_some(Ok(()))
        };
        self.room.until(clear).await
    }

    /// Gives `range` up, which lies on the device.
    pub(super) async fn trim_range(&self, range: PageRange) -> Result<()> {
        let _turn = self.trim_turn.acquire(1).await;
        self.state.borrow_mut().trimming = Some(range);
        let trimming = Trimming(self);
        let quiet = || {
            if let Some(error) = &*self.failed.borrow() {
                return Some(Err(latched(error)));
            }
            let going = self.state.borrow().going_home.iter().any(|page| range.contains(*page));
            (!going).then_some(Ok(()))
        };
        self.room.until(quiet).await?;
        let mut stores = self.change(|state| state.nvram.trim.with_mut(|trim| *trim = Some(range)));
        let drop_range = || stores += self.change(|state| state.drop_range(range));
        let trimmed = self.ftl.trim_with(range, true, drop_range).await;
        if let Err(error) = &trimmed
            && error.kind() != ErrorKind::OutOfSpace
        {
            // Whether it took effect is not known; the note stays for recovery.
            self.fail(error);
            return trimmed;
        }
        stores += self.change(|state| state.nvram.trim.with_mut(|trim| *trim = None));
        drop(trimming);
        self.pay(stores).await;
        trimmed
    }
}

impl<P: Payload> State<P> {
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
            if self.headers[header as usize].usage == Use::Committed {
                let page = self.nvram.header(header).page;
                if range.contains(page) {
                    drop_page(self, page);
                }
            }
        }
    }
}
