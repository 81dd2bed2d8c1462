//! Lends committed content to SQLite's rollback journal. The journal needs the old content of changed pages, which the volume
//! has anyway until the commit. So the journal borrows a page instead of storing it, if the page is known to be the committed
//! one.
//!
//! The committed content changes only with a commit. Before a commit in this process, and when the writing connection gives up
//! its lock, the journals store all borrowed pages. In between no other process can commit.
use super::{Database, page_of};
use crate::codes::lock;
use crate::journal::{Journal, Lender};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use tantalum::front_end::FrontEnd;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo, Result};

/// The journals that may borrow from one database.
#[derive(Default)]
pub(super) struct Lending {
    /// Whether a connection of this process holds the lock for writing.
    is_open: AtomicBool,
    journals: Mutex<Vec<Weak<Mutex<Journal>>>>,
}

impl Database {
    /// Lets `journal` borrow pages of this database.
    pub(crate) fn lend_to(self: &Arc<Self>, journal: &Arc<Mutex<Journal>>) {
        let lender: Arc<dyn Lender> = Arc::clone(self) as _;
        lock(journal).set_lender(Arc::downgrade(&lender));
        let mut journals = lock(&self.lending.journals);
        journals.retain(|journal| journal.strong_count() > 0);
        journals.push(Arc::downgrade(journal));
    }

    /// Begins to lend. A connection of this process holds the lock for writing, so no other process commits.
    pub(crate) fn begin_lending(&self) {
        self.lending.is_open.store(true, Ordering::Release);
    }

    /// Ends lending, because that connection is about to give up the lock.
    pub(crate) fn end_lending(&self) {
        self.lending.is_open.store(false, Ordering::Release);
        for journal in self.lending.borrowers() {
            lock(&journal).give_back();
        }
    }

    /// Ends all loans, because the committed content is about to change: journals store the pages that they borrowed.
    pub(super) fn end_loans(&self) -> Result<()> {
        self.lending.borrowers().iter().try_for_each(|journal| lock(journal).store_borrowed())
    }
}

impl Lending {
    fn borrowers(&self) -> Vec<Arc<Mutex<Journal>>> {
        lock(&self.journals).iter().filter_map(Weak::upgrade).collect()
    }
}

impl Lender for Database {
    fn lends(&self, offset: u64, data: &[u8]) -> bool {
        if !self.lending.is_open.load(Ordering::Acquire) {
            return false;
        }
        let skip = (offset % PAGE_BYTES as u64) as usize;
        let cache = lock(&self.cache);
        let mut rest = data;
        let mut pages = (page_of(offset).0..).map(PageNo);
        let mut skip = Some(skip);
        while !rest.is_empty() {
            let from = skip.take().unwrap_or_default();
            let (part, after) = rest.split_at(rest.len().min(PAGE_BYTES - from));
            let committed = pages.next().and_then(|page| cache.committed(page));
            if committed.is_none_or(|content| content[from..from + part.len()] != *part) {
                return false;
            }
            rest = after;
        }
        true
    }

    fn read_committed(&self, pages: &[PageNo]) -> Result<Vec<PageBuf>> {
        let mut found: Vec<Option<PageBuf>> = {
            let cache = lock(&self.cache);
            pages.iter().map(|page| cache.committed(*page)).collect()
        };
        let is_missing = |(_, content): &(&PageNo, &mut Option<PageBuf>)| content.is_none();
        let mut missing: Vec<_> = pages.iter().zip(&mut found).filter(is_missing).collect();
        let numbers: Vec<PageNo> = missing.iter().map(|(page, _)| **page).collect();
        let read = self.client.read_each(numbers.clone(), None)?;
        if let Some(trace) = &self.trace {
            let mut trace = lock(trace);
            numbers.iter().for_each(|page| trace.read(*page, 1));
        }
        missing.iter_mut().zip(read).for_each(|((_, place), content)| **place = Some(content));
        Ok(found.into_iter().flatten().collect())
    }
}
