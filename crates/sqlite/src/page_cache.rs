//! Pages of a database in memory, for all connections of the process: committed ones, and those of the transaction that
//! outgrew its memory.
//!
//! Nobody else changes the volume while it is open, and a commit holds the database alone: so a page is the
//! committed one from when it was read, or committed, until it is committed again. So does a transaction that writes pages to
//! the volume before its commit: while it [`hold`](PageCache::hold)s the cache, nobody else uses it.
use crate::memory::{Memory, Part};
use crate::tree_scan::TreeScans;
use std::sync::Arc;
use tantalum_base::{PageBuf, PageNo, PageRange, TxId};

/// Pages that a scan reads at once, at the most.
const AHEAD_PAGES_MAX: u64 = 256;

/// Pages anywhere that a scan of a B-tree reads at the same time, at the most.
const BESIDE_PAGES_MAX: usize = 64;

/// Scans that are followed at once: an index and its table, and what lies between their leaves.
const SCANS: usize = 4;

/// A scan, perhaps.
#[derive(Clone, Copy, Default)]
struct Scan {
    /// The page that is missing next if it goes on.
    next: PageNo,
    /// Pages that its last read brought.
    pages: u64,
}

/// The cache.
pub(crate) struct PageCache {
    pages: Part,
    /// The one that went on last at the end.
    scans: [Scan; SCANS],
    trees: TreeScans,
    /// Counts what changed on the volume.
    changes: u64,
    /// The transaction that some of the pages are of.
    holder: Option<TxId>,
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
        }
    }

    /// The content of `page`, if it is there.
    pub(crate) fn get(&mut self, page: PageNo) -> Option<PageBuf> {
        let content = self.pages.get(page)?;
        self.trees.notice(page, &content);
        Some(content)
    }

    /// Keeps what was read or committed.
    pub(crate) fn put(&mut self, page: PageNo, content: PageBuf) {
        self.trees.notice(page, &content);
        self.pages.put(page, content);
    }

    /// What [`put_read`](Self::put_read) wants to know of the moment before a read.
    pub(crate) fn moment(&self) -> u64 {
        self.changes
    }

    /// Keeps what a read that began at `moment` brought, unless something was committed since.
    pub(crate) fn put_read(&mut self, moment: u64, page: PageNo, content: PageBuf) {
        if moment == self.changes {
            self.put(page, content);
        }
    }

    /// Something is committed, or given up: what is being read now may be older.
    pub(crate) fn change(&mut self) {
        self.changes += 1;
    }

    /// Whether the cache holds what `tx` sees, or everybody where that is `None`.
    pub(crate) fn is_of(&self, tx: Option<TxId>) -> bool {
        self.holder.is_none() || self.holder == tx
    }

    /// What is put from now on may be of `tx` alone.
    pub(crate) fn hold(&mut self, tx: TxId) {
        self.change();
        self.holder = Some(tx);
    }

    /// No transaction is on the volume any more that is not committed. Drops `pages`, which are not what is committed.
    pub(crate) fn release(&mut self, pages: impl IntoIterator<Item = PageNo>) {
        self.change();
        self.holder = None;
        pages.into_iter().for_each(|page| self.pages.forget(page));
    }

    /// Drops all pages of `range`.
    pub(crate) fn forget_range(&self, range: PageRange) {
        self.pages.forget_range(range);
    }

    /// How many pages to read at once where `page` is missing, of a database that goes on for `left` pages from
    /// there: more and more while a scan goes on, one otherwise.
    pub(crate) fn read_at_once(&mut self, page: PageNo, left: u64) -> u64 {
        if !self.pages.memory().keeps_pages() {
            return 1;
        }
        let scan = self.scans.iter().position(|scan| scan.next == page);
        let wanted = scan.map_or(1, |at| 2 * self.scans[at].pages).clamp(1, AHEAD_PAGES_MAX);
        let pages = wanted.min(left).max(1);
        // In the place of that scan, or of the one that has not gone on for longest.
        self.scans[scan.unwrap_or(0)..].rotate_left(1);
        self.scans[SCANS - 1] = Scan { next: PageNo(page.0 + pages), pages };
        pages
    }

    /// The pages before `end` to read at the same time as `page`, which is missing, with it and in order: those that a scan of
    /// an index or a table comes to next.
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
        // Two side by side, and what is between them.
        let both = [10, 50, 11, 200, 51, 13, 53, 300, 17, 57];
        let both = both.map(|page| cache.read_at_once(PageNo(page), 100));
        assert_eq!(both, [1, 1, 2, 1, 2, 4, 4, 1, 8, 8]);
        // Where nothing is kept, nothing is read ahead.
        let mut none = cache_of(0);
        let all = [1, 2, 3, 4].map(|page| none.read_at_once(PageNo(page), 100));
        assert_eq!(all, [1, 1, 1, 1]);
    }
}
