//! The contract of a replacement policy, and what is counted while one runs.
use tantalum_base::PageNo;

/// One page request, packed into 8 bytes so that a trace in memory streams well.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Request(u64);

impl Request {
    /// The highest page number a request can name: the key of a frame keeps two bits beside it.
    pub const PAGE_MAX: u64 = (1 << 62) - 1;

    /// A request for `page`, to update it where `write`.
    #[inline]
    pub const fn new(page: PageNo, write: bool) -> Self {
        assert!(page.0 <= Request::PAGE_MAX, "page number over 62 bits");
        Request(page.0 << 1 | write as u64)
    }

    /// The page asked for.
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

/// A page that left the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Evicted {
    /// The page.
    pub page: PageNo,
    /// Whether it was updated since it came in: it must be written back.
    pub dirty: bool,
}

/// A replacement policy over a fixed number of frames, with write-allocate and write-back: a
/// missed page always comes in, read or written, and an update marks it dirty until it is evicted.
pub trait Policy: Send {
    /// Serves one request. Returns whether the page was cached; on a miss appends the pages that
    /// had to go to `evicted` (none while there are free frames; a policy may evict several).
    fn access(&mut self, request: Request, evicted: &mut Vec<Evicted>) -> bool;

    /// Frames, all told.
    fn capacity_pages(&self) -> u32;

    /// Dirty pages in the cache now. Walks all frames.
    fn dirty_pages(&self) -> u32;

    /// Serves all of `requests` and counts. Here so that a whole trace costs one dynamic call.
    fn run(&mut self, requests: &[Request], tally: &mut Tally) {
        let mut evicted = Vec::with_capacity(64);
        for &request in requests {
            if !self.access(request, &mut evicted) {
                tally.write_misses += u64::from(request.is_write());
                tally.misses += 1;
                tally.evictions += evicted.len() as u64;
                tally.write_backs += evicted.drain(..).filter(|page| page.dirty).count() as u64;
            }
        }
        tally.requests += requests.len() as u64;
    }

    /// Asserts every invariant of the structure.
    #[cfg(test)]
    fn validate(&self);
}

/// What a run counted.
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
    /// Pages that left it dirty.
    pub write_backs: u64,
}

impl Tally {
    /// The misses that were reads.
    pub fn read_misses(&self) -> u64 {
        self.misses - self.write_misses
    }

    /// Share of the requests that hit; 0 where there were none.
    pub fn hit_ratio(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { 1.0 - self.misses as f64 / self.requests as f64 }
    }
}

/// What a frame holds, in one word: page, a mark for the policy's use, dirtiness.
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

    /// Makes the page dirty where `request` is a write.
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

    #[inline]
    pub(crate) fn evicted(self) -> Evicted {
        Evicted { page: self.page(), dirty: self.is_dirty() }
    }
}
