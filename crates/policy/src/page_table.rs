//! Page to frame. Policies are generic over the table, so that its cost is theirs and nothing is
//! dispatched at run time.
use hashbrown::HashTable;
use tantalum_base::PageNo;

/// Stands for "no frame": frames are numbered from 1.
pub const NO_FRAME: u32 = 0;

/// Finds the frame of a cached page.
///
/// The pages themselves stand in the frames: `page_of` gives the page of a frame in use.
pub trait PageTable: Send {
    /// A table for at most `frames` pages, all numbered below `pages_end`.
    fn new(frames: u32, pages_end: u64) -> Self;

    /// The frame of `page`, or [`NO_FRAME`].
    fn find(&self, page: PageNo, page_of: impl Fn(u32) -> PageNo) -> u32;

    /// Notes that `frame`, whose page is already `page`, holds it. The page must not be there.
    fn insert(&mut self, page: PageNo, frame: u32, page_of: impl Fn(u32) -> PageNo);

    /// Forgets `page`, which is in `frame`.
    fn remove(&mut self, page: PageNo, frame: u32);

    /// Bytes of memory that the table takes.
    fn memory_bytes(&self) -> u64;
}

/// An array over all pages of the address space: 4 bytes a page, one load a lookup.
#[derive(Debug)]
pub struct DirectTable(Vec<u32>);

impl DirectTable {
    /// Address spaces up to this many pages are worth an array (64 MiB).
    pub const PAGES_MAX: u64 = 1 << 24;
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
    fn insert(&mut self, page: PageNo, frame: u32, _page_of: impl Fn(u32) -> PageNo) {
        self.0[page.index()] = frame;
    }

    #[inline]
    fn remove(&mut self, page: PageNo, _frame: u32) {
        self.0[page.index()] = NO_FRAME;
    }

    fn memory_bytes(&self) -> u64 {
        (self.0.len() * size_of::<u32>()) as u64
    }
}

/// An open-addressing hash table of frame numbers: any page number, 5 to 12 bytes a cached page.
#[derive(Debug)]
pub struct SparseTable(HashTable<u32>);

impl PageTable for SparseTable {
    fn new(frames: u32, _pages_end: u64) -> Self {
        SparseTable(HashTable::with_capacity(frames as usize))
    }

    #[inline]
    fn find(&self, page: PageNo, page_of: impl Fn(u32) -> PageNo) -> u32 {
        let found = self.0.find(hash(page), |&frame| page_of(frame) == page);
        found.copied().unwrap_or(NO_FRAME)
    }

    #[inline]
    fn insert(&mut self, page: PageNo, frame: u32, page_of: impl Fn(u32) -> PageNo) {
        self.0.insert_unique(hash(page), frame, |&frame| hash(page_of(frame)));
    }

    #[inline]
    fn remove(&mut self, page: PageNo, frame: u32) {
        if let Ok(entry) = self.0.find_entry(hash(page), |&held| held == frame) {
            entry.remove();
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.0.allocation_size() as u64
    }
}

/// Multiply and fold; the table takes its place from the low bits and its tag from the high ones.
#[inline]
fn hash(page: PageNo) -> u64 {
    let product = u128::from(page.0 ^ 0x9e37_79b9_7f4a_7c15) * 0xe703_7ed1_a0b4_28db;
    (product as u64) ^ ((product >> 64) as u64)
}
