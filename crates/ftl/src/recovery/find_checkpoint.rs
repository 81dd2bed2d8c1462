//! Recovery: finds the newest checkpoint and reads it.
use std::collections::BTreeMap;
use tantalum_base::{
    Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, PageRange, Payload, Result, SlotNo, Version,
    ZoneNo,
};
use tantalum_media::{ScannedAppend, SlotKind, ZoneMedia};
use tantalum_runtime::prefer_huge_pages;

use crate::checkpoints::anchor_pages::Extent;
use crate::checkpoints::pages::{self, Footer, PieceHeader, PieceKind, ZONE_ENTRIES, ZoneEntry};
use crate::dump::header::DumpHeader;
use crate::log::OwnPage;
use crate::map::MapEntry;
use crate::read::is_damage;
use crate::recovery::limits::senseless;
use crate::recovery::{Opening, Reader, corrupt};
use crate::space::Stream;

/// Most pages of a checkpoint that are read at once.
const RUN_PAGES: u32 = 256;

/// A checkpoint that was read.
pub(super) struct Checkpoint {
    pub id: u64,
    pub footer: Footer,
    pub places: Vec<SlotNo>,
    pub zones: Vec<ZoneEntry>,
    pages: Pages,
    // For each whole chunk of the map, the index of its page.
    map: Vec<(PieceHeader, usize)>,
    /// Ranges of pages whose part of the map is damaged, if that is accepted.
    pub damaged_map: Vec<PageRange>,
}

impl Checkpoint {
    /// The number of entries in its map.
    pub(super) fn entries(&self) -> u64 {
        self.map.iter().map(|(header, _)| u64::from(header.entries)).sum()
    }
}

/// Names the page of checkpoint `id` in `slot`, for errors.
fn name_page(id: u64, slot: SlotNo) -> String {
    format!("slot {slot}, a page of checkpoint {id}")
}

/// Pages of a checkpoint as they were read, in one block: allocating millions of small ones would take
/// longer than decoding them.
struct Pages {
    slots: Vec<SlotNo>,
    bytes: Vec<u8>,
}

impl Pages {
    /// No pages yet; there will be at most `pages`.
    fn new(pages: usize) -> Self {
        let mut bytes = Vec::with_capacity(pages * PAGE_BYTES);
        prefer_huge_pages(bytes.spare_capacity_mut());
        Pages { slots: Vec::with_capacity(pages), bytes }
    }

    fn push(&mut self, slot: SlotNo, page: &PageBuf) {
        self.slots.push(slot);
        self.bytes.extend_from_slice(&page[..]);
    }

    fn contents(&self) -> &[[u8; PAGE_BYTES]] {
        self.bytes.as_chunks().0
    }
}

/// Pages of checkpoints and delta pages, as found in the meta zones.
#[derive(Default)]
pub(super) struct MetaSlots {
    // By id, then by number.
    by_id: BTreeMap<u64, BTreeMap<u64, OwnPage>>,
    // The highest id of a checkpoint that must be finished, because pages of a later one follow.
    finished: u64,
    // By the last checkpoint begun, then by number.
    deltas: BTreeMap<(u64, u64), OwnPage>,
}

impl MetaSlots {
    /// The id of the checkpoint whose pages `append` holds; `None` if it holds none.
    pub(super) fn checkpoint_of(append: &ScannedAppend) -> Option<u64> {
        let spares = append.spares.iter().flatten();
        let spares = spares.chain(append.damaged.iter().map(|(_, spare)| spare));
        spares.filter(|spare| spare.kind == SlotKind::Checkpoint).map(|spare| spare.version.0).max()
    }

    /// The highest id of a checkpoint.
    pub(super) fn highest_id(&self) -> u64 {
        self.by_id.keys().next_back().copied().unwrap_or(0)
    }

    /// Pages of checkpoint `id`, in order.
    pub(super) fn checkpoint(&self, id: u64) -> impl Iterator<Item = SlotNo> + '_ {
        self.by_id.get(&id).into_iter().flat_map(|slots| slots.values().map(|page| page.slot))
    }

    /// The delta pages that `dump` builds on, in order.
    pub(super) fn deltas_of(
        &self,
        dump: &DumpHeader,
    ) -> impl Iterator<Item = ((u64, u64), OwnPage)> + '_ {
        let up_to = dump.deltas_up_to;
        let since = self.deltas.range((dump.checkpoint, 0)..);
        since.filter(move |((_, number), _)| *number < up_to).map(|(at, page)| (*at, *page))
    }
}

