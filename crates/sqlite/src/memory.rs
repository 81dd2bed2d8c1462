//! The memory shared by all databases of a process: cached pages, and pages of running transactions.
use crate::codes::lock;
use crate::opener::MEMORY_PAGES_MIN;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tantalum_base::{FastMap, PageBuf, PageNo, PageRange};
use tantalum_policy::{Effect, Policy, PolicySpec, Request, Workload};

/// The replacement policy: scans of pages that are used once must not evict all others.
const POLICY: &str = "s3_fifo";

/// Bits of a key for the page number; the other bits identify the database.
const PAGE_BITS: u32 = 40;

/// Maximum number of keys of evicted pages in `order`, in addition to the number of cached pages.
const GONE_MAX: usize = 1024;

/// The shared memory.
pub(crate) struct Memory {
    kept: Mutex<Kept>,
    /// Pages of running transactions.
    uncommitted: AtomicUsize,
    /// Number of transactions that outgrew the ordinary room.
    bulks: AtomicUsize,
    ordinary: Room,
    /// The limits while there are such transactions, if the machine has enough free memory.
    bulk: Room,
    free_pages: fn() -> usize,
}

/// Limits on the number of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// Cached pages.
    kept: u32,
    /// Pages of running transactions.
    uncommitted: usize,
    /// Both together.
    all: usize,
}

impl Room {
    /// The limits for at most `kept` cached pages and `uncommitted` pages of running transactions. The latter take the place
    /// of cached pages: together there are no more than the larger of the two numbers.
    pub(crate) fn new(kept: u32, uncommitted: usize) -> Room {
        let kept = kept.min(PolicySpec::FRAMES_MAX);
        Room { kept, uncommitted, all: uncommitted.max(kept as usize) }
    }

    /// The limits while a transaction needs more than `self`: `all` pages together, at most half of them of transactions.
    /// Never less than `self`.
    pub(crate) fn grown(self, all: usize) -> Room {
        if self.kept == 0 || all <= self.all {
            return self;
        }
        let kept = u32::try_from(all - all / 4).unwrap_or(u32::MAX).min(PolicySpec::FRAMES_MAX);
        Room { kept: kept.max(self.kept), uncommitted: self.uncommitted.max(all / 2), all }
    }
}

/// The cached pages of all databases, under keys that are unique to each database.
struct Kept {
    pages: FastMap<PageNo, PageBuf>,
    /// `None` if nothing is cached.
    policy: Option<Box<dyn Policy>>,
    room: Room,
    effects: Vec<Effect>,
    /// Keys in the order of insertion, including some of evicted pages.
    order: VecDeque<PageNo>,
    databases: BTreeSet<u64>,
}

impl Memory {
    /// Memory with the limits `ordinary`, and with `bulk` while a transaction outgrows them. `bulk` uses at most half of the
    /// free pages of the machine.
    pub(crate) fn new(ordinary: Room, bulk: Room, free_pages: fn() -> usize) -> Memory {
        let (pages, order) = (FastMap::default(), VecDeque::new());
        let (effects, databases) = (Vec::new(), BTreeSet::new());
        let policy = policy_of(ordinary.kept);
        let kept = Kept { pages, policy, room: ordinary, effects, order, databases };
        let (uncommitted, bulks) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Memory { kept: Mutex::new(kept), uncommitted, bulks, ordinary, bulk, free_pages }
    }

    /// Whether any pages are cached.
    pub(crate) fn keeps_pages(&self) -> bool {
        self.ordinary.kept > 0
    }

    /// Maximum number of cached pages, as long as no transaction needs the room.
    pub(crate) fn kept_max(&self) -> usize {
        self.ordinary.kept as usize
    }

