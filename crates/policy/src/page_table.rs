//! Page tables: page number to frame. Policies are generic over the table, so that there is no
//! dynamic dispatch and each table's cost shows up in the policy.
use tantalum_base::PageNo;

/// Stands for "no frame": frames are numbered from 1.
pub const NO_FRAME: u32 = 0;

/// Finds the frame of a cached page.
///
/// The table does not store page numbers: `page_of` returns the page of a frame in use.
pub trait PageTable: Send {
    /// A table for at most `frames` pages, all numbered below `pages_end`.
    fn new(frames: u32, pages_end: u64) -> Self;

    /// The frame of `page`, or [`NO_FRAME`].
    fn find(&self, page: PageNo, page_of: impl Fn(u32) -> PageNo) -> u32;

    /// Records that `frame` holds `page`, which must not be in the table.
    fn insert(&mut self, page: PageNo, frame: u32);

    /// Removes `page`, which is in `frame`. Other pages may move within the table.
    fn remove(&mut self, page: PageNo, frame: u32, page_of: impl Fn(u32) -> PageNo);

    /// Bytes of memory that the table takes.
    fn memory_bytes(&self) -> u64;
}

/// An array over all pages of the address space: 4 bytes a page, one load a lookup.
#[derive(Debug)]
pub struct DirectTable(Vec<u32>);

impl DirectTable {
    /// Address spaces up to this many pages can have an array (64 MiB).
    pub const PAGES_MAX: u64 = 1 << 24;

    /// Whether an array over `pages_end` pages is worth its memory for `frames` frames: up to 16
    /// bytes a frame, which leaves LRU at 32 with its lists. Beyond that a hash table is used,
    /// which takes 8.
    pub fn is_worth_it(frames: u32, pages_end: u64) -> bool {
        pages_end <= DirectTable::PAGES_MAX && pages_end <= 4 * u64::from(frames)
    }
}

impl PageTable for DirectTable {
    fn new(_frames: u32, pages_end: u64) -> Self {
        assert!(pages_end <= DirectTable::PAGES_MAX, "{pages_end} pages need a hash table");
        DirectTable(vec![NO_FRAME; pages_end as usize])
    }

    #[inline]
    fn find(&self, page: PageNo, _page_of: impl Fn(u32) -> PageNo) -> u32 {
        self.0[page.index()]
    }

    #[inline]
    fn insert(&mut self, page: PageNo, frame: u32) {
        self.0[page.index()] = frame;
    }

    #[inline]
    fn remove(&mut self, page: PageNo, _frame: u32, _page_of: impl Fn(u32) -> PageNo) {
        self.0[page.index()] = NO_FRAME;
    }

    fn memory_bytes(&self) -> u64 {
        (self.0.len() * size_of::<u32>()) as u64
    }
}

/// An open-addressing hash table of frame numbers: any page number, 8 bytes a frame.
///
/// It has twice as many slots as frames. A search probes slot by slot from the page's hash on. A
/// slot stores a frame number and, in the remaining bits of 32, a tag from the hash: most slots of
/// other pages are skipped without a look at their frames. A removal leaves no tombstone: the
/// following pages move up.
#[derive(Debug)]
pub struct SparseTable {
    /// `tag << frame_bits | frame`; 0 is empty.
    slots: Vec<u32>,
    frame_bits: u32,
}

impl SparseTable {
    /// The slot at which the search for a page of this hash begins: the hash's high half, scaled to
    /// the slots.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        (((hash >> 32) * self.slots.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    #[inline]
    fn tag(&self, hash: u64) -> u32 {
        (hash as u32) << self.frame_bits
    }

    #[inline]
    fn frame(&self, slot: u32) -> u32 {
        slot & ((1 << self.frame_bits) - 1)
    }

    /// The number of slots from `from` to `to`, round the table.
    #[inline]
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.slots.len() - from }
    }
}

impl PageTable for SparseTable {
    fn new(frames: u32, _pages_end: u64) -> Self {
        assert!(frames < 1 << 31, "frame numbers have at most 31 bits");
        let frame_bits = u32::BITS - frames.leading_zeros();
        SparseTable { slots: vec![0; 2 * frames as usize + 2], frame_bits }
    }

    #[inline]
    fn find(&self, page: PageNo, page_of: impl Fn(u32) -> PageNo) -> u32 {
        let hash = hash(page);
        let tag = self.tag(hash);
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return NO_FRAME;
            }
            let frame = self.frame(slot);
            if slot ^ frame == tag && page_of(frame) == page {
                return frame;
            }
            at = self.after(at);
        }
    }

    #[inline]
    fn insert(&mut self, page: PageNo, frame: u32) {
        let hash = hash(page);
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            at = self.after(at);
        }
        self.slots[at] = self.tag(hash) | frame;
    }

    #[inline]
    fn remove(&mut self, page: PageNo, frame: u32, page_of: impl Fn(u32) -> PageNo) {
        let hash_of_page = hash(page);
        let slot = self.tag(hash_of_page) | frame;
        let mut hole = self.home(hash_of_page);
        while self.slots[hole] != slot {
            assert!(self.slots[hole] != 0, "a page that goes is in the table");
            hole = self.after(hole);
        }
        let mut at = hole;
        loop {
            at = self.after(at);
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let home = self.home(hash(page_of(self.frame(slot))));
            if self.distance(home, at) >= self.distance(hole, at) {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = 0;
    }

    fn memory_bytes(&self) -> u64 {
        (self.slots.len() * size_of::<u32>()) as u64
    }
}

/// Multiply and fold: every bit of the page number affects every bit of the hash.
#[inline]
fn hash(page: PageNo) -> u64 {
    let product = u128::from(page.0 ^ 0x9e37_79b9_7f4a_7c15) * 0xe703_7ed1_a0b4_28db;
    (product as u64) ^ ((product >> 64) as u64)
}
