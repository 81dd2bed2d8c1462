//! Pages of a database in memory, for all connections of the process: committed ones, and those of the transaction that
//! outgrew its memory.
//!
//! Nobody else changes the volume while it is open, and a commit holds the database alone: so a page is the
//! committed one from when it was read, or committed, until it is committed again. So does a transaction that writes pages to
//! the volume before its commit: while it [`hold`](PageCache::hold)s the cache, nobody else uses it.
use std::collections::BTreeSet;
use tantalum_base::{FastMap, PageBuf, PageNo, PageRange, Result, TxId};
use tantalum_policy::{Effect, Policy, PolicySpec, Request, Workload};

/// Which pages stay: scans of what is used once must not drive the rest out.
const POLICY: &str = "s3_fifo";

/// Pages that a scan reads at once, at the most.
const AHEAD_PAGES_MAX: u64 = 256;

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
    pages: FastMap<PageNo, PageBuf>,
    /// `None` where nothing is cached.
    policy: Option<Box<dyn Policy>>,
    effects: Vec<Effect>,
    /// The one that went on last at the end.
    scans: [Scan; SCANS],
    /// Counts what changed on the volume.
    changes: u64,
    /// The transaction that some of the pages are of.
    holder: Option<TxId>,
}

impl PageCache {
    /// An empty cache of at most `pages_max` pages.
    ///
    /// # Errors
    /// Where the policy has no way to hold so many.
    pub(crate) fn new(pages_max: u32) -> Result<PageCache> {
        let frames = pages_max.min(PolicySpec::FRAMES_MAX);
        let build = || {
            PolicySpec::parse(POLICY)?.build(frames, Workload { pages_end: u64::MAX, future: &[] })
        };
        let policy = (frames > 0).then(build).transpose()?;
        let scans = [Scan::default(); SCANS];
        let (pages, effects) = (FastMap::default(), Vec::new());
        Ok(PageCache { pages, policy, effects, scans, changes: 0, holder: None })
    }

    /// The content of `page`, if it is there.
    pub(crate) fn get(&mut self, page: PageNo) -> Option<PageBuf> {
        let content = self.pages.get(&page)?.clone();
        self.used(page);
        Some(content)
    }

    /// Keeps what was read or committed.
    pub(crate) fn put(&mut self, page: PageNo, content: PageBuf) {
        if self.policy.is_some() {
            self.pages.insert(page, content);
            self.used(page);
        }
    }

    fn used(&mut self, page: PageNo) {
        let Some(policy) = &mut self.policy else { return };
        policy.access(Request::new(page, false), &mut self.effects);
        for effect in self.effects.drain(..).filter(|effect| effect.leaves()) {
            self.pages.remove(&effect.page());
        }
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
        pages.into_iter().for_each(|page| self.forget(page));
    }

    /// Drops `page`, which is not what is committed any more.
    fn forget(&mut self, page: PageNo) {
        if let Some(policy) = &mut self.policy
            && self.pages.remove(&page).is_some()
        {
            policy.forget(page);
        }
    }

    /// Drops all pages of `range`.
    pub(crate) fn forget_range(&mut self, range: PageRange) {
        if range.pages <= self.pages.len() as u64 {
            range.iter().for_each(|page| self.forget(page));
        } else {
            let of_range = self.pages.keys().copied().filter(|page| range.contains(*page));
            // In an order that does not depend on the table's.
            let of_range = of_range.collect::<BTreeSet<_>>();
            of_range.into_iter().for_each(|page| self.forget(page));
        }
    }

    /// How many pages to read at once where `page` is missing, of a database that goes on for `left` pages from
    /// there: more and more while a scan goes on, one otherwise.
    pub(crate) fn read_at_once(&mut self, page: PageNo, left: u64) -> u64 {
        if self.policy.is_none() {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tantalum_base::{PAGE_BYTES, Rng};

    fn content(number: u64) -> PageBuf {
        PageBuf::copy_from(&[number as u8; PAGE_BYTES])
    }

    #[test]
    fn what_it_has_is_what_was_put_last_and_no_more_than_it_may() {
        for (seed, pages_max) in [(1, 0), (2, 1), (3, 7), (4, 1000)] {
            let (mut rng, mut model) = (Rng::split(seed, "page cache"), BTreeMap::new());
            let mut cache = PageCache::new(pages_max).unwrap();
            let mut hits = 0;
            for step in 0..20_000 {
                let page = PageNo(rng.below(100));
                match rng.below(10) {
                    0..4 => {
                        cache.put(page, content(step));
                        model.insert(page, content(step));
                    }
                    4 => {
                        cache.forget(page);
                        model.remove(&page);
                    }
                    5 => {
                        let range = PageRange::new(page, 1 + rng.below(30));
                        cache.forget_range(range);
                        range.iter().for_each(|page| _ = model.remove(&page));
                    }
                    _ => {
                        let found = cache.get(page);
                        hits += u32::from(found.is_some());
                        assert!(found.is_none() || found.as_ref() == model.get(&page));
                    }
                }
                assert!(cache.pages.len() <= pages_max as usize);
            }
            assert_eq!(hits > 50, pages_max > 0, "{pages_max}: {hits}");
        }
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept_after_it() {
        let mut cache = PageCache::new(8).unwrap();
        let moment = cache.moment();
        cache.put_read(moment, PageNo(1), content(1));
        cache.change();
        cache.put_read(moment, PageNo(2), content(2));
        assert!(cache.get(PageNo(1)).is_some() && cache.get(PageNo(2)).is_none());
    }

    #[test]
    fn a_scan_reads_more_and_more_at_once_and_no_other_read_does() {
        let mut cache = PageCache::new(8).unwrap();
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
        let mut none = PageCache::new(0).unwrap();
        let all = [1, 2, 3, 4].map(|page| none.read_at_once(PageNo(page), 100));
        assert_eq!(all, [1, 1, 1, 1]);
    }
}