    /// Evicts the pages that were inserted first, if there are too many beside those of transactions.
    fn make_room(&self, kept: &mut Kept) {
        let room = kept.room.all.saturating_sub(self.uncommitted.load(Ordering::Relaxed));
        while kept.pages.len() > room
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.forget(oldest);
        }
    }

    /// Gives transactions more room until the returned value is dropped.
    fn grow(self: &Arc<Self>) -> Bulk {
        let mut kept = lock(&self.kept);
        if self.bulks.fetch_add(1, Ordering::Relaxed) == 0 {
            let all = self.bulk.all.min((self.free_pages)() / 2);
            kept.set_room(self.ordinary.grown(all));
        }
        Bulk(Arc::clone(self))
    }

    /// The part of one more database.
    pub(crate) fn join(self: &Arc<Self>) -> Part {
        let databases = &mut lock(&self.kept).databases;
        let free = databases.iter().zip(0..).find(|(taken, number)| **taken != *number);
        let database = free.map_or(databases.len() as u64, |(_, number)| number);
        databases.insert(database);
        Part { memory: Arc::clone(self), database }
    }

    /// The share of one more connection.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { memory: Arc::clone(self), pages: 0, bulk: None }
    }
}

/// A policy for this number of pages.
fn policy_of(frames: u32) -> Option<Box<dyn Policy>> {
    let workload = Workload { pages_end: u64::MAX, future: &[] };
    let build = || PolicySpec::parse(POLICY)?.build(frames, workload);
    (frames > 0).then(|| build().expect("a built-in policy with a valid number of frames"))
}

/// More room for transactions.
struct Bulk(Arc<Memory>);

impl Drop for Bulk {
    fn drop(&mut self) {
        let Bulk(memory) = self;
        let mut kept = lock(&memory.kept);
        if memory.bulks.fetch_sub(1, Ordering::Relaxed) == 1 {
            kept.set_room(memory.ordinary);
            memory.make_room(&mut kept);
        }
    }
}

impl Kept {
    /// Changes the limits. The pages that were inserted last stay.
    fn set_room(&mut self, room: Room) {
        if room == self.room {
            return;
        }
        self.room = room;
        self.policy = policy_of(room.kept);
        // A page that was evicted and inserted again has two entries in `order`.
        let mut known = BTreeSet::new();
        let newest_first = std::mem::take(&mut self.order).into_iter().rev();
        let pages = &mut self.pages;
        let mut order: VecDeque<PageNo> =
            newest_first.filter(|key| pages.contains_key(key) && known.insert(*key)).collect();
        for gone in order.split_off(order.len().min(room.kept as usize)) {
            pages.remove(&gone);
        }
        for key in order.into_iter().rev() {
            self.order.push_back(key);
            self.used(key);
        }
    }

    fn insert(&mut self, key: PageNo, content: PageBuf) {
        let Kept { pages, order, .. } = self;
        if pages.insert(key, content).is_none() {
            order.push_back(key);
        }
        if order.len() > 2 * pages.len() + GONE_MAX {
            order.retain(|key| pages.contains_key(key));
        }
    }

    fn used(&mut self, key: PageNo) {
        let Some(policy) = &mut self.policy else { return };
        policy.access(Request::new(key, false), &mut self.effects);
        for effect in self.effects.drain(..).filter(|effect| effect.leaves()) {
            self.pages.remove(&effect.page());
        }
    }

    fn forget(&mut self, key: PageNo) {
        if let Some(policy) = &mut self.policy
            && self.pages.remove(&key).is_some()
        {
            policy.forget(key);
        }
    }
}

/// The pages of one database; dropping this evicts them.
pub(crate) struct Part {
    memory: Arc<Memory>,
    database: u64,
}

