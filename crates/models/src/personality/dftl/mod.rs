//! DFTL: page mapping with the map on flash and part of it cached.
//!
//! Map pages hold 1024 entries each; the global translation directory, in memory, has their places.
//! An entry that is not cached is read from flash. When a dirty one is evicted, all dirty entries
//! of its map page are written with it (lazy, batched updates). Data and map have separate blocks;
//! cleaning chooses the one with the fewest valid pages.
//!
//! Source: Gupta, Kim and Urgaonkar, "DFTL: a flash translation layer employing demand-based
//! selective caching of page-level address mappings", ASPLOS 2009. Our additions: the order in
//! which data and map blocks are cleaned, so that cleaning always ends (`cleaning`), and recovery,
//! which the paper does not describe (`recovery`).
mod cleaning;
mod cmt;
mod recovery;

use std::collections::BTreeMap;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, Payload, Result, ZoneNo};
use tantalum_media::ZoneMedia;

use super::blocks::{Blocks, Place, Role};
use cmt::Cmt;

/// Entries per map page: 4 bytes each.
pub(super) const ENTRIES: u64 = (PAGE_BYTES / 4) as u64;

/// Number of blocks beyond those for logical pages and map: enough that cleaning always ends.
pub(super) const SPARE_BLOCKS: u32 = 6;

/// A physical page: block number times pages per block, plus offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slot(u32);

impl Slot {
    /// The page was never written.
    const NONE: Slot = Slot(u32::MAX);
}

/// The layer.
pub(super) struct Dftl<M: ZoneMedia> {
    pub blocks: Blocks<M>,
    cmt: Cmt,
    /// The place of each map page.
    directory: Vec<Option<Place>>,
    /// For each slot, whether its page is valid.
    valid: Vec<bool>,
    /// For each block, its number of valid slots.
    live: Vec<u32>,
    data: Option<ZoneNo>,
    map: Option<ZoneNo>,
    /// The reason why the map is no longer updated, if so. The current entries are then the cached
    /// ones and those of the map pages in the directory, and both stay unchanged.
    pub failed: Option<Error>,
}

impl<M: ZoneMedia> Dftl<M> {
    /// An empty layer of `pages` pages with `cmt` cached entries.
    pub fn new(blocks: Blocks<M>, pages: u64, cmt: u32) -> Self {
        let zones = blocks.numbered().count();
        Dftl {
            cmt: Cmt::new(cmt),
            directory: vec![None; pages.div_ceil(ENTRIES) as usize],
            valid: vec![false; zones * blocks.pages_per_block as usize],
            live: vec![0; zones],
            data: None,
            map: None,
            failed: None,
            blocks,
        }
    }

    /// Reads one page. This may require cleaning and writes of the map. If these fail the page is
    /// still read, and [`failed`](Self::failed) holds the reason why nothing is changed any more.
    pub async fn read(&mut self, page: PageNo) -> Result<M::Page> {
        let slot = match self.cached(page).await {
            Ok(slot) => slot,
            Err(error) if is_decay(&error) => return Err(error),
            Err(error) => {
                self.failed.get_or_insert(error);
                self.find(page).await?
            }
        };
        match slot {
            Slot::NONE => Ok(M::Page::zero()),
            slot => self.blocks.read(self.place(slot)).await,
        }
    }

