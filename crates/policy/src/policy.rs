//! The contract of a replacement policy, and the counters of a run.
use tantalum_base::PageNo;

/// One page request, packed into 8 bytes so that a trace in memory can be read fast.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Request(u64);

impl Request {
    /// The highest page number of a request: the key of a frame has two more bits.
    pub const PAGE_MAX: u64 = (1 << 62) - 1;

    /// A request for `page`; if `write`, it updates the page.
    #[inline]
    pub const fn new(page: PageNo, write: bool) -> Self {
        assert!(page.0 <= Request::PAGE_MAX, "page number over 62 bits");
        Request(page.0 << 1 | write as u64)
    }

    /// The requested page.
    #[inline]
    pub const fn page(self) -> PageNo {
        PageNo(self.0 >> 1)
    }

    /// Whether the request updates the page.
    #[inline]
    pub const fn is_write(self) -> bool {
        self.0 & 1 == 1
    }
}

/// An effect of a request on another page. Effects must be carried out in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Effect {
    /// The page left the cache.
    Evicted {
        /// The page.
        page: PageNo,
        /// Whether it was updated since it came in or was last written; if so, it must be written
        /// back.
        dirty: bool,
    },
    /// The page was dirty and must be written back now; it stays in the cache, clean.
    Cleaned {
        /// The page.
        page: PageNo,
    },
}

impl Effect {
    /// The page.
    #[inline]
    pub const fn page(self) -> PageNo {
        match self {
            Effect::Evicted { page, .. } | Effect::Cleaned { page } => page,
        }
    }

    /// Whether the page must be written back.
    #[inline]
    pub const fn writes(self) -> bool {
        matches!(self, Effect::Evicted { dirty: true, .. } | Effect::Cleaned { .. })
    }

    /// Whether the page left the cache.
    #[inline]
    pub const fn leaves(self) -> bool {
        matches!(self, Effect::Evicted { .. })
    }
}

/// A kind of physical operation, whose cost is reported to policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Physical {
    /// A page was fetched.
    Read,
    /// A page was written back.
    Write,
}

/// A replacement policy over a fixed number of frames, with write-allocate and write-back: a
/// missed page always comes in, read or written, and an update marks it dirty until it is written
/// back.
///
/// The simulator and the buffer pool drive the same objects. A pool calls [`access`](Self::access)
/// once per fix and carries out the effects. Pages that are pinned while they are evicted, or on
/// their way to the device, take frames that the policy does not count. So its decisions depend
/// neither on pins nor on the speed of a device.
pub trait Policy: Send {
    /// Serves one request. Returns whether the page was cached. Appends to `effects` the operations
    /// on other pages (no page leaves while there are free frames; several may leave at once).
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool;

    /// Whether `page` is cached.
    fn contains(&self, page: PageNo) -> bool;

    /// Appends up to `pages_max` dirty pages that should be written back ahead of their eviction,
    /// in the order in which the policy would write them. Changes nothing: pages that are really
    /// written are reported by [`cleaned`](Self::cleaned).
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>);

    /// `page` was written back and stays. Does nothing if it is not cached, or is clean.
    fn cleaned(&mut self, page: PageNo);

    /// Drops `page` without writing it back, for example after a trim or a failed read. Returns
    /// whether it was cached.
    fn forget(&mut self, page: PageNo) -> bool;

    /// A physical operation on one page took `time_ns`. For policies that weigh the costs of reads
    /// and writes.
    fn measured(&mut self, _operation: Physical, _time_ns: u64) {}

    /// Internal figures beyond the counts of a run, such as the sizes of adaptive lists. The names
    /// and their order never change, but figures not known yet are left out.
    fn gauges(&self) -> Vec<Gauge> {
        Vec::new()
    }

    /// Number of pages that the searches of the published algorithm would have looked at so far: its
    /// processor cost beyond the constant time of a request. 0 if a victim needs no search, for example if
    /// it is the end of a list.
    fn search_steps(&self) -> u64 {
        0
    }

    /// Total number of frames.
    fn capacity_pages(&self) -> u32;

    /// Number of dirty pages in the cache. May walk all frames.
    fn dirty_pages(&self) -> u32;

    /// Bytes of memory, including the page table.
    fn memory_bytes(&self) -> u64;

    /// Serves all of `requests` and counts the results. A method of the trait, so that a whole
    /// trace costs one dynamic call.
    fn run(&mut self, requests: &[Request], tally: &mut Tally) {
        let mut effects = Vec::with_capacity(64);
        for &request in requests {
            if !self.access(request, &mut effects) {
                tally.write_misses += u64::from(request.is_write());
                tally.misses += 1;
            }
            for effect in effects.drain(..) {
                tally.evictions += u64::from(effect.leaves());
                tally.write_backs += u64::from(effect.writes());
            }
        }
        tally.requests += requests.len() as u64;
    }

    /// Asserts every invariant of the structure.
    #[cfg(test)]
    fn validate(&self);
}

/// An internal figure of a policy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gauge {
    /// Its name, with the unit.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

impl Gauge {
    /// The figure `name` with `value`.
    pub const fn new(name: &'static str, value: f64) -> Self {
        Gauge { name, value }
    }
}

/// The counters of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Requests served, reads and writes alike.
    pub requests: u64,
    /// Requests whose page was not cached.
    pub misses: u64,
    /// The misses that were writes.
    pub write_misses: u64,
    /// Pages that left the cache.
    pub evictions: u64,
    /// Pages written back, because they left dirty or were written along with one that did.
    pub write_backs: u64,
}

impl Tally {
    /// The misses that were reads.
    pub fn read_misses(&self) -> u64 {
        self.misses - self.write_misses
    }

    /// Share of the requests that hit; 0 if there were none.
    pub fn hit_ratio(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { 1.0 - self.misses as f64 / self.requests as f64 }
    }
}

/// The content of a frame in one word: page, a mark for the policy, and the dirty bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Key(u64);

impl Key {
    const DIRTY: u64 = 1;
    const MARK: u64 = 2;

    #[inline]
    pub(crate) fn new(request: Request) -> Self {
        Key(request.page().0 << 2 | u64::from(request.is_write()))
    }

    #[inline]
    pub(crate) fn page(self) -> PageNo {
        PageNo(self.0 >> 2)
    }

    #[inline]
    pub(crate) fn is_dirty(self) -> bool {
        self.0 & Key::DIRTY != 0
    }

    /// Makes the page dirty if `request` is a write.
    #[inline]
    pub(crate) fn touch(&mut self, request: Request) {
        self.0 |= u64::from(request.is_write());
    }

    #[inline]
    pub(crate) fn is_marked(self) -> bool {
        self.0 & Key::MARK != 0
    }

    #[inline]
    pub(crate) fn mark(&mut self) {
        self.0 |= Key::MARK;
    }

    #[inline]
    pub(crate) fn unmark(&mut self) {
        self.0 &= !Key::MARK;
    }

    /// Clears the dirty bit: the page was written back.
    #[inline]
    pub(crate) fn clean(&mut self) {
        self.0 &= !Key::DIRTY;
    }

    #[inline]
    pub(crate) fn evicted(self) -> Effect {
        Effect::Evicted { page: self.page(), dirty: self.is_dirty() }
    }
}
