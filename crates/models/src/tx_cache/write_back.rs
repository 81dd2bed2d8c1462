//! Write-back: committed pages are written to their home locations, in batches that keep every
//! plane busy.
//!
//! The order: first the extended cache is emptied; then, if headers are short, pages of the oldest
//! committed transactions are written; then, while frames are short, the least recently used pages.
//! (The paper states that only committed pages are candidates, section III-B, but not the order.) A
//! page that is home leaves the cache. A page that the medium cannot read from the extended cache stays
//! there and is lost; the others are written without it.
use tantalum_base::{ErrorKind, PageNo, Payload, Result};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Runtime;

use super::device::{TxCache, latched};
use super::lists::List;
use super::metadata::{NONE, PagePlace};
use super::options::HeaderRelease;
use super::state::{CacheState, Phase, Use};

/// The goals of write-back.
struct Aim {
    /// Number of pages in a batch.
    batch_pages: u32,
    /// Number of frames that should be free, including those on their way home; all of them when
    /// draining.
    frames: u32,
    /// Whether to write back less than a full batch for that.
    urgent: bool,
    /// Number of transaction headers that should be free or about to become free. Half of them, and no more than
    /// the maximum number of open transactions, is enough: then fewer headers are used up while batches are in
    /// flight than are left.
    headers: u32,
}

impl<R: Runtime, M: ZoneMedia> TxCache<R, M> {
    /// One flusher; `write_backs_in_flight` of them run in parallel. Ends when the device fails.
    pub(super) async fn run_flusher(&self) -> Result<()> {
        let mut batch = Vec::new();
        loop {
            let due = || {
                if let Some(error) = &*self.failed.borrow() {
                    return Some(Err(latched(error)));
                }
                let aim = self.aim();
                self.state.borrow_mut().take_batch(&aim, &mut batch).then_some(Ok(()))
            };
            self.work.until(due).await?;
            let lost = match self.write_home(&mut batch).await {
                Ok(lost) => lost,
                Err(error) => {
                    // The pages stay in the cache, which holds their only copy.
                    self.fail(&error);
                    return Err(error);
                }
            };
            let pages = batch.len() as u64;
            let stores = self.change(|state| {
                state.came_home(&mut batch);
                lost.into_iter().for_each(|header| state.lose(header));
            });
            let accesses = pages + stores;
            self.room.wake_all();
            self.work.wake_all();
            self.pay(accesses).await;
        }
    }

    /// Writes the pages of `batch` to their home locations. Removes from it, and returns, those that
    /// the medium cannot read.
    async fn write_home(&self, batch: &mut Vec<u32>) -> Result<Vec<u32>> {
        let mut pages: Vec<(PageNo, M::Page)> = Vec::with_capacity(batch.len());
        let (mut places, mut indexes) = (Vec::new(), Vec::new());
        {
            let state = self.state.borrow();
            for number in batch.iter() {
                let header = state.nvram.header(*number);
                let content = match header.place {
                    PagePlace::Frame(frame) => {
                        state.nvram.frames.get(frame).expect("a frame that is used was filled")
                    }
                    PagePlace::Extended(extended) => {
                        places.push(self.extended_page(extended));
                        indexes.push(pages.len());
                        M::Page::zero()
                    }
                };
                pages.push((header.page, content));
            }
        }
        let mut lost = Vec::new();
        let read = self.read_extended(&places).await?;
        // Backwards, so that earlier indexes stay valid.
        for (index, content) in indexes.into_iter().zip(read).rev() {
            match content {
                Some(content) => pages[index].1 = content,
                None => {
                    pages.remove(index);
                    lost.push(batch.remove(index));
                }
            }
        }
        if !pages.is_empty() {
            self.ftl.write(&pages, true).await?;
        }
        Ok(lost)
    }

    /// Reads the FTL's pages `places`; `None` for each that the medium cannot read.
    async fn read_extended(&self, places: &[PageNo]) -> Result<Vec<Option<M::Page>>> {
        let mut contents = vec![M::Page::zero(); places.len()];
        if places.is_empty() || self.ftl.read(places, &mut contents).await.is_ok() {
            return Ok(contents.into_iter().map(Some).collect());
        }
        let mut found = Vec::with_capacity(places.len());
        for place in places {
            let mut content = [M::Page::zero()];
            match self.ftl.read(&[*place], &mut content).await {
                Ok(()) => found.extend(content.map(Some)),
                // The medium is off; its content is not lost.
                Err(error) if error.kind() == ErrorKind::PowerCut => return Err(error),
                Err(_) => found.push(None),
            }
        }
        Ok(found)
    }

    fn aim(&self) -> Aim {
        let draining = self.draining.get() > 0;
        let wanted = self.frames_wanted.get();
        let holds = self.options.header_release == HeaderRelease::WrittenBack;
        let enough = (self.options.headers / 2).clamp(1, self.options.transactions_max.max(1));
        let headers = if holds { enough } else { 0 };
        Aim {
            batch_pages: self.batch_pages,
            frames: if draining {
                self.options.cache_pages
            } else {
                self.options.free_frames.max(wanted)
            },
            urgent: draining || wanted > 0,
            headers: headers.max(self.begins_waiting.get()).min(self.options.headers),
        }
    }

