//! Transaction metadata in NVRAM (TxCache, figure 2): the state that survives a power cut.
//!
//! A header is at most 64 bytes, one cache line, and is stored atomically; so is an entry of the
//! mapping. A page in a frame is not: a cut may tear it, so a frame is filled before anything
//! points to it.
use crate::nvram::{Nvram, NvramCell, NvramSlab};
use tantalum_base::{PageNo, PageRange, Payload, Result, TxId};

use super::options::TxCacheOptions;

/// No header.
pub(super) const NONE: u32 = u32::MAX;

const HEADER_BYTES: u64 = 64;
const MAP_ENTRY_BYTES: u64 = 4;
const TRIM_BYTES: u64 = 16;

/// The location of a page version (page mapping).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePlace {
    /// In this frame of the page cache.
    Frame(u32),
    /// In this page of the extended cache.
    Extended(u32),
}

/// Page Header: one version of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageHeader {
    /// The page.
    pub page: PageNo,
    /// Number of the Tx Header that it belongs to; `u32::MAX` if it needs none.
    pub transaction: u32,
    /// Next Page Header in the Tx Chain; `u32::MAX` at the end.
    pub next: u32,
    /// Page Header of the version that was the last committed one when this one was written, or
    /// committed (Version Chain); `u32::MAX` if that is not in the cache.
    pub previous: u32,
    /// The location of the content.
    pub place: PagePlace,
}

/// The flags of a Tx Header (section III-C).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags {
    /// FLAG_F: the header is free.
    pub free: bool,
    /// FLAG_C: the transaction is committed.
    pub committed: bool,
    /// FLAG_M: its pages are in the mapping.
    pub mapped: bool,
    /// FLAG_WB: its pages are written back.
    pub written_back: bool,
}

/// CacheState of a Tx Header (figure 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxState {
    /// Can be used by the next `begin`. An abort leads here at once: its pages become free as soon
    /// as no running transaction and no mapping entry leads to them.
    Free,
    /// Begun.
    Running,
    /// Committed; pages may be written back once FLAG_M is set.
    Commit,
    /// All pages are written back.
    Checkpoint,
}

/// Tx Header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxHeader {
    /// The transaction's id.
    pub id: TxId,
    /// First Page Header of the Tx Chain; `u32::MAX` if the transaction has written nothing.
    pub first: u32,
    /// Its state.
    pub flags: Flags,
}

impl TxHeader {
    pub(super) const FREE: TxHeader = TxHeader {
        id: TxId(0),
        first: NONE,
        flags: Flags { free: true, committed: false, mapped: false, written_back: false },
    };

    /// The state given by the flags.
    pub fn state(&self) -> TxState {
        match self.flags {
            Flags { free: true, .. } => TxState::Free,
            Flags { written_back: true, .. } => TxState::Checkpoint,
            Flags { committed: true, .. } => TxState::Commit,
            _ => TxState::Running,
        }
    }
}

/// The complete NVRAM state of a TxCache. Clones share the same memory; keep one across a power
/// cut.
pub struct TxNvram<P> {
    pub(super) region: Nvram,
    /// Tx Headers; the last one is for writes outside of transactions.
    pub(super) transactions: NvramSlab<TxHeader>,
    /// Page Headers, one for each page that fits in the frames and in the extended cache.
    pub(super) headers: NvramSlab<PageHeader>,
    pub(super) frames: NvramSlab<P>,
    /// The part of the mapping table that leads into the cache: the Page Header of each page's
    /// committed version. A page without an entry is where the FTL's mapping points.
    pub(super) mapping: NvramSlab<u32>,
    /// A trim that has begun to take effect.
    pub(super) trim: NvramCell<Option<PageRange>>,
}

impl<P> Clone for TxNvram<P> {
    fn clone(&self) -> Self {
        TxNvram {
            region: self.region.clone(),
            transactions: self.transactions.clone(),
            headers: self.headers.clone(),
            frames: self.frames.clone(),
            mapping: self.mapping.clone(),
            trim: self.trim.clone(),
        }
    }
}

impl<P: Payload> TxNvram<P> {
    /// NVRAM for a device of `pages` pages, in its factory state.
    pub(super) fn new(options: &TxCacheOptions, pages: u32) -> Result<Self> {
        let page_headers = options.cache_pages + options.extended_pages;
        let tx_headers = options.headers + 1;
        let bytes = u64::from(page_headers + tx_headers) * HEADER_BYTES
            + u64::from(options.cache_pages) * tantalum_base::PAGE_BYTES as u64
            + u64::from(pages) * MAP_ENTRY_BYTES
            + TRIM_BYTES;
        let region = Nvram::new(bytes);
        let transactions = region.slab(tx_headers, HEADER_BYTES)?;
        (0..tx_headers).for_each(|number| _ = transactions.put(number, TxHeader::FREE));
        Ok(TxNvram {
            transactions,
            headers: region.slab(page_headers, HEADER_BYTES)?,
            frames: region.slab(options.cache_pages, tantalum_base::PAGE_BYTES as u64)?,
            mapping: region.slab(pages, MAP_ENTRY_BYTES)?,
            trim: region.cell(TRIM_BYTES, None)?,
            region,
        })
    }

    /// Whether this NVRAM belongs to a device with these options.
    pub(super) fn fits(&self, options: &TxCacheOptions, pages: u32) -> bool {
        self.transactions.slots() == options.headers + 1
            && self.headers.slots() == options.cache_pages + options.extended_pages
            && self.frames.slots() == options.cache_pages
            && self.mapping.slots() == pages
    }

    /// The region, with which stores can be counted and cut.
    pub fn region(&self) -> &Nvram {
        &self.region
    }

    /// Tx Header `number`.
    pub fn tx_header(&self, number: u32) -> TxHeader {
        self.transactions.get(number).expect("every Tx Header was stored when the NVRAM was made")
    }

    /// Number of Tx Headers.
    pub fn tx_headers(&self) -> u32 {
        self.transactions.slots()
    }

    /// Page Header `number`, which must have been stored before.
    pub(super) fn header(&self, number: u32) -> PageHeader {
        self.headers.get(number).expect("what is pointed to was stored before")
    }

    /// The Page Header of the committed version of `page`, if it is in the cache.
    #[inline]
    pub(super) fn mapped(&self, page: PageNo) -> Option<u32> {
        self.mapping.get(page.0 as u32)
    }

    /// The Page Headers of a Tx Chain, newest first.
    pub(super) fn chain(&self, first: u32) -> Vec<u32> {
        let mut chain = Vec::new();
        let mut at = first;
        while at != NONE {
            chain.push(at);
            assert!(chain.len() <= self.headers.slots() as usize, "a Tx Chain has an end");
            at = self.header(at).next;
        }
        chain
    }

    /// Changes the flags of Tx Header `number`: one store.
    pub(super) fn flag(&self, number: u32, change: impl FnOnce(&mut Flags)) {
        let mut header = self.tx_header(number);
        change(&mut header.flags);
        self.transactions.put(number, header);
    }
}
