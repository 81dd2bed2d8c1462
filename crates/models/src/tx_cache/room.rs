//! Room: waiting for frames, and moving pages of open transactions to the extended cache.
//!
//! Uncommitted pages may fill all frames except as many as one write may need. Beyond that the
//! oldest of them go to the extended cache. The remaining frames hold committed pages, which leave
//! by themselves, so a write outside of transactions always finds room eventually.
use crate::fault_points::Fault;
use tantalum_base::{Error, ErrorKind, PageNo, PageRange, Payload, Result};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::Waiting;

use super::device::{TxCache, latched};
use super::lists::List;
use super::metadata::{PageHeader, PagePlace};
use super::state::{CacheState, Use};

impl<R: Runtime, M: ZoneMedia> TxCache<R, M> {
    /// Waits until there are frames for a write of `pages` pages from `first` on, in transaction
    /// `number` or outside. Call it during the writer's turn.
    ///
    /// # Errors
    /// `Conflict`, `TooLarge` and `OutOfSpace`; nothing is changed then.
    pub(super) async fn wait_for_room(
        &self,
        first: PageNo,
        pages: u32,
        number: Option<u32>,
    ) -> Result<()> {
        let admit = || {
            if let Some(error) = &*self.failed.borrow() {
                return Some(Err(latched(error)));
            }
            match number {
                Some(number) => self.admit_inside(first, pages, number),
                None => self.admit_outside(PageRange::new(first, u64::from(pages))),
            }
        };
        if let Some(admitted) = admit() {
            return admitted;
        }
        let _waiting = Waiting::new(&self.frames_wanted, pages);
        self.work.wake_all();
        self.room.until(admit).await
    }

    fn admit_outside(&self, range: PageRange) -> Option<Result<()>> {
        let state = self.state.borrow();
        let trimming = state.trimming.is_some_and(|trimming| trimming.overlaps(range));
        (!trimming && state.free_frames.len() as u64 >= range.pages).then_some(Ok(()))
    }

    fn admit_inside(&self, first: PageNo, pages: u32, number: u32) -> Option<Result<()>> {
        let over = {
            let state = &mut *self.state.borrow_mut();
            let demand = match state.demand(first, pages, number) {
                Ok(Some(demand)) => demand,
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            };
            let most = self.limits_transaction_pages();
            if state.transactions[number as usize].pages + demand.new_pages > most {
                let id = state.transactions[number as usize].id;
                let context = format!("transaction {id} would write more than {most} pages");
                return Some(Err(Error::new(ErrorKind::TooLarge, context)));
            }
            let uncommitted = state.uncommitted_frames + demand.frames;
            let over = uncommitted.saturating_sub(self.options.uncommitted_frames_max());
            if over == 0 || state.can_swap(over, &demand) {
                if (state.free_frames.len() as u32) < demand.frames {
                    return None;
                }
                if over > 0 {
                    // A swap: it uses frames reserved for plain writes until as many pages have
                    // moved to the slots of the extended cache that it frees.
                    self.spill_work.wake_all();
                }
                return Some(Ok(()));
            }
            over
        };
        self.want_spill(over)
    }

    fn limits_transaction_pages(&self) -> u32 {
        self.options.uncommitted_frames_max() + self.options.extended_pages
    }

    /// Requests that `pages` uncommitted pages are moved to the extended cache. Returns an error if
    /// it has no room and none will become free by itself.
    fn want_spill(&self, pages: u32) -> Option<Result<()>> {
        let state = &mut *self.state.borrow_mut();
        if state.spilling > 0 {
            return None;
        }
        if !state.free_extended.is_empty() {
            state.spill_wanted = pages;
            self.spill_work.wake_all();
            return None;
        }
        if state.extended_leaving > 0 {
            self.work.wake_all();
            return None;
        }
        let context = format!(
            "open transactions fill the cache ({} pages) and the extended cache ({} pages)",
            state.uncommitted_frames, self.options.extended_pages
        );
        Some(Err(Error::new(ErrorKind::OutOfSpace, context)))
    }

