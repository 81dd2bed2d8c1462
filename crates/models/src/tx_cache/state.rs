//! The cache's state: the content of NVRAM, and the indexes that do not survive.
use tantalum_base::{FastMap, FastSet, PageNo, PageRange, Payload, TxId};

use super::lists::{List, Lists};
use super::metadata::{Flags, NONE, PageHeader, PagePlace, TxHeader, TxNvram};
use super::options::{HeaderRelease, TxCacheOptions};
use super::statistics::TxCacheStatistics;
use crate::fault_points::Fault;

/// The use of a page header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Free,
    /// A version of an open transaction.
    Uncommitted,
    /// A version of an open transaction that is being moved to the extended cache.
    Spilling,
    /// The current committed version.
    Committed,
    /// The current committed version, being written home.
    GoingHome,
    /// The current committed version, in a slot of the extended cache that the medium cannot read. It
    /// stays current, so that reads of the page fail and do not return an older content, until
    /// another version replaces it or the page is trimmed.
    Lost,
    /// A newer version replaced it while it was being written home. It is freed when it has
    /// arrived; until then the newer version must not be written home.
    Superseded,
}

#[derive(Clone, Copy)]
pub(super) struct HeaderState {
    pub usage: Use,
    /// The committed transaction whose header is kept until this page is written back.
    pub owner: u32,
    /// The number of the event at which the version was written or became current, counted over all
    /// such events; 0 if that was before a recovery.
    pub at: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Free,
    Open,
    /// Committed; some of its pages are not written back yet.
    Committed,
}

#[derive(Default)]
pub(super) struct Transaction {
    pub id: TxId,
    pub phase: Phase,
    /// Whether a commit or abort waits for earlier commands; later ones wait for its end.
    pub ending: bool,
    /// Number of reads and writes in flight, and of pages being moved to the extended cache.
    pub in_flight: u32,
    /// Number of pages written.
    pub pages: u32,
    /// Number of pages not yet written back, after the commit.
    outstanding: u32,
    /// Of those, the number of pages that are not being written home either.
    staying: u32,
    /// Its page headers, after the commit.
    pub members: Vec<u32>,
    /// Distinguishes successive uses of this header.
    pub commit_number: u64,
}

impl Transaction {
    /// The number of pages that keep its header, and how many of them are not being written home.
    pub(super) fn held_by(&self) -> (u32, u32) {
        (self.outstanding, self.staying)
    }
}

pub(super) struct CacheState<P> {
    pub nvram: TxNvram<P>,
    pub headers: Vec<HeaderState>,
    pub lists: Lists,
    pub free_headers: Vec<u32>,
    pub free_frames: Vec<u32>,
    pub free_extended: Vec<u32>,
    pub transactions: Vec<Transaction>,
    pub free_transactions: Vec<u32>,
    pub by_id: FastMap<TxId, u32>,
    pub next_id: u64,
    pub open: u32,
    /// For each page held by an open transaction, its page header.
    pub holders: FastMap<PageNo, u32>,
    /// Number of frames with pages of open transactions.
    pub uncommitted_frames: u32,
    /// Number of frames whose pages are being written home.
    pub going_frames: u32,
    /// Pages that are being written home.
    pub going_home: FastSet<PageNo>,
    /// Number of slots of the extended cache with committed versions: they become free by
    /// themselves.
    pub extended_leaving: u32,
    /// Number of pages being moved to the extended cache.
    pub spilling: u32,
    /// Number of pages that a writer needs moved there.
    pub spill_wanted: u32,
    /// The range being trimmed; none of its pages may be written home.
    pub trimming: Option<PageRange>,
    /// Committed transactions, oldest first: header and commit number.
    pub committed: std::collections::VecDeque<(u32, u64)>,
    /// Number of committed transactions whose last pages are being written home: their headers
    /// become free by themselves.
    pub headers_leaving: u32,
    commits: u64,
    /// Number of versions that were written or became current.
    events: u64,
    release: HeaderRelease,
    pub statistics: TxCacheStatistics,
}

