//! The pages of the running transaction, kept until it commits.
use std::collections::BTreeMap;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo};

/// What a connection wrote since its last commit. Pages are the volume's.
#[derive(Clone, Default)]
pub(crate) struct WriteSet {
    pub(crate) pages: BTreeMap<PageNo, PageBuf>,
    /// The database's size where the transaction changes it, in bytes.
    pub(crate) size_bytes: Option<u64>,
}

impl WriteSet {
    /// Whether there is nothing to commit.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.size_bytes.is_none()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
        self.size_bytes = None;
    }

    /// Sets the whole content of a page.
    pub(crate) fn put(&mut self, page: PageNo, bytes: &[u8; PAGE_BYTES]) {
        match self.pages.get_mut(&page) {
            Some(content) => *content.make_mut() = *bytes,
            None => {
                self.pages.insert(page, PageBuf::copy_from(bytes));
            }
        }
    }

    /// The pages before `end` as runs of consecutive ones: the first of each, and how many.
    pub(crate) fn runs(&self, end: PageNo) -> Vec<(PageNo, usize)> {
        let mut runs: Vec<(PageNo, usize)> = Vec::new();
        for page in self.pages.range(..end).map(|(page, _)| *page) {
            match runs.last_mut() {
                Some((first, pages)) if first.0 + *pages as u64 == page.0 => *pages += 1,
                _ => runs.push((page, 1)),
            }
        }
        runs
    }

    /// Forgets a page that has the content that it would be given.
    pub(crate) fn forget_equal(&mut self, page: PageNo, committed: &PageBuf) {
        if self.pages.get(&page).is_some_and(|content| content[..] == committed[..]) {
            self.pages.remove(&page);
        }
    }

    /// Forgets the pages from `end` on.
    pub(crate) fn truncate(&mut self, end: PageNo) {
        drop(self.pages.split_off(&end));
    }
}
