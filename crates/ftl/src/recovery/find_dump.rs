//! Recovery: finds and reads the dump in force. A damaged frame loses only its own page; the
//! metadata must be intact.
use std::collections::BTreeMap;
use tantalum_base::{Error, ErrorKind, PageBuf, PageNo, Payload, Result, SlotNo, Version, ZoneNo};
use tantalum_media::{SlotKind, Spare, ZoneMedia};

use crate::checkpoints::DumpsVoid;
use crate::dump::delta_pages::{self, Delta};
use crate::dump::header::DumpHeader;
use crate::fault_points::Fault;
use crate::log::OwnPage;
use crate::map::{MapEntry, Place};
use crate::read::is_damage;
use crate::recovery::limits::senseless;
use crate::recovery::{Opening, Reader, Recovery, corrupt};
use crate::space::Stream;

/// Frames read at a time.
const GROUP: usize = 256;

/// A dump in force.
pub(super) struct FoundDump<P> {
    pub header: DumpHeader,
    pub entries: Vec<Delta>,
    /// In the order of the host's writes.
    pub frames: Vec<(PageNo, P)>,
    /// Pages whose newest frame is damaged.
    pub lost: Vec<PageNo>,
}

/// The slots of a dump's pages, by index in the dump.
#[derive(Default)]
struct DumpPages {
    whole: BTreeMap<u64, (SlotNo, Spare)>,
    /// Damaged pages whose spares are readable.
    damaged: BTreeMap<u64, Spare>,
}

impl<M: ZoneMedia> Reader<'_, M> {
    /// Reads the dump in force; `None` if there is none.
    ///
    /// # Errors
    /// `Corrupt` if it is unknown which pages are missing: acknowledged writes would be lost
    /// silently.
    pub(super) async fn find_dump(
        &self,
        openings: &[Option<Opening>],
        void: DumpsVoid,
    ) -> Result<Option<FoundDump<M::Page>>> {
        let dumped = |(zone, opening): (usize, &Option<Opening>)| {
            let dump = opening.filter(|opening| opening.stream == Stream::Dump as u8)?;
            Some((ZoneNo(zone as u32), dump.epoch))
        };
        let zones: Vec<(ZoneNo, u64)> = openings.iter().enumerate().filter_map(dumped).collect();
        let number = zones.iter().map(|(_, epoch)| *epoch).max().unwrap_or(0);
        if number <= void.frames {
            return Ok(None);
        }
        if self.options.dump.is_none() {
            let context =
                format!("the device holds dump {number}, but its options give no energy for dumps");
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let mut pages = DumpPages::default();
        for (zone, _) in zones.iter().filter(|(_, epoch)| *epoch == number) {
            self.find_dump_pages(*zone, number, &mut pages).await?;
        }
        // A page whose program failed was repeated elsewhere.
        let DumpPages { whole, damaged } = &mut pages;
        damaged.retain(|index, _| !whole.contains_key(index));
        self.read_dump(number, &pages).await.map(Some)
    }

    async fn find_dump_pages(
        &self,
        zone: ZoneNo,
        number: u64,
        pages: &mut DumpPages,
    ) -> Result<()> {
        let is_dump = |spare: &Spare| spare.kind == SlotKind::Dump;
        for append in self.scan(zone, 0, Some(number)).await? {
            for (offset, spare) in (append.first_offset..).zip(&append.spares) {
                if let Some(spare) = spare.filter(is_dump) {
                    let slot = self.geometry.slot(zone, offset);
                    pages.whole.insert(spare.version.0, (slot, spare));
                }
            }
            let damaged = append.damaged.iter().map(|(_, spare)| *spare).filter(is_dump);
            pages.damaged.extend(damaged.map(|spare| (spare.version.0, spare)));
        }
        Ok(())
    }

    async fn read_dump(&self, number: u64, pages: &DumpPages) -> Result<FoundDump<M::Page>> {
        let page = async |index: u64, what: &str| match pages.whole.get(&index) {
            Some((slot, spare)) => {
                OwnPage { slot: *slot, checksum: spare.checksum }.read(self.media).await
            }
            None => Err(corrupt(format!("dump {number} has lost {what}"))),
        };
        let header = DumpHeader::decode(&page(0, "its header").await?, false)
            .filter(|header| header.number == number)
            .ok_or_else(|| corrupt(format!("the header of dump {number} is not a dump header")))?;
        let checked = self.limits.dump(&header);
        checked.map_err(|why| senseless(format!("the header of dump {number}"), &why))?;
        let last = header.pages() - 1;
        let footer = page(last, "its footer: it was cut short, or its end has decayed").await?;
        let footer = DumpHeader::decode(&footer, true);
        let known = pages.whole.len() + pages.damaged.len();
        if footer != Some(header) || known as u64 != header.pages() {
            let context = format!(
                "of the {} pages of dump {number} only {} are intact, and the content of {} is unknown",
                header.pages(),
                pages.whole.len(),
                header.pages().saturating_sub(known as u64)
            );
            return Err(corrupt(context));
        }
        let entry_pages = u64::from(header.entry_pages);
        let mut entries = Vec::new();
        for index in 1..=entry_pages {
            let page = page(index, "mapping entries").await?;
            entries.extend(self.decode_deltas(&page, &header)?);
        }
        let mut frames = Vec::with_capacity(header.frames as usize);
        let places: Vec<(u64, SlotNo, Spare)> = pages
            .whole
            .range(1 + entry_pages..last)
            .map(|(index, (slot, spare))| (*index, *slot, *spare))
            .collect();
        for group in places.chunks(GROUP) {
            self.read_frames(group, &mut frames).await?;
        }
        let lost = pages.damaged.iter().map(|(index, spare)| (*index, spare.page, None));
        frames.extend(lost);
        frames.sort_by_key(|(index, ..)| *index);
        let checked = self.limits.frames(frames.iter().map(|(_, page, _)| page));
        checked.map_err(|why| senseless(format!("a frame of dump {number}"), &why))?;
        Ok(FoundDump::of(header, entries, frames))
    }

    /// The changes in a page of the dump with this `header`, or in a delta page on which it builds.
    pub(super) fn decode_deltas(&self, page: &PageBuf, header: &DumpHeader) -> Result<Vec<Delta>> {
        let deltas = delta_pages::decode(page, !self.media.reads_spares())?;
        let checked = deltas.iter().try_for_each(|delta| match delta {
            Delta::Page(page, entry) => self.limits.entry(*page, entry, header.next_version),
            Delta::Trim(trim) => self.limits.trim_of(trim, header.next_version),
        });
        let place = || format!("entries of the mapping in dump {}", header.number);
        checked.map_err(|why| senseless(place(), &why))?;
        Ok(deltas)
    }

    /// Reads frames, each with its index in the dump; `None` for a damaged one.
    async fn read_frames(
        &self,
        group: &[(u64, SlotNo, Spare)],
        frames: &mut Vec<(u64, PageNo, Option<M::Page>)>,
    ) -> Result<()> {
        let slots: Vec<SlotNo> = group.iter().map(|(_, slot, _)| *slot).collect();
        let mut contents = vec![M::Page::zero(); group.len()];
        let together = self.read_if_intact(&slots, &mut contents).await?;
        for ((index, slot, spare), content) in group.iter().zip(&mut contents) {
            // Read one by one, only the unreadable frames count as damaged.
            let is_read =
                together || self.read_if_intact(&[*slot], std::slice::from_mut(content)).await?;
            let content = std::mem::replace(content, M::Page::zero());
            let is_whole = is_read && content.checksum() == spare.checksum;
            frames.push((*index, spare.page, is_whole.then_some(content)));
        }
        Ok(())
    }

    /// Reads `slots` into `contents`; returns false if one of them is damaged.
    async fn read_if_intact(&self, slots: &[SlotNo], contents: &mut [M::Page]) -> Result<bool> {
        match self.media.read(slots, contents).await {
            Err(error) if is_damage(error.kind()) => Ok(false),
            read => read.map(|()| true),
        }
    }
}

