//! Erase blocks as the personalities use them: a zone is a block, filled page by page in order.
//!
//! The contents of the spare areas are kept in memory beside the blocks; a controller reads them
//! with the page, or at power-on. All other state derives from them: versions are assigned here,
//! and a scan restores everything.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tantalum_base::{Error, ErrorKind, PageBuf, PageNo, Payload, Result, SlotNo, Version, ZoneNo};
use tantalum_media::{AppendHeader, Body, SlotKind, Spare, ZoneGeometry, ZoneMedia};

use super::statistics::PersonalityStatistics;
use crate::fault_points::Fault;

/// Number of versions skipped after a recovery: an interrupted write may have used some that were
/// not found.
const SKIPPED_VERSIONS: u64 = 1 << 20;

/// The purpose for which a block was opened; stored with its first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Role {
    /// Hosts' pages at their offsets, or in any order if the layer maps pages.
    Data = 0,
    /// Log of one data block.
    Log = 1,
    /// Log shared by all data blocks.
    Shared = 2,
    /// Pages of the map.
    Map = 3,
}

impl Role {
    fn from_byte(byte: u8) -> Role {
        match byte {
            0 => Role::Data,
            1 => Role::Log,
            2 => Role::Shared,
            _ => Role::Map,
        }
    }
}

/// The place of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub block: ZoneNo,
    /// Offset in the block, in pages.
    pub offset: u32,
}

/// One block.
pub(super) struct Block {
    pub role: Role,
    /// Sequence number of its current opening; 0 if it is free.
    pub opening: u64,
    /// Whether nothing more may be appended until the block is erased.
    closed: bool,
    needs_reset: bool,
    retired: bool,
    erases: u32,
    /// The spare of each page appended; `None` if it did not survive.
    pub spares: Vec<Option<Spare>>,
}

impl Block {
    /// Number of pages appended, including torn ones.
    #[inline]
    pub fn filled(&self) -> u32 {
        self.spares.len() as u32
    }

    /// The hosts' pages in the block, by offset.
    pub fn contents(&self) -> impl DoubleEndedIterator<Item = (u32, &Spare)> {
        let held = |(offset, spare)| held(spare).map(|spare| (offset, spare));
        self.spares.iter().enumerate().map(|(at, spare)| (at as u32, spare)).filter_map(held)
    }

    /// The host's page at `offset`.
    #[inline]
    pub fn get(&self, offset: u32) -> Option<&Spare> {
        self.spares.get(offset as usize).and_then(held)
    }
}

/// The spare if it belongs to a host's page: no padding, no map page.
#[inline]
fn held(spare: &Option<Spare>) -> Option<&Spare> {
    spare.as_ref().filter(|spare| spare.kind.is_page())
}

/// All blocks of a medium.
pub(super) struct Blocks<M: ZoneMedia> {
    pub media: M,
    geometry: ZoneGeometry,
    /// Number of slots for an append of one page.
    step: u32,
    pub pages_per_block: u32,
    /// Maximum number of pages in one append, so that the planes of a zone work in parallel.
    run_pages_max: u32,
    blocks: Vec<Block>,
    // The least worn first.
    free: BinaryHeap<Reverse<(u32, ZoneNo)>>,
    opening: u64,
    next_version: Version,
    pub statistics: PersonalityStatistics,
}

/// Number of pages in a block of `geometry` if they are appended one by one.
pub(super) fn pages_per_block(geometry: &ZoneGeometry) -> u32 {
    geometry.slots_per_zone / geometry.append_slots(1)
}