impl<P: Payload> CacheState<P> {
    /// Nothing is in use, regardless of the content of `nvram`.
    pub(super) fn new(nvram: TxNvram<P>, options: &TxCacheOptions) -> Self {
        let headers = options.cache_pages + options.extended_pages;
        let free = HeaderState { usage: Use::Free, owner: NONE, at: 0 };
        CacheState {
            nvram,
            headers: vec![free; headers as usize],
            lists: Lists::new(headers),
            free_headers: (0..headers).rev().collect(),
            free_frames: (0..options.cache_pages).rev().collect(),
            free_extended: (0..options.extended_pages).rev().collect(),
            transactions: (0..options.headers).map(|_| Transaction::default()).collect(),
            free_transactions: (0..options.headers).rev().collect(),
            by_id: FastMap::default(),
            next_id: 1,
            open: 0,
            holders: FastMap::default(),
            uncommitted_frames: 0,
            going_frames: 0,
            going_home: FastSet::default(),
            extended_leaving: 0,
            spilling: 0,
            spill_wanted: 0,
            trimming: None,
            committed: std::collections::VecDeque::new(),
            headers_leaving: 0,
            commits: 0,
            events: 0,
            release: options.header_release,
            statistics: TxCacheStatistics::default(),
        }
    }

    /// The version of `page` visible to transaction `number`, or to everybody if `None`.
    pub(super) fn find(&self, page: PageNo, number: Option<u32>) -> Option<u32> {
        if let Some(number) = number
            && let Some(own) = self.held_by(page, number)
        {
            return Some(own);
        }
        self.nvram.mapped(page)
    }

    /// The version of `page` written by open transaction `number`.
    pub(super) fn held_by(&self, page: PageNo, number: u32) -> Option<u32> {
        let held = *self.holders.get(&page)?;
        (self.nvram.header(held).transaction == number).then_some(held)
    }

    /// Begins a transaction in header `number`, which must be free: one store.
    pub(super) fn begin(&mut self, number: u32, id: TxId) {
        let flags = Flags::default();
        self.nvram.transactions.put(number, TxHeader { id, first: NONE, flags });
        let transaction = &mut self.transactions[number as usize];
        transaction.id = id;
        transaction.phase = Phase::Open;
        transaction.pages = 0;
        self.by_id.insert(id, number);
        self.open += 1;
        self.statistics.begins += 1;
    }

    /// Writes a page in open transaction `number`; a frame must be free if it needs one.
    pub(super) fn write_inside(&mut self, number: u32, page: PageNo, content: P) {
        if Fault::OldVersionFreed.is_planted()
            && let Some(old) = self.nvram.mapping.take(page.0 as u32)
        {
            self.left_cache(old);
        }
        if let Some(own) = self.held_by(page, number) {
            return self.rewrite(own, content);
        }
        let first = self.nvram.tx_header(number).first;
        let new = self.new_version(page, number, first, content);
        self.chain(number, new);
        self.headers[new as usize].usage = Use::Uncommitted;
        self.lists.push(List::Uncommitted, new);
        self.holders.insert(page, new);
        self.uncommitted_frames += 1;
        self.transactions[number as usize].pages += 1;
    }

    /// Overwrites an uncommitted page; only its transaction can see it in between.
    fn rewrite(&mut self, own: u32, content: P) {
        let header = self.nvram.header(own);
        match header.place {
            PagePlace::Frame(frame) => self.nvram.frames.put_page(frame, content),
            PagePlace::Extended(extended) => {
                let frame = self.free_frames.pop().expect("the writer waited for frames");
                self.nvram.frames.put_page(frame, content);
                let place = PagePlace::Frame(frame);
                self.nvram.headers.put(own, PageHeader { place, ..header });
                self.free_extended.push(extended);
                self.uncommitted_frames += 1;
            }
        }
        self.lists.push(List::Uncommitted, own);
        self.statistics.pages_rewritten += 1;
    }

    /// Makes a new version in a frame of its own: first the frame, then the header. Nothing leads
    /// to it yet.
    fn new_version(&mut self, page: PageNo, transaction: u32, next: u32, content: P) -> u32 {
        let frame = self.free_frames.pop().expect("the writer waited for frames");
        let new = self.free_headers.pop().expect("there is a header for every place");
        self.nvram.frames.put_page(frame, content);
        let previous = self.nvram.mapped(page).unwrap_or(NONE);
        let place = PagePlace::Frame(frame);
        self.nvram.headers.put(new, PageHeader { page, transaction, next, previous, place });
        self.happens(new);
        new
    }