impl<M: ZoneMedia> Recovery<'_, M> {
    /// Drops the frames of pages that have a newer version in the log: either the frame, written
    /// back, or a later write. Such frames are still in force if the checkpoint that made them void
    /// is damaged.
    pub(super) fn drop_frames_written_back(&self, dump: &mut FoundDump<M::Page>) {
        if Fault::FramesOverNewer.is_planted() {
            return;
        }
        let map = &self.parts.map;
        let next_version = dump.header.next_version;
        let is_pending = |page: PageNo| map.get(page).version < next_version;
        dump.frames.retain(|(page, _)| is_pending(*page));
        dump.lost.retain(|page| is_pending(*page));
    }

    /// Marks pages as lost whose newest content is a damaged frame of `dump`.
    pub(super) fn lose_frames(&mut self, dump: &FoundDump<M::Page>) {
        let version = self.parts.log.last_version().max(Version(1));
        for page in &dump.lost {
            self.parts
                .replace(*page, MapEntry { version, place: Place::Lost, ..MapEntry::default() });
        }
    }
}

impl<P> FoundDump<P> {
    /// The dump with `frames` in order; damaged ones are `None`.
    fn of(header: DumpHeader, entries: Vec<Delta>, frames: Vec<(u64, PageNo, Option<P>)>) -> Self {
        let mut newest = BTreeMap::new();
        for (index, page, _) in &frames {
            newest.insert(*page, *index);
        }
        let is_newest = |(index, page, _): &(u64, PageNo, Option<P>)| newest[page] == *index;
        let (mut whole, mut lost) = (Vec::with_capacity(frames.len()), Vec::new());
        for (_, page, content) in frames.into_iter().filter(is_newest) {
            match content {
                Some(content) => whole.push((page, content)),
                None => lost.push(page),
            }
        }
        FoundDump { header, entries, frames: whole, lost }
    }
}