impl<M: ZoneMedia> Blocks<M> {
    /// All blocks free.
    pub fn new(media: M) -> Self {
        let geometry = media.geometry();
        let retired = media.retired();
        let blocks = (0..geometry.zones).map(ZoneNo).map(|zone| Block {
            role: Role::Data,
            opening: 0,
            closed: false,
            needs_reset: true,
            retired: retired.binary_search(&zone).is_ok(),
            erases: 0,
            spares: Vec::new(),
        });
        let mut this = Blocks {
            media,
            geometry,
            step: geometry.append_slots(1),
            pages_per_block: pages_per_block(&geometry),
            // Pages of one append share flash pages; here each page must have its own.
            run_pages_max: if geometry.append_slots(1) == 1 {
                geometry.append_pages_max
            } else {
                1
            },
            blocks: blocks.collect(),
            free: BinaryHeap::new(),
            opening: 0,
            next_version: Version(1),
            statistics: PersonalityStatistics::default(),
        };
        this.rebuild_free();
        this
    }

    /// The content of a medium, from a scan of every spare area. Blocks with content are closed.
    pub async fn recover(media: M) -> Result<Self> {
        let mut this = Blocks::new(media);
        let mut newest = Version::NEVER;
        for zone in (0..this.geometry.zones).map(ZoneNo) {
            if this.blocks[zone.index()].retired {
                continue;
            }
            let appends = this.media.scan(zone, 0, None).await?;
            let step = this.step;
            let block = &mut this.blocks[zone.index()];
            for append in appends {
                let offset = (append.first_offset / step) as usize;
                block.spares.resize(offset, None);
                // If a page takes several slots, each append has only one page.
                block.spares.extend(append.spares);
                block.opening = append.header.epoch;
                block.role = Role::from_byte(append.header.stream);
            }
            block.closed = true;
            let versions = block.spares.iter().flatten().map(|spare| spare.version);
            newest = newest.max(versions.max().unwrap_or_default());
            this.opening = this.opening.max(block.opening);
            if block.contents().next().is_none() && block.role != Role::Map {
                block.opening = 0;
                block.spares.clear();
            }
        }
        this.next_version = Version(newest.0 + SKIPPED_VERSIONS);
        this.rebuild_free();
        Ok(this)
    }

    /// Erases every block with content.
    pub async fn forget(mut self) -> Result<Self> {
        let held = self.numbered().filter(|(_, block)| block.opening > 0);
        let held: Vec<ZoneNo> = held.map(|(zone, _)| zone).collect();
        for zone in held {
            self.release(zone).await?;
        }
        self.statistics = PersonalityStatistics::default();
        Ok(self)
    }

    fn rebuild_free(&mut self) {
        let free = self.numbered().filter(|(_, block)| block.opening == 0 && !block.retired);
        self.free = free.map(|(zone, block)| Reverse((block.erases, zone))).collect();
    }

    /// All blocks in ascending order.
    pub fn numbered(&self) -> impl Iterator<Item = (ZoneNo, &Block)> {
        self.blocks.iter().enumerate().map(|(at, block)| (ZoneNo(at as u32), block))
    }

    pub fn get(&self, block: ZoneNo) -> &Block {
        &self.blocks[block.index()]
    }

    pub fn free_count(&self) -> u32 {
        self.free.len() as u32
    }

    /// Number of pages that can still be appended.
    pub fn room(&self, block: ZoneNo) -> u32 {
        let block = self.get(block);
        if block.closed { 0 } else { self.pages_per_block - block.filled() }
    }

    /// The block in `open`; if that is full, a fresh one of `role` replaces it.
    pub async fn with_room(&mut self, open: &mut Option<ZoneNo>, role: Role) -> Result<ZoneNo> {
        match *open {
            Some(block) if self.room(block) > 0 => Ok(block),
            _ => Ok(*open.insert(self.open(role).await?)),
        }
    }

    /// The logical block of a page, and its offset in it.
    pub fn split(&self, page: PageNo) -> (u64, u32) {
        let block = u64::from(self.pages_per_block);
        (page.0 / block, (page.0 % block) as u32)
    }