impl Part {
    /// The shared memory of which this is a part.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    fn key(&self, page: PageNo) -> PageNo {
        debug_assert!(page.0 < 1 << PAGE_BITS, "{page} is of another database");
        PageNo(self.database << PAGE_BITS | page.0)
    }

    /// The content of `page`, if it is cached.
    pub(crate) fn get(&self, page: PageNo) -> Option<PageBuf> {
        let key = self.key(page);
        let mut kept = lock(&self.memory.kept);
        let content = kept.pages.get(&key)?.clone();
        kept.used(key);
        Some(content)
    }

    /// The content of `page`, if it is cached. This does not count as a use of the page.
    pub(crate) fn peek(&self, page: PageNo) -> Option<PageBuf> {
        lock(&self.memory.kept).pages.get(&self.key(page)).cloned()
    }

    /// Whether `page` is cached. This does not count as a use of the page.
    pub(crate) fn contains(&self, page: PageNo) -> bool {
        lock(&self.memory.kept).pages.contains_key(&self.key(page))
    }

    /// Caches `content`, and may evict another page of any database.
    pub(crate) fn put(&self, page: PageNo, content: PageBuf) {
        if self.memory.keeps_pages() {
            let key = self.key(page);
            let mut kept = lock(&self.memory.kept);
            kept.insert(key, content);
            kept.used(key);
            self.memory.make_room(&mut kept);
        }
    }

    /// Drops `page`.
    pub(crate) fn forget(&self, page: PageNo) {
        lock(&self.memory.kept).forget(self.key(page));
    }

    /// Drops all pages of `range`.
    pub(crate) fn forget_range(&self, range: PageRange) {
        let end = range.first.0.saturating_add(range.pages).min((1 << PAGE_BITS) - 1);
        let keys = self.key(range.first)..self.key(PageNo(end));
        let kept = &mut *lock(&self.memory.kept);
        if keys.end.0 - keys.start.0 <= kept.pages.len() as u64 {
            (keys.start.0..keys.end.0).for_each(|key| kept.forget(PageNo(key)));
        } else {
            let of_range = kept.pages.keys().copied().filter(|key| keys.contains(key));
            // Pages are dropped in ascending order, so that the order of the map does not matter.
            let of_range = of_range.collect::<BTreeSet<_>>();
            of_range.into_iter().for_each(|key| kept.forget(key));
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.forget_range(PageRange::new(PageNo(0), u64::MAX));
        lock(&self.memory.kept).databases.remove(&self.database);
    }
}

/// Pages of one connection's transaction that exist only in memory.
pub(crate) struct Share {
    memory: Arc<Memory>,
    pages: usize,
    /// Present if the transaction needed more than the ordinary room for transactions.
    bulk: Option<Bulk>,
}

impl Share {
    /// Sets the transaction's number of pages. With 0 it gives its additional room back.
    pub(crate) fn set(&mut self, pages: usize) {
        let uncommitted = &self.memory.uncommitted;
        uncommitted.fetch_add(pages, Ordering::Relaxed);
        let before = std::mem::replace(&mut self.pages, pages);
        uncommitted.fetch_sub(before, Ordering::Relaxed);
        if pages > before {
            self.memory.make_room(&mut lock(&self.memory.kept));
        }
        if pages == 0 {
            self.bulk = None;
        }
    }

    /// Whether the transaction must move pages to the volume: it has more than its guaranteed minimum, and all transactions
    /// together have more than their room. Before this returns true, the room is enlarged if possible.
    pub(crate) fn must_shrink(&mut self) -> bool {
        if self.is_too_large() && self.bulk.is_none() {
            self.bulk = Some(self.memory.grow());
        }
        self.is_too_large()
    }