impl<M: ZoneMedia> Reader<'_, M> {
    /// Finds pages of checkpoints and delta pages in the meta zones, and which checkpoints were finished.
    pub(super) async fn meta_slots(&self, openings: &[Option<Opening>]) -> Result<MetaSlots> {
        let mut slots = MetaSlots::default();
        for (zone, opening) in openings.iter().enumerate() {
            let Some(Opening { epoch, stream }) = *opening else { continue };
            if stream != Stream::Meta as u8 {
                continue;
            }
            let zone = ZoneNo(zone as u32);
            let mut latest = 0;
            for append in self.scan(zone, 0, Some(epoch)).await? {
                for (offset, spare) in (append.first_offset..).zip(&append.spares) {
                    let Some(spare) = spare else { continue };
                    let (id, number) = (spare.version.0, spare.page.0);
                    let slot = self.geometry.slot(zone, offset);
                    let page = OwnPage { slot, checksum: spare.checksum };
                    if spare.kind == SlotKind::Delta {
                        slots.deltas.insert((id, number), page);
                    } else if spare.kind == SlotKind::Checkpoint {
                        slots.by_id.entry(id).or_default().insert(number, page);
                        if id > latest {
                            // After an unfinished checkpoint the next one starts in a zone of its own.
                            slots.finished = slots.finished.max(latest);
                            latest = id;
                        }
                    }
                }
            }
        }
        Ok(slots)
    }

    /// The newest intact checkpoint. A newer one with a footer may have been overwritten before it came into
    /// force, or be damaged: accounting for all versions then shows whether the log can replace its content.
    /// But a dump builds on content that is in no log, so then the newest checkpoint must be intact.
    pub(super) async fn find_checkpoint(&self, meta: &MetaSlots) -> Result<Checkpoint> {
        let mut damaged = None;
        for (id, slots) in meta.by_id.iter().rev() {
            match self.whole_checkpoint(*id, slots, meta.finished).await {
                Ok(Some(checkpoint)) => return Ok(checkpoint),
                Ok(None) => {}
                Err(error) if self.options.dump.is_some() || !is_damage(error.kind()) => {
                    return Err(error);
                }
                Err(error) => damaged = damaged.or(Some(error)),
            }
        }
        Err(damaged.unwrap_or_else(|| corrupt("no whole checkpoint was found on the medium")))
    }

    /// Reads checkpoint `id`, which must be there.
    pub(super) async fn named_checkpoint(&self, meta: &MetaSlots, id: u64) -> Result<Checkpoint> {
        let slots = meta.by_id.get(&id);
        let missing = || corrupt(format!("checkpoint {id}, on which a dump builds, is missing"));
        let slots = slots.ok_or_else(missing)?;
        self.whole_checkpoint(id, slots, id).await?.ok_or_else(missing)
    }

    /// Reads the checkpoint; `None` if it has no footer and was not `finished`.
    async fn whole_checkpoint(
        &self,
        id: u64,
        slots: &BTreeMap<u64, OwnPage>,
        finished: u64,
    ) -> Result<Option<Checkpoint>> {
        let Some((number, page)) = self.last_intact(slots).await? else { return Ok(None) };
        let header = pages::decode_header(&page);
        if header.is_none_or(|header| header.kind != PieceKind::Footer || header.id != id) {
            if id <= finished {
                return Err(corrupt(format!("the footer of checkpoint {id} is damaged")));
            }
            return Ok(None);
        }
        let footer = pages::decode_footer(&page);
        self.check_footer(id, &footer)?;
        if u64::from(footer.pieces) != number + 1 || slots.len() as u64 != number + 1 {
            // The footer was written when all other pages were durable.
            let (pages, intact) = (footer.pieces, slots.len());
            return Err(corrupt(format!(
                "of the {pages} pages of checkpoint {id} only {intact} are intact"
            )));
        }
        let mut pages = Pages::new(slots.len());
        for own in slots.values() {
            pages.push(own.slot, &own.read(self.media).await?);
        }
        self.assemble(id, footer, pages, &[]).map(Some)
    }

    /// The last readable page of a checkpoint, with its number. Pages that decayed since the scan
    /// count as damaged.
    async fn last_intact(&self, slots: &BTreeMap<u64, OwnPage>) -> Result<Option<(u64, PageBuf)>> {
        for (number, own) in slots.iter().rev() {
            match own.read(self.media).await {
                Ok(page) => return Ok(Some((*number, page))),
                Err(error) if is_damage(error.kind()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Reads checkpoint `id`, whose pages are in `extents`; all of them must be there.
    pub(super) async fn checkpoint_in(&self, id: u64, extents: &[Extent]) -> Result<Checkpoint> {
        let pages = self.pages_in(extents).await?;
        let (contents, slots) = (pages.contents(), &pages.slots);
        let damaged = |slot: &SlotNo| {
            corrupt(format!("slot {slot}: the page of checkpoint {id} there is damaged"))
        };
        let header = |page: &[u8; PAGE_BYTES]| {
            let header = pages::decode_header(page).filter(|header| header.id == id);
            header.filter(|_| pages::is_sealed(page))
        };
        let last = slots.last().zip(contents.last());
        let (slot, last) = last.ok_or_else(|| damaged(&SlotNo(0)))?;
        let footer = pages::decode_footer(last);
        let is_footer = header(last).is_some_and(|header| header.kind == PieceKind::Footer);
        if !is_footer || footer.pieces as usize != slots.len() {
            return Err(damaged(slot));
        }
        self.check_footer(id, &footer)?;
        let mut gaps = Vec::new();
        let map_from = (self.geometry.zones as usize).div_ceil(ZONE_ENTRIES);
        for (at, (slot, page)) in slots.iter().zip(contents).enumerate() {
            let is_whole = header(page).is_some_and(|header| {
                !self.options.accept_loss
                    || header.kind != PieceKind::Map
                    || self.decode_chunk(*slot, &header, page, footer.next_version).is_ok()
            });
            if !is_whole {
                if !self.options.accept_loss || at < map_from {
                    return Err(damaged(slot));
                }
                gaps.push(at);
            }
        }
        let damaged_map =
            gaps.iter().map(|at| self.map_gap(&pages, &gaps, *at)).collect::<Result<_>>()?;
        let checkpoint = self.assemble(id, footer, pages, &gaps)?;
        Ok(Checkpoint { damaged_map, ..checkpoint })
    }

    /// Reads the pages in `extents`.
    async fn pages_in(&self, extents: &[Extent]) -> Result<Pages> {
        let slots = self.geometry.zones as usize * self.geometry.slots_per_zone as usize;
        let count = extents.iter().map(|extent| extent.pages as usize).sum();
        let mut pages = Pages::new(slots.min(count));
        let mut run = vec![PageBuf::zero(); RUN_PAGES as usize];
        for extent in extents {
            let (mut first, end) = (extent.first.0, extent.first.0 + extent.pages);
            while first < end {
                let run = &mut run[..(end - first).min(RUN_PAGES) as usize];
                self.media.read_meta_run(SlotNo(first), run).await?;
                for (slot, page) in (first..).map(SlotNo).zip(&*run) {
                    pages.push(slot, page);
                }
                first = (first + RUN_PAGES).min(end);
            }
        }
        Ok(pages)
    }

    /// The entries of a checkpoint's map, by chunk and in the order of pages.
    pub(super) fn map_of<'c>(
        &'c self,
        checkpoint: &'c Checkpoint,
    ) -> impl Iterator<Item = Result<(&'c PieceHeader, Vec<(PageNo, MapEntry)>)>> {
        let Checkpoint { pages, map, footer, .. } = checkpoint;
        let mut next = 0;
        map.iter().map(move |(header, at)| {
            let (slot, chunk) = (pages.slots[*at], &pages.contents()[*at]);
            if u64::from(header.index) < next {
                let why = format!(
                    "it begins at page {}, which an earlier page of the checkpoint also covers",
                    header.index
                );
                return Err(senseless(name_page(header.id, slot), &why));
            }
            let entries = self.decode_chunk(slot, header, chunk, footer.next_version)?;
            next = entries.last().map_or(next, |(page, _)| page.0 + 1);
            Ok((header, entries))
        })
    }

    /// The entries in the chunk of a map in `slot`; their versions must be below `next`.
    fn decode_chunk(
        &self,
        slot: SlotNo,
        header: &PieceHeader,
        chunk: &[u8; PAGE_BYTES],
        next: Version,
    ) -> Result<Vec<(PageNo, MapEntry)>> {
        let entries = pages::decode_map(header, chunk, !self.media.reads_spares())
            .map_err(|error| error.wrap(name_page(header.id, slot)))?;
        let mut from = u64::from(header.index);
        let checked = entries.iter().try_for_each(|(page, entry)| {
            if page.0 < from {
                return Err(format!(
                    "it names page {page}, but the next page must be {from} or higher"
                ));
            }
            from = page.0 + 1;
            self.limits.entry(*page, entry, next)
        });
        checked.map_err(|why| senseless(name_page(header.id, slot), &why))?;
        Ok(entries)
    }

    /// The pages that the damaged chunk of the map at index `at` of a checkpoint's `pages` may have covered:
    /// those between its nearest neighbours that are whole, hence not among the `gaps`.
    fn map_gap(&self, pages: &Pages, gaps: &[usize], at: usize) -> Result<PageRange> {
        let contents = pages.contents();
        let whole = |at: &usize| !gaps.contains(at);
        let chunk = |at: usize| {
            let header = pages::decode_header(&contents[at])?;
            (header.kind == PieceKind::Map).then_some((at, header))
        };
        let before = (0..at).rev().find(whole).and_then(chunk);
        let first = match before {
            Some((at, header)) => {
                let next = Version(u64::MAX);
                let entries = self.decode_chunk(pages.slots[at], &header, &contents[at], next)?;
                entries.last().map_or(u64::from(header.index), |(page, _)| page.0 + 1)
            }
            None => 0,
        };
        let behind = (at + 1..contents.len()).find(whole).and_then(chunk);
        let end = behind.map_or(self.options.pages, |(_, header)| u64::from(header.index));
        let end = end.min(self.options.pages);
        Ok(PageRange::new(PageNo(first), end.saturating_sub(first)))
    }

    /// Fails if the footer of checkpoint `id` is invalid, or belongs to a device of another size.
    fn check_footer(&self, id: u64, footer: &Footer) -> Result<()> {
        let checked = self.limits.footer(id, footer);
        checked.map_err(|why| senseless(format!("the footer of checkpoint {id}"), &why))?;
        let is_smaller = footer.pages < self.options.pages && self.options.has_grown;
        if footer.pages != self.options.pages && !is_smaller {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "the device was made with {} pages and is opened with {}",
                    footer.pages, self.options.pages
                ),
            ));
        }
        Ok(())
    }

    /// Assembles the checkpoint with these `pages`, in order; those at `gaps` are damaged.
    fn assemble(
        &self,
        id: u64,
        footer: Footer,
        pages: Pages,
        gaps: &[usize],
    ) -> Result<Checkpoint> {
        let mut zones = vec![ZoneEntry::default(); self.geometry.zones as usize];
        let (mut places, mut map) = (Vec::with_capacity(pages.slots.len()), Vec::new());
        for (at, (slot, page)) in pages.slots.iter().zip(pages.contents()).enumerate() {
            if gaps.binary_search(&at).is_ok() {
                continue;
            }
            places.push(*slot);
            let none = || corrupt(format!("slot {slot} holds no page of checkpoint {id}"));
            let header = pages::decode_header(page).ok_or_else(none)?;
            match header.kind {
                PieceKind::Zones => {
                    let first = header.index as usize * ZONE_ENTRIES;
                    let table = (0..).map(ZoneNo).zip(&mut zones).skip(first);
                    for ((number, zone), read) in table.zip(pages::decode_zones(page)) {
                        let checked = self.limits.zone(number, &read);
                        checked.map_err(|why| senseless(name_page(id, *slot), &why))?;
                        *zone = read;
                    }
                }
                PieceKind::Map => map.push((header, at)),
                PieceKind::Footer => {}
            }
        }
        let damaged_map = Vec::new();
        Ok(Checkpoint { id, footer, places, zones, pages, map, damaged_map })
    }
}