    /// Opens the least worn free block.
    ///
    /// # Errors
    /// `OutOfSpace` if none is left, because too many were retired.
    pub async fn open(&mut self, role: Role) -> Result<ZoneNo> {
        loop {
            let Some(Reverse((_, zone))) = self.free.pop() else {
                return Err(Error::new(ErrorKind::OutOfSpace, "no erase block is free"));
            };
            if self.blocks[zone.index()].needs_reset && !self.erase(zone).await? {
                continue;
            }
            self.opening += 1;
            let block = &mut self.blocks[zone.index()];
            (block.role, block.opening, block.closed) = (role, self.opening, false);
            return Ok(zone);
        }
    }

    /// Erases a block. Returns false if the block had to be retired.
    async fn erase(&mut self, zone: ZoneNo) -> Result<bool> {
        let erased = self.media.reset(zone).await;
        let block = &mut self.blocks[zone.index()];
        match erased {
            Ok(()) => {
                block.needs_reset = false;
                block.erases += 1;
                self.statistics.erases += 1;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::ZoneRetired => {
                block.retired = true;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Erases a block that is no longer needed, and frees it.
    pub async fn release(&mut self, zone: ZoneNo) -> Result<()> {
        let whole = self.erase(zone).await?;
        let block = &mut self.blocks[zone.index()];
        block.opening = 0;
        block.spares.clear();
        if whole {
            let erases = block.erases;
            self.free.push(Reverse((erases, zone)));
        }
        Ok(())
    }

    /// Programs the next pages of `block`, durably and as one append. At a power cut each page
    /// lands or not independently.
    async fn program(
        &mut self,
        block: ZoneNo,
        spares: &[Spare],
        bodies: &[Body<M::Page>],
    ) -> Result<Place> {
        let offset = self.get(block).filled();
        let state = self.get(block);
        let header = AppendHeader {
            epoch: state.opening,
            stream: state.role as u8,
            durable: Version::NEVER,
            batch_first: spares[0].version,
            batch_len: 1,
        };
        let slot = self.media.append(block, &header, spares, bodies, true).await?;
        debug_assert_eq!(slot, self.slot(Place { block, offset }));
        let programmed = spares.iter().map(|spare| Some(*spare));
        self.blocks[block.index()].spares.extend(programmed);
        self.statistics.programs += spares.len() as u64;
        Ok(Place { block, offset })
    }

    /// Number of pages, of a run of `pages`, that fit into one append to `block`; at least one.
    pub fn run_pages(&self, block: ZoneNo, pages: usize) -> usize {
        pages.min(self.room(block).min(self.run_pages_max).max(1) as usize)
    }

    /// Writes `contents` as the newest versions of the pages from `first` on, durably, in one
    /// append of at most [`run_pages`](Self::run_pages) pages. Returns the place of the first page.
    pub async fn write_run(
        &mut self,
        block: ZoneNo,
        first: PageNo,
        contents: &[M::Page],
    ) -> Result<Place> {
        let mut spares = Vec::with_capacity(contents.len());
        for (page, content) in (first.0..).map(PageNo).zip(contents) {
            let (version, checksum) = (self.take_version(), content.checksum());
            spares.push(Spare { kind: SlotKind::Data, page, version, checksum });
        }
        let bodies: Vec<_> = contents.iter().cloned().map(Body::Data).collect();
        self.program(block, &spares, &bodies).await
    }

    /// Writes `content` as the newest version of `page`, durably.
    pub async fn write(&mut self, block: ZoneNo, page: PageNo, content: &M::Page) -> Result<Place> {
        self.write_run(block, page, std::slice::from_ref(content)).await
    }

    /// Writes a page of the map.
    pub async fn write_map(&mut self, block: ZoneNo, number: u64, page: PageBuf) -> Result<Place> {
        let spare = Spare {
            kind: SlotKind::Checkpoint,
            page: PageNo(number),
            version: self.take_version(),
            checksum: page.checksum(),
        };
        self.statistics.map_writes += 1;
        self.program(block, &[spare], &[Body::Meta(page)]).await
    }

    /// Reads a page of the map.
    pub async fn read_map(&mut self, place: Place) -> Result<PageBuf> {
        self.statistics.map_reads += 1;
        let page = self.media.read_meta(self.slot(place)).await?;
        let expected = self.get(place.block).spares[place.offset as usize];
        if expected.is_none_or(|spare| spare.checksum != page.checksum()) {
            return Err(self.damaged(place));
        }
        Ok(page)
    }

    /// Copies the page at `from` with its old version.
    pub async fn copy(&mut self, block: ZoneNo, from: Place) -> Result<Place> {
        let PageNo(page) =
            self.get(from.block).get(from.offset).map_or(PageNo(0), |held| held.page);
        self.copy_run(block, PageNo(page), &[Some(from)]).await
    }

    /// Copies the pages from `first` on to `block` in one append, each from its source and with its
    /// old version; a page without a source is padded. Returns the place of the first page.
    pub async fn copy_run(
        &mut self,
        block: ZoneNo,
        first: PageNo,
        sources: &[Option<Place>],
    ) -> Result<Place> {
        let places: Vec<Place> = sources.iter().copied().flatten().collect();
        let mut read = self.read_all(&places).await?.into_iter();
        let mut spares = Vec::with_capacity(sources.len());
        let mut bodies = Vec::with_capacity(sources.len());
        for (page, from) in (first.0..).map(PageNo).zip(sources) {
            let (spare, content) = match from {
                Some(from) => {
                    let spare = self.get(from.block).get(from.offset).copied();
                    let spare = spare.ok_or_else(|| self.damaged(*from))?;
                    let content = read.next().ok_or_else(|| self.damaged(*from))?;
                    self.statistics.pages_moved += 1;
                    (Spare { kind: SlotKind::Copy, ..spare }, content)
                }
                None => {
                    let content = M::Page::zero();
                    let (version, checksum) = (Version::NEVER, content.checksum());
                    self.statistics.pages_padded += 1;
                    (Spare { kind: SlotKind::Record, page, version, checksum }, content)
                }
            };
            spares.push(spare);
            bodies.push(Body::Data(content));
        }
        self.program(block, &spares, &bodies).await
    }

    /// Reads hosts' pages and checks them, in parallel as far as the medium allows.
    pub async fn read_all(&self, places: &[Place]) -> Result<Vec<M::Page>> {
        let slots: Vec<SlotNo> = places.iter().map(|place| self.slot(*place)).collect();
        let mut out = vec![M::Page::zero(); places.len()];
        if !places.is_empty() {
            self.media.read(&slots, &mut out).await?;
        }
        for (place, content) in places.iter().zip(&out) {
            self.check(*place, content)?;
        }
        Ok(out)
    }

    /// Reads a host's page and checks it.
    pub async fn read(&self, place: Place) -> Result<M::Page> {
        let mut out = [M::Page::zero()];
        self.media.read(&[self.slot(place)], &mut out).await?;
        let [content] = out;
        self.check(place, &content)?;
        Ok(content)
    }

    fn check(&self, place: Place, content: &M::Page) -> Result<()> {
        let expected = self.get(place.block).get(place.offset);
        let matches = |spare: &Spare| spare.checksum == content.checksum();
        if expected.is_some_and(matches) || Fault::BlocksUnchecked.is_planted() {
            return Ok(());
        }
        Err(self.damaged(place))
    }

    fn take_version(&mut self) -> Version {
        let version = self.next_version;
        self.next_version = version.next();
        version
    }

    fn slot(&self, place: Place) -> SlotNo {
        self.geometry.slot(place.block, place.offset * self.step)
    }

    fn damaged(&self, place: Place) -> Error {
        let context = format!("{place:?}: the content is not what was written");
        Error::new(ErrorKind::Checksum, context)
    }

    /// The counters, and the present state of the blocks.
    pub fn statistics(&self) -> PersonalityStatistics {
        PersonalityStatistics { blocks_free: self.free_count(), ..self.statistics }
    }
}
