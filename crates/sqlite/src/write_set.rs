//! The pages of the running transaction, kept until it commits.
use std::collections::BTreeMap;
use tantalum_base::{FastMap, PAGE_BYTES, PageBuf, PageNo};

/// The writes of a connection since its last commit. Page numbers are the volume's.
#[derive(Clone, Default)]
pub(crate) struct WriteSet {
    pub(crate) pages: BTreeMap<PageNo, PageBuf>,
    /// The new size of the database in bytes, if the transaction changes it.
    pub(crate) size_bytes: Option<u64>,
    /// The number of the last write to each page.
    written: FastMap<PageNo, u64>,
    writes: u64,
}

impl WriteSet {
    /// Whether there is nothing to commit.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.size_bytes.is_none()
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
        self.size_bytes = None;
        self.written.clear();
    }

    /// Sets the whole content of a page.
    pub(crate) fn put(&mut self, page: PageNo, bytes: &[u8; PAGE_BYTES]) {
        self.touch(page);
        match self.pages.get_mut(&page) {
            Some(content) => *content.make_mut() = *bytes,
            None => {
                self.pages.insert(page, PageBuf::copy_from(bytes));
            }
        }
    }

    /// Records a write to `page`.
    pub(crate) fn touch(&mut self, page: PageNo) {
        self.writes += 1;
        self.written.insert(page, self.writes);
    }

    /// Removes and returns half of the pages from `first` on: those with the oldest last write, in ascending order. So pages
    /// that are written repeatedly go to the volume less often.
    pub(crate) fn take_cold(&mut self, first: PageNo) -> Vec<(PageNo, PageBuf)> {
        let when = |page: &PageNo| self.written.get(page).copied().unwrap_or_default();
        let mut writes: Vec<u64> = self.pages.range(first..).map(|(page, _)| when(page)).collect();
        if writes.is_empty() {
            return Vec::new();
        }
        let middle = (writes.len() - 1) / 2;
        let newest = *writes.select_nth_unstable(middle).1;
        let cold: Vec<PageNo> = self
            .pages
            .range(first..)
            .map(|(page, _)| *page)
            .filter(|page| when(page) <= newest)
            .collect();
        let taken = cold.into_iter().filter_map(|page| {
            self.written.remove(&page);
            self.pages.remove_entry(&page)
        });
        taken.collect()
    }

    /// The pages before `end` as contiguous runs: the first page and the length of each.
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

    /// Drops a page whose content equals the committed content.
    pub(crate) fn forget_equal(&mut self, page: PageNo, committed: &PageBuf) {
        if self.pages.get(&page).is_some_and(|content| content[..] == committed[..]) {
            self.pages.remove(&page);
        }
    }

    /// Drops the pages from `end` on.
    pub(crate) fn truncate(&mut self, end: PageNo) {
        drop(self.pages.split_off(&end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_half_that_was_written_longest_ago_is_taken_in_order() {
        let mut set = WriteSet::default();
        for page in [9, 1, 7, 3, 5, 9, 7] {
            set.put(PageNo(page), &[page as u8; PAGE_BYTES]);
        }
        let pages = |taken: &[(PageNo, PageBuf)]| taken.iter().map(|it| it.0.0).collect::<Vec<_>>();
        // Not the first page; of 3, 5, 9 and 7, in the order of their last writes, the first two.
        assert_eq!(pages(&set.take_cold(PageNo(2))), [3, 5]);
        assert_eq!(pages(&set.take_cold(PageNo(2))), [9]);
        assert_eq!(pages(&set.take_cold(PageNo(2))), [7]);
        assert!(set.take_cold(PageNo(2)).is_empty());
        assert_eq!(set.pages.len(), 1);
    }
}
