//! Pages of a database in memory, for all connections of the process: committed pages, and those of a transaction that outgrew
//! its memory.
//!
//! While the volume is open, only other clients of the same server can change it too; `Database::refresh` drops the pages that
//! they changed from this cache. A commit holds the database exclusively. So a cached page is the committed one from the time
//! when it was read or committed until it is committed again. A transaction may write pages to the volume before its commit:
//! while it [`hold`](PageCache::hold)s the cache, no other connection uses the cache.
use crate::memory::{Memory, Part};
use crate::tree_scan::TreeScans;
use std::collections::BTreeSet;
use std::sync::Arc;
use tantalum_base::{PageBuf, PageNo, PageRange};

/// Maximum number of pages that a sequential scan reads at once.
const AHEAD_PAGES_MAX: u64 = 256;

/// Maximum number of scattered pages that a scan of a B-tree reads concurrently.
const BESIDE_PAGES_MAX: usize = 64;

/// Number of scans tracked at once: an index and its table, and the pages between their leaves.
const SCANS: usize = 4;

/// A possible sequential scan.
#[derive(Clone, Copy, Default)]
struct Scan {
    /// The next missing page, if the scan continues.
    next: PageNo,
    /// Number of pages in its last read.
    pages: u64,
}

/// The cache.
pub(crate) struct PageCache {
    pages: Part,
    /// Ordered by use: the scan that continued last is at the end.
    scans: [Scan; SCANS],
    trees: TreeScans,
    /// Number of changes of the volume.
    changes: u64,
    /// The number of the transaction to which some of the pages belong.
    holder: Option<u64>,
    /// The pages that it wrote.
    held: BTreeSet<PageNo>,
}

impl PageCache {
    /// An empty cache in `memory`.
    pub(crate) fn new(memory: &Arc<Memory>) -> PageCache {
        let scans = [Scan::default(); SCANS];
        PageCache {
            pages: memory.join(),
            scans,
            trees: TreeScans::default(),
            changes: 0,
            holder: None,
            held: BTreeSet::new(),
        }
    }

    /// The content of `page`, if it is cached.
    pub(crate) fn get(&mut self, page: PageNo) -> Option<PageBuf> {
        let content = self.pages.get(page)?;
        self.trees.notice(page, &content);
        Some(content)
    }

    /// The committed content of `page`, if it is cached. This does not count as a use of the page.
    pub(crate) fn committed(&self, page: PageNo) -> Option<PageBuf> {
        if self.held.contains(&page) { None } else { self.pages.peek(page) }
    }

    /// Caches content that was read or committed.
    pub(crate) fn put(&mut self, page: PageNo, content: PageBuf) {
        self.trees.notice(page, &content);
        self.pages.put(page, content);
    }

    /// The state to pass to [`put_read`](Self::put_read), taken before the read.
    pub(crate) fn moment(&self) -> u64 {
        self.changes
    }

    /// Caches content from a read that began at `moment`, unless there was a commit since.
    pub(crate) fn put_read(&mut self, moment: u64, page: PageNo, content: PageBuf) {
        if moment == self.changes {
            self.put(page, content);
        }
    }

    /// Records a commit or a trim: the result of a read in progress may be stale.
    pub(crate) fn change(&mut self) {
        self.changes += 1;
    }

    /// Whether the cached pages are valid for the transaction `tx`, or for reads outside of transactions if that is `None`.
    pub(crate) fn is_of(&self, tx: Option<u64>) -> bool {
        self.holder.is_none() || self.holder == tx
    }

    /// Marks `pages`, in addition to those of earlier calls, as pages of the transaction `tx`, invisible to others.
    pub(crate) fn hold(&mut self, tx: u64, pages: impl IntoIterator<Item = PageNo>) {
        self.change();
        self.holder = Some(tx);
        self.held.extend(pages);
    }

    /// Ends the hold: no uncommitted pages are on the volume any more. Drops `pages`, whose cached content is not the committed
    /// one.
    pub(crate) fn release(&mut self, pages: impl IntoIterator<Item = PageNo>) {
        self.change();
        self.holder = None;
        self.held.clear();
        pages.into_iter().for_each(|page| self.pages.forget(page));
    }