    /// Moves pages to the extended cache. Ends when the device fails.
    pub(super) async fn run_spiller(&self) -> Result<()> {
        let mut batch = Vec::new();
        loop {
            let due = || {
                if let Some(error) = &*self.failed.borrow() {
                    return Some(Err(latched(error)));
                }
                let state = &mut *self.state.borrow_mut();
                let frames_max = self.options.uncommitted_frames_max();
                state.take_spill(self.batch_pages, frames_max, &mut batch).then_some(Ok(()))
            };
            self.spill_work.until(due).await?;
            let mut pages: Vec<(PageNo, M::Page)> = Vec::with_capacity(batch.len());
            {
                let state = self.state.borrow();
                for (header, extended) in &batch {
                    let content = state.uncommitted_content(*header);
                    pages.push((self.extended_page(*extended), content));
                }
                if Fault::UncommittedGoesHome.is_planted() {
                    let home = |(header, _): &(u32, u32)| {
                        (state.nvram.header(*header).page, state.uncommitted_content(*header))
                    };
                    pages.extend(batch.iter().map(home));
                }
            }
            let written = self.ftl.write(&pages, true).await;
            if let Err(error) = &written {
                self.fail(error);
            }
            let stores = self.change(|state| match &written {
                Ok(()) => state.spilled(&batch),
                Err(_) => state.not_spilled(&batch),
            });
            self.state.borrow_mut().spilling = 0;
            for (header, _) in batch.drain(..) {
                let number = self.state.borrow().nvram.header(header).transaction;
                self.left(number, 1);
            }
            written?;
            self.room.wake_all();
            self.pay(stores).await;
        }
    }
}

/// The needs of a write in a transaction.
struct Demand {
    /// Number of pages that the transaction has not written yet.
    new_pages: u32,
    /// Number of frames needed.
    frames: u32,
}

impl Demand {
    /// Number of slots of the extended cache that the write frees: those of pages that it
    /// overwrites.
    fn given_up(&self) -> u32 {
        self.frames - self.new_pages
    }
}

impl<P: Payload> CacheState<P> {
    /// The needs of a write of `pages` pages from `first` on; `None` while one of them is being
    /// moved to the extended cache.
    fn demand(&self, first: PageNo, pages: u32, number: u32) -> Result<Option<Demand>> {
        let mut demand = Demand { new_pages: 0, frames: 0 };
        let mut moving = false;
        for page in (first.0..).map(PageNo).take(pages as usize) {
            let Some(held) = self.holders.get(&page) else {
                demand.new_pages += 1;
                demand.frames += 1;
                continue;
            };
            let header = self.nvram.header(*held);
            if header.transaction != number {
                return Err(self.conflict(page));
            }
            moving |= self.headers[*held as usize].usage == Use::Spilling;
            demand.frames += u32::from(matches!(header.place, PagePlace::Extended(_)));
        }
        Ok((!moving).then_some(demand))
    }

    /// Whether the write fits only with the slots that it frees itself: the free ones are too few
    /// for the `over` pages by which it exceeds the frames.
    fn can_swap(&self, over: u32, demand: &Demand) -> bool {
        let free = self.free_extended.len() as u32;
        self.spilling == 0 && free < over && over <= free + demand.given_up()
    }

    /// Selects the oldest uncommitted pages, up to `most`, for the extended cache, and allocates a
    /// slot there for each. Does so only if a writer needs it, or if more than `frames_max`
    /// uncommitted pages are in frames.
    fn take_spill(&mut self, most: u32, frames_max: u32, batch: &mut Vec<(u32, u32)>) -> bool {
        let wanted = std::mem::take(&mut self.spill_wanted) > 0;
        if !wanted && self.uncommitted_frames <= frames_max {
            return false;
        }
        while (batch.len() as u32) < most {
            let Some(header) = self.lists.oldest(List::Uncommitted) else { break };
            let Some(extended) = self.free_extended.pop() else { break };
            self.lists.remove(header);
            self.headers[header as usize].usage = Use::Spilling;
            let number = self.nvram.header(header).transaction;
            // Its commit or abort must wait.
            self.transactions[number as usize].in_flight += 1;
            batch.push((header, extended));
        }
        self.spilling = batch.len() as u32;
        !batch.is_empty()
    }

    fn uncommitted_content(&self, header: u32) -> P {
        match self.nvram.header(header).place {
            PagePlace::Frame(frame) => {
                self.nvram.frames.get(frame).expect("a frame that is used was filled")
            }
            PagePlace::Extended(_) => unreachable!("only pages in frames are moved"),
        }
    }

    /// The batch is durable in the extended cache: frees its frames.
    fn spilled(&mut self, batch: &[(u32, u32)]) {
        for (number, extended) in batch {
            let header = self.nvram.header(*number);
            let place = PagePlace::Extended(*extended);
            self.nvram.headers.put(*number, PageHeader { place, ..header });
            if let PagePlace::Frame(frame) = header.place {
                self.free_frames.push(frame);
                self.uncommitted_frames -= 1;
            }
            self.headers[*number as usize].usage = Use::Uncommitted;
            self.statistics.pages_spilled += 1;
        }
    }

    /// The batch did not reach the extended cache: its pages stay in their frames.
    fn not_spilled(&mut self, batch: &[(u32, u32)]) {
        for (number, extended) in batch {
            self.headers[*number as usize].usage = Use::Uncommitted;
            self.lists.push(List::Uncommitted, *number);
            self.free_extended.push(*extended);
        }
    }
}