    /// Records that the version of page header `header` is written or becomes current now.
    fn happens(&mut self, header: u32) {
        self.events += 1;
        self.headers[header as usize].at = self.events;
    }

    /// Puts a page header at the head of a Tx Chain: one store.
    fn chain(&mut self, number: u32, header: u32) {
        let transaction = self.nvram.tx_header(number);
        self.nvram.transactions.put(number, TxHeader { first: header, ..transaction });
    }

    /// Writes pages outside of transactions, as a transaction of this single command. There must be
    /// enough free frames.
    pub(super) fn write_outside(&mut self, first: PageNo, pages: &[P]) {
        if let [content] = pages {
            // The mapping's single store commits it.
            let new = self.new_version(first, NONE, NONE, content.clone());
            return self.put_in_force(new);
        }
        let command = self.transactions.len() as u32;
        let committed = Fault::EarlyCommitFlag.is_planted();
        let flags = Flags { committed, ..Flags::default() };
        let begun = TxHeader { id: TxId(0), first: NONE, flags };
        self.nvram.transactions.put(command, begun);
        let mut last = NONE;
        for (page, content) in (first.0..).map(PageNo).zip(pages) {
            last = self.new_version(page, command, last, content.clone());
            self.chain(command, last);
        }
        self.nvram.flag(command, |flags| flags.committed = true);
        for header in self.nvram.chain(last) {
            self.put_in_force(header);
        }
        self.nvram.flag(command, |flags| flags.mapped = true);
        self.nvram.transactions.put(command, TxHeader::FREE);
    }

    /// Makes the version of page header `new` the committed version of its page. It alone frees the
    /// version that it replaces.
    fn put_in_force(&mut self, new: u32) {
        let header = self.nvram.header(new);
        let previous = self.nvram.mapped(header.page).unwrap_or(NONE);
        if header.previous != previous {
            // Another version was committed after this one was written.
            self.nvram.headers.put(new, PageHeader { previous, ..header });
        }
        self.nvram.mapping.put(header.page.0 as u32, new);
        self.happens(new);
        self.enlist(new, header.place);
        // Only now: until the mapping leads to the new version, the old one is the latest.
        if previous != NONE {
            let waits = self.headers[previous as usize].usage == Use::Committed;
            self.statistics.pages_coalesced += u64::from(waits);
            self.left_cache(previous);
        }
    }

    /// Makes a committed version a candidate for write-back.
    pub(super) fn enlist(&mut self, header: u32, place: PagePlace) {
        self.headers[header as usize].usage = Use::Committed;
        match place {
            PagePlace::Frame(_) => self.lists.push(List::Committed, header),
            PagePlace::Extended(_) => {
                self.extended_leaving += 1;
                self.lists.push(List::Extended, header);
            }
        }
    }

    /// Handles that the mapping no longer leads to committed version `old`.
    pub(super) fn left_cache(&mut self, old: u32) {
        if self.headers[old as usize].usage == Use::GoingHome {
            self.headers[old as usize].usage = Use::Superseded;
            return;
        }
        self.free(old);
    }

    /// Frees page header `header`, to which nothing leads any more, with its slot, and possibly the
    /// transaction that it belonged to.
    pub(super) fn free(&mut self, header: u32) {
        self.lists.remove(header);
        let HeaderState { usage, owner, .. } = self.headers[header as usize];
        let uncommitted = usage == Use::Uncommitted;
        match self.nvram.header(header).place {
            PagePlace::Frame(frame) => {
                self.free_frames.push(frame);
                self.uncommitted_frames -= u32::from(uncommitted);
            }
            PagePlace::Extended(extended) => {
                self.free_extended.push(extended);
                self.extended_leaving -= u32::from(!uncommitted && usage != Use::Lost);
            }
        }
        let state = &mut self.headers[header as usize];
        state.usage = Use::Free;
        state.owner = NONE;
        self.free_headers.push(header);
        if owner != NONE {
            if usage == Use::Committed {
                self.leaves(owner);
            }
            self.gives_up_header(owner);
        }
    }