    /// Wakes the flushers if there is work for them; after most writes there is none.
    pub(super) fn wake_flushers(&self) {
        if self.state.borrow().is_due(&self.aim()) {
            self.work.wake_all();
        }
    }
}

impl<P: Payload> CacheState<P> {
    /// Number of pages whose committed version is in the cache.
    pub(super) fn in_force(&self) -> u32 {
        self.lists.len(List::Committed) + self.lists.len(List::Extended)
    }

    /// Records that the version was read, which delays its replacement.
    pub(super) fn touch(&mut self, header: u32) {
        if self.headers[header as usize].usage == Use::Committed {
            self.lists.push(List::Committed, header);
        }
    }

    fn frames_short(&self, aim: &Aim) -> u32 {
        let short = aim.frames.saturating_sub(self.free_frames.len() as u32 + self.going_frames);
        let short = short.min(self.lists.len(List::Committed));
        if aim.urgent || short >= aim.batch_pages.min(aim.frames) { short } else { 0 }
    }

    fn headers_short(&self, aim: &Aim) -> u32 {
        aim.headers.saturating_sub(self.free_transactions.len() as u32 + self.headers_leaving)
    }

    /// Whether there may be something to write back.
    fn is_due(&self, aim: &Aim) -> bool {
        self.lists.len(List::Extended) > 0
            || self.frames_short(aim) > 0
            || (self.headers_short(aim) > 0 && !self.committed.is_empty())
    }

    /// Takes the next batch; returns false if none is due.
    fn take_batch(&mut self, aim: &Aim, batch: &mut Vec<u32>) -> bool {
        self.take_oldest(List::Extended, aim.batch_pages, batch);
        self.take_oldest_transactions(aim, batch);
        let room = aim.batch_pages - batch.len() as u32;
        let short = self.frames_short(aim);
        if short > 0 {
            // A program on one plane takes as long as one on all planes.
            let pages = if aim.urgent { room } else { room.min(short) };
            self.take_oldest(List::Committed, pages, batch);
        }
        !batch.is_empty()
    }

    /// Takes up to `most` pages from the tail of `list`.
    fn take_oldest(&mut self, list: List, most: u32, batch: &mut Vec<u32>) {
        let mut at = self.lists.oldest(list);
        let mut taken = 0;
        while let Some(header) = at
            && taken < most
        {
            at = self.lists.newer(header);
            taken += u32::from(self.take(header, batch));
        }
    }

    /// If headers are short, fills the batch with pages of committed transactions, the oldest
    /// first. It takes more than the missing headers require: programming a few pages takes as long
    /// as keeping every plane busy, so small batches would delay every begin.
    fn take_oldest_transactions(&mut self, aim: &Aim, batch: &mut Vec<u32>) {
        if self.headers_short(aim) == 0 {
            return;
        }
        self.forget_checkpointed();
        for at in 0..self.committed.len() {
            let (number, _) = self.committed[at];
            let members = std::mem::take(&mut self.transactions[number as usize].members);
            for header in &members {
                if batch.len() as u32 >= aim.batch_pages {
                    break;
                }
                if self.owner(*header) == number {
                    self.take(*header, batch);
                }
            }
            self.transactions[number as usize].members = members;
            if batch.len() as u32 >= aim.batch_pages {
                break;
            }
        }
    }

    /// Removes from the queue transactions whose headers have been released.
    pub(super) fn forget_checkpointed(&mut self) {
        let held = |(number, commit_number): &(u32, u64)| {
            let transaction = &self.transactions[*number as usize];
            transaction.phase == Phase::Committed && transaction.commit_number == *commit_number
        };
        self.committed.retain(held);
    }

    /// Takes a committed version for write-back; returns false if it must wait, or is not a
    /// committed version.
    fn take(&mut self, header: u32, batch: &mut Vec<u32>) -> bool {
        if self.headers[header as usize].usage != Use::Committed {
            return false;
        }
        let stored = self.nvram.header(header);
        if self.going_home.contains(&stored.page)
            || self.trimming.is_some_and(|range| range.contains(stored.page))
        {
            return false;
        }
        self.going_home.insert(stored.page);
        self.going_frames += u32::from(matches!(stored.place, PagePlace::Frame(_)));
        self.lists.remove(header);
        let owner = self.headers[header as usize].owner;
        self.headers[header as usize].usage = Use::GoingHome;
        if owner != NONE {
            self.leaves(owner);
        }
        batch.push(header);
        true
    }

    /// The batch is durable at its home locations.
    fn came_home(&mut self, batch: &mut Vec<u32>) {
        self.statistics.write_backs += 1;
        for header in batch.drain(..) {
            let stored = self.nvram.header(header);
            let in_frame = matches!(stored.place, PagePlace::Frame(_));
            self.statistics.pages_written_home += 1;
            self.statistics.pages_copied_home += u64::from(!in_frame);
            self.going_frames -= u32::from(in_frame);
            self.going_home.remove(&stored.page);
            if self.headers[header as usize].usage == Use::GoingHome {
                self.nvram.mapping.take(stored.page.0 as u32);
            }
            debug_assert_ne!(self.nvram.mapped(stored.page), Some(header));
            self.free(header);
        }
    }

    fn owner(&self, header: u32) -> u32 {
        match self.headers[header as usize].usage {
            Use::Free => NONE,
            _ => self.headers[header as usize].owner,
        }
    }
}