    /// The entry of `page`, which is then cached.
    async fn cached(&mut self, page: PageNo) -> Result<Slot> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.make_room().await?;
        self.lookup(page).await
    }

    /// The entry of `page`; changes nothing.
    async fn find(&mut self, page: PageNo) -> Result<Slot> {
        match self.cmt.get(page) {
            Some(slot) => Ok(slot),
            None => self.read_entry(page).await,
        }
    }

    /// The entry of `page` on flash. It is current if no entry is cached.
    async fn read_entry(&mut self, page: PageNo) -> Result<Slot> {
        match self.directory[(page.0 / ENTRIES) as usize] {
            None => Ok(Slot::NONE),
            Some(place) => Ok(entry(&self.blocks.read_map(place).await?, page)),
        }
    }

    /// Whether `page` was ever written.
    pub async fn holds(&mut self, page: PageNo) -> Result<bool> {
        self.make_room().await?;
        Ok(self.lookup(page).await? != Slot::NONE)
    }

    /// Writes one page.
    pub async fn write(&mut self, page: PageNo, content: &M::Page) -> Result<()> {
        self.make_room().await?;
        let old = self.lookup(page).await?;
        let block = self.blocks.with_room(&mut self.data, Role::Data).await?;
        let place = self.blocks.write(block, page, content).await?;
        self.validate(place);
        if old != Slot::NONE {
            self.invalidate(self.place(old));
        }
        let slot = self.slot(place);
        self.cmt.set(page, slot);
        Ok(())
    }

    /// The entry of `page`, which is then cached.
    async fn lookup(&mut self, page: PageNo) -> Result<Slot> {
        if let Some(slot) = self.cmt.get(page) {
            return Ok(slot);
        }
        while self.cmt.is_full() {
            let Some((victim, dirty)) = self.cmt.victim() else { break };
            if dirty {
                self.write_back(victim.0 / ENTRIES, BTreeMap::new()).await?;
            }
            self.cmt.remove(victim);
        }
        let slot = self.read_entry(page).await?;
        self.cmt.insert(page, slot);
        Ok(slot)
    }

    /// Writes a new version of a map page, with `changes` and all dirty cached entries that belong
    /// to it.
    async fn write_back(&mut self, number: u64, mut changes: BTreeMap<PageNo, Slot>) -> Result<()> {
        let old = self.directory[number as usize];
        let mut page = match old {
            Some(place) => self.blocks.read_map(place).await?,
            None => PageBuf::copy_from(&[0xff; PAGE_BYTES]),
        };
        let block = self.blocks.with_room(&mut self.map, Role::Map).await?;
        let first = PageNo(number * ENTRIES);
        let end = PageNo(first.0 + ENTRIES);
        changes.extend(self.cmt.dirty(first, end));
        let bytes = page.make_mut();
        for (page, slot) in changes {
            let at = (page.0 % ENTRIES) as usize * 4;
            bytes[at..at + 4].copy_from_slice(&slot.0.to_le_bytes());
        }
        let place = self.blocks.write_map(block, number, page).await?;
        // Only now: if the write fails, the older map page stays current.
        self.cmt.set_clean(first, end);
        self.validate(place);
        if let Some(old) = old {
            self.invalidate(old);
        }
        self.directory[number as usize] = Some(place);
        Ok(())
    }

    fn slot(&self, place: Place) -> Slot {
        Slot(place.block.0 * self.blocks.pages_per_block + place.offset)
    }

    fn place(&self, slot: Slot) -> Place {
        let pages = self.blocks.pages_per_block;
        Place { block: ZoneNo(slot.0 / pages), offset: slot.0 % pages }
    }

    fn validate(&mut self, place: Place) {
        let slot = self.slot(place).0 as usize;
        debug_assert!(!self.valid[slot]);
        self.valid[slot] = true;
        self.live[place.block.index()] += 1;
    }

    fn invalidate(&mut self, place: Place) {
        let slot = self.slot(place).0 as usize;
        debug_assert!(self.valid[slot]);
        self.valid[slot] = false;
        self.live[place.block.index()] -= 1;
    }
}

/// Whether a page could not be read because of decay.
pub(super) fn is_decay(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Uncorrectable | ErrorKind::Checksum)
}

/// The entry of `page` in its map page.
fn entry(map: &PageBuf, page: PageNo) -> Slot {
    let at = (page.0 % ENTRIES) as usize * 4;
    let mut word = [0; 4];
    word.copy_from_slice(&map[at..at + 4]);
    Slot(u32::from_le_bytes(word))
}