    /// A page no longer keeps the header of committed transaction `number`.
    fn gives_up_header(&mut self, number: u32) {
        let transaction = &mut self.transactions[number as usize];
        transaction.outstanding -= 1;
        if transaction.outstanding == 0 {
            self.checkpoint(number);
        }
    }

    /// The medium cannot read the content of page header `header` in the extended cache, which was
    /// to be written home. The page no longer keeps its transaction's header, and its slot no longer
    /// becomes free by itself.
    pub(super) fn lose(&mut self, header: u32) {
        let page = self.nvram.header(header).page;
        self.going_home.remove(&page);
        let HeaderState { usage, owner, .. } = self.headers[header as usize];
        if usage == Use::Superseded {
            return self.free(header);
        }
        self.statistics.pages_lost += 1;
        self.extended_leaving -= 1;
        let state = &mut self.headers[header as usize];
        (state.usage, state.owner) = (Use::Lost, NONE);
        if owner != NONE {
            self.gives_up_header(owner);
        }
    }

    /// A page that keeps the header of committed transaction `number` is being written home, or was
    /// replaced.
    pub(super) fn leaves(&mut self, number: u32) {
        let transaction = &mut self.transactions[number as usize];
        transaction.staying -= 1;
        self.headers_leaving += u32::from(transaction.staying == 0);
    }

    /// All pages of committed transaction `number` are written back or lost: frees its header.
    fn checkpoint(&mut self, number: u32) {
        self.headers_leaving -= 1;
        self.nvram.flag(number, |flags| flags.written_back = true);
        self.set_free(number);
    }

    /// Frees transaction header `number`: one store.
    fn set_free(&mut self, number: u32) {
        self.nvram.transactions.put(number, TxHeader::FREE);
        let transaction = &mut self.transactions[number as usize];
        transaction.phase = Phase::Free;
        transaction.members = Vec::new();
        self.by_id.remove(&transaction.id);
        self.free_transactions.push(number);
    }

    /// Commits open transaction `number`, which must have nothing in flight.
    pub(super) fn commit(&mut self, number: u32) {
        self.statistics.commits += 1;
        self.open -= 1;
        let first = self.nvram.tx_header(number).first;
        if first == NONE {
            return self.set_free(number);
        }
        // The commit point.
        self.nvram.flag(number, |flags| flags.committed = true);
        let members = self.nvram.chain(first);
        for header in &members {
            let PageHeader { page, place, .. } = self.nvram.header(*header);
            self.holders.remove(&page);
            self.uncommitted_frames -= u32::from(matches!(place, PagePlace::Frame(_)));
            self.put_in_force(*header);
        }
        self.nvram.flag(number, |flags| flags.mapped = true);
        if self.release == HeaderRelease::Mapped {
            return self.set_free(number);
        }
        self.hold_header(number, members);
    }

    /// Keeps the header of committed transaction `number` until `members`, its current page
    /// headers, are written back.
    pub(super) fn hold_header(&mut self, number: u32, members: Vec<u32>) {
        self.commits += 1;
        for header in &members {
            self.headers[*header as usize].owner = number;
        }
        let transaction = &mut self.transactions[number as usize];
        transaction.phase = Phase::Committed;
        transaction.outstanding = members.len() as u32;
        transaction.staying = transaction.outstanding;
        transaction.members = members;
        transaction.commit_number = self.commits;
        if self.committed.len() >= 2 * self.transactions.len() {
            self.forget_checkpointed();
        }
        let transaction = &mut self.transactions[number as usize];
        self.committed.push_back((number, self.commits));
        if transaction.outstanding == 0 {
            self.headers_leaving += 1;
            self.checkpoint(number);
        }
    }

    /// Aborts open transaction `number`, which must have nothing in flight.
    pub(super) fn abort(&mut self, number: u32) {
        self.statistics.aborts += 1;
        self.open -= 1;
        let members = self.nvram.chain(self.nvram.tx_header(number).first);
        self.set_free(number);
        for header in members {
            let page = self.nvram.header(header).page;
            self.holders.remove(&page);
            self.free(header);
        }
    }
}