    fn is_too_large(&self) -> bool {
        let all = self.memory.uncommitted.load(Ordering::Relaxed);
        let uncommitted_max = match self.memory.bulks.load(Ordering::Relaxed) {
            0 => self.memory.ordinary.uncommitted,
            _ => lock(&self.memory.kept).room.uncommitted,
        };
        all > uncommitted_max && self.pages > uncommitted_max.min(MEMORY_PAGES_MIN)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
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

    fn memory_of(kept: u32, uncommitted: usize) -> Arc<Memory> {
        let room = Room::new(kept, uncommitted);
        Arc::new(Memory::new(room, room, || usize::MAX))
    }

    /// While a transaction is partly on the volume, there is more room for all pages; afterwards there is as much as before, for
    /// the pages that were inserted last.
    #[test]
    fn a_large_transaction_has_more_room_until_it_ends() {
        let ordinary = Room::new(100, 200);
        let free = || 1600;
        let memory = Arc::new(Memory::new(ordinary, ordinary.grown(1000), free));
        let (part, mut share) = (memory.join(), memory.share());
        let kept = || lock(&memory.kept).pages.len();
        let fill = || (0..2000).for_each(|page| part.put(PageNo(page), content(page)));
        fill();
        assert!((90..=100).contains(&kept()), "{}", kept());
        let (first, second) = (memory.grow(), memory.grow());
        assert!((90..=100).contains(&kept()), "those stay: {}", kept());
        fill();
        // Half of the free memory.
        assert!((550..=600).contains(&kept()), "{}", kept());
        share.set(400);
        assert!(!share.is_too_large() && kept() == 400, "{}", kept());
        drop(first);
        assert_eq!(kept(), 400, "there is another one");
        share.set(0);
        part.put(PageNo(5000), content(1));
        drop(second);
        assert!((90..=100).contains(&kept()), "{}", kept());
        assert_eq!(part.get(PageNo(5000)), Some(content(1)), "the last one stays");
        // As before.
        fill();
        assert!((90..=100).contains(&kept()), "{}", kept());
        share.set(2 * MEMORY_PAGES_MIN);
        assert!(share.is_too_large());
        let none = Arc::new(Memory::new(ordinary, ordinary.grown(1000), || 0));
        let _bulk = none.grow();
        assert_eq!(lock(&none.kept).room, ordinary, "never less than before");
    }

    #[test]
    fn databases_have_their_own_pages_and_one_limit() {
        for (seed, pages_max) in [(1, 0), (2, 1), (3, 7), (4, 1000)] {
            let (mut rng, mut model) = (Rng::split(seed, "memory"), BTreeMap::new());
            let memory = memory_of(pages_max, 0);
            let mut parts: Vec<Part> = (0..3).map(|_| memory.join()).collect();
            let mut hits = 0;
            for step in 0..20_000 {
                let (number, page) = (rng.below(3), PageNo(rng.below(100)));
                let part = &parts[number as usize];
                match rng.below(10) {
                    0..4 => {
                        part.put(page, content(step));
                        model.insert((number, page), content(step));
                    }
                    4 => {
                        part.forget(page);
                        model.remove(&(number, page));
                    }
                    5 => {
                        let range = PageRange::new(page, 1 + rng.below(30));
                        part.forget_range(range);
                        range.iter().for_each(|page| _ = model.remove(&(number, page)));
                    }
                    6 if rng.below(100) == 0 => {
                        // Another database takes its place and its number.
                        drop(parts.remove(number as usize));
                        parts.insert(number as usize, memory.join());
                        assert_eq!(parts[number as usize].database, number);
                        model.retain(|(of, _), _| *of != number);
                    }
                    _ => {
                        let found = part.get(page);
                        hits += u32::from(found.is_some());
                        let put = model.get(&(number, page));
                        assert!(found.is_none() || found.as_ref() == put);
                    }
                }
                assert!(lock(&memory.kept).pages.len() <= pages_max as usize);
            }
            assert_eq!(hits > 20, pages_max > 0, "{pages_max}: {hits}");
            drop(parts);
            assert!(lock(&memory.kept).pages.is_empty());
        }
    }

    #[test]
    fn what_transactions_hold_is_taken_from_what_is_kept() {
        let memory = memory_of(300, 400);
        let (part, mut share) = (memory.join(), memory.share());
        let kept = || lock(&memory.kept).pages.len();
        (0..300).for_each(|page| part.put(PageNo(page), content(page)));
        assert!(kept() > 200);
        for pages in (0..=400).step_by(10) {
            share.set(pages);
            assert!(kept() + pages <= 400, "{pages}");
            part.put(PageNo(pages as u64), content(1));
            assert!(kept() + pages <= 400, "{pages}");
        }
        share.set(0);
        (0..300).for_each(|page| part.put(PageNo(page), content(page)));
        assert!(kept() > 200, "and comes back");
    }

    #[test]
    fn transactions_share_what_they_may_hold_and_each_has_some() {
        let memory = memory_of(0, 3 * MEMORY_PAGES_MIN);
        let (mut first, mut second) = (memory.share(), memory.share());
        first.set(3 * MEMORY_PAGES_MIN);
        assert!(!first.is_too_large());
        second.set(MEMORY_PAGES_MIN);
        assert!(first.is_too_large() && !second.is_too_large());
        second.set(MEMORY_PAGES_MIN + 1);
        assert!(second.is_too_large());
        drop(first);
        assert!(!second.is_too_large());
    }
}