    /// Drops all pages of `range`.
    pub(crate) fn forget_range(&self, range: PageRange) {
        self.pages.forget_range(range);
    }

    /// The number of pages to read at once if `page` is missing and the database has `left` pages from there on: more and more
    /// while a scan continues, otherwise one.
    pub(crate) fn read_at_once(&mut self, page: PageNo, left: u64) -> u64 {
        if !self.pages.memory().keeps_pages() {
            return 1;
        }
        let scan = self.scans.iter().position(|scan| scan.next == page);
        let wanted = scan.map_or(1, |at| 2 * self.scans[at].pages).clamp(1, AHEAD_PAGES_MAX);
        let pages = wanted.min(left).max(1);
        // Replaces that scan, or the one that has not continued for the longest time.
        self.scans[scan.unwrap_or(0)..].rotate_left(1);
        self.scans[SCANS - 1] = Scan { next: PageNo(page.0 + pages), pages };
        pages
    }

    /// The pages before `end` to read concurrently with `page`, which is missing: those that a scan of an index or a table
    /// will reach next. The result includes `page` and is in ascending order.
    pub(crate) fn read_beside(&mut self, page: PageNo, end: PageNo) -> Vec<PageNo> {
        let room = self.pages.memory().kept_max() / 4;
        let after = self.trees.after(page, room.min(BESIDE_PAGES_MAX));
        let missing = after.into_iter().filter(|page| *page < end && !self.pages.contains(*page));
        let mut pages: Vec<PageNo> = missing.chain([page]).collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Room;
    use tantalum_base::PAGE_BYTES;

    fn content(number: u64) -> PageBuf {
        PageBuf::copy_from(&[number as u8; PAGE_BYTES])
    }

    fn cache_of(pages_max: u32) -> PageCache {
        let room = Room::new(pages_max, 0);
        PageCache::new(&Arc::new(Memory::new(room, room, || usize::MAX)))
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept_after_it() {
        let mut cache = cache_of(8);
        let moment = cache.moment();
        cache.put_read(moment, PageNo(1), content(1));
        cache.change();
        cache.put_read(moment, PageNo(2), content(2));
        assert!(cache.get(PageNo(1)).is_some() && cache.get(PageNo(2)).is_none());
    }

    #[test]
    fn what_a_transaction_wrote_is_not_the_committed_content_until_it_ends() {
        let mut cache = cache_of(8);
        cache.put(PageNo(1), content(1));
        cache.put(PageNo(2), content(2));
        cache.hold(7, [PageNo(1)]);
        cache.put(PageNo(1), content(3));
        assert_eq!(cache.committed(PageNo(1)), None);
        assert_eq!(cache.committed(PageNo(2)), Some(content(2)));
        cache.release([]);
        assert_eq!(cache.committed(PageNo(1)), Some(content(3)));
    }

    #[test]
    fn a_scan_reads_more_and_more_at_once_and_no_other_read_does() {
        let mut cache = cache_of(8);
        let (mut page, mut reads) = (1, Vec::new());
        while page < 1000 {
            let pages = cache.read_at_once(PageNo(page), 1000 - page);
            reads.push(pages);
            page += pages;
        }
        assert_eq!(reads, [1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 232]);
        let scattered = [5, 7, 900, 2].map(|page| cache.read_at_once(PageNo(page), 100));
        assert_eq!(scattered, [1, 1, 1, 1]);
        // Two scans side by side, with other pages in between.
        let both = [10, 50, 11, 200, 51, 13, 53, 300, 17, 57];
        let both = both.map(|page| cache.read_at_once(PageNo(page), 100));
        assert_eq!(both, [1, 1, 2, 1, 2, 4, 4, 1, 8, 8]);
        // Without a cache nothing is read ahead.
        let mut none = cache_of(0);
        let all = [1, 2, 3, 4].map(|page| none.read_at_once(PageNo(page), 100));
        assert_eq!(all, [1, 1, 1, 1]);
    }
}
