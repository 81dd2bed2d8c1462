//! What is written to the dump area when the power is lost, on stored energy: the buffer pool
//! and the mapping entries that are in no durable page yet (DuraSSD paper, section 3.4.1).
//!
//! ```text
//! header   the emergency flag: opening, checkpoint and delta pages that it builds on
//! deltas   changed mapping entries, as in delta pages
//! frames   a host's page each; spare: its number, and its place in the order of the dump
//! footer   the dump is complete
//! ```
//!
//! Header and footer are appends of their own, the footer the last. The dump's number is the
//! epoch of its zones: later than all before it, so that a checkpoint can say up to which dumps
//! are void, also while they still lie there. `docs/format.md` has the bytes.
use tantalum_base::{
    Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, Payload, Result, Version, ZoneNo,
};
use tantalum_media::{AppendHeader, Body, SlotKind, Spare, ZoneGeometry, ZoneMedia};

use crate::checkpoint;
use crate::deltas::ENTRIES_MIN;
use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::options::packed_slots;
use crate::records::SHARERS_MAX;
use crate::zones::Stream;

const HEADER_MAGIC: u64 = 0x706d_7544_746e_6154; // "TantDump"
const FOOTER_MAGIC: u64 = 0x456d_7544_746e_6154; // "TantDumE"

/// What a dump may take: set where the device has energy for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// Bytes that the stored energy can program.
    pub budget_bytes: u64,
    /// Frames of the buffer pool.
    pub frames_max: u32,
    /// Programs that may fail in one dump: energy and zones are kept for as many. With more, the
    /// dump may not find room, and what it should keep is lost.
    pub program_failures_max: u32,
}

/// Programs that may fail in one dump, where nothing else is said.
const PROGRAM_FAILURES_MAX: u32 = 2;

impl DumpOptions {
    /// The least that `frames_max` frames on a device of `pages` logical pages need, with room for as many
    /// changed entries as the flows need at once. Two programs may fail.
    pub fn least(geometry: &ZoneGeometry, pages: u64, frames_max: u32) -> Self {
        let program_failures_max = PROGRAM_FAILURES_MAX;
        let none = DumpOptions { budget_bytes: 0, frames_max, program_failures_max };
        none.with_least_budget(geometry, pages)
    }

    /// The same with the least budget that its frames and failures need.
    pub fn with_least_budget(self, geometry: &ZoneGeometry, pages: u64) -> Self {
        let slots = dump_slots(geometry, least_entry_pages(geometry, pages), &self);
        DumpOptions { budget_bytes: slots * PAGE_BYTES as u64, ..self }
    }
}

/// How a budget is divided up on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Zones of the dump area.
    pub zones: u32,
    /// Mapping entries that may be changed and not written yet.
    pub entries_max: u32,
    /// Slots of delta pages that may be in force.
    pub delta_slots_max: u64,
    /// Zones that these take.
    pub delta_zones: u32,
    /// Pages that one batch may share.
    pub shares_max: u32,
}

impl Layout {
    /// Without energy for a dump: nothing is set aside, and nothing limited.
    pub const NONE: Layout = Layout {
        zones: 0,
        entries_max: 0,
        delta_slots_max: 0,
        delta_zones: 0,
        shares_max: u32::MAX,
    };
}

/// Pages of entries without which appends of hosts and of cleaning might wait for each other.
fn least_entry_pages(geometry: &ZoneGeometry, pages: u64) -> u32 {
    let most = geometry.append_pages_max;
    // One append of cleaning changes as many entries as its slots have pages.
    let moved = pages.min(u64::from(most) * (1 + SHARERS_MAX as u64)) as u32;
    (6 * most).max(2 * moved).div_ceil(ENTRIES_MIN as u32)
}

/// Slots that `pages` pages take in the longest appends.
fn packed_appends(geometry: &ZoneGeometry, pages: u64) -> u64 {
    let most = u64::from(geometry.append_pages_max);
    let rest = (pages % most) as u32;
    let rest = if rest > 0 { u64::from(geometry.append_slots(rest)) } else { 0 };
    pages / most * u64::from(geometry.append_slots(geometry.append_pages_max)) + rest
}

/// Slots at a zone's end that an append which is cut in two there may waste.
fn wasted_slots(geometry: &ZoneGeometry) -> u64 {
    u64::from(geometry.append_overhead_slots + geometry.append_unit_slots)
}

/// Zones that `slots` slots take besides what zones' ends waste.
fn zones_for(geometry: &ZoneGeometry, slots: u64) -> u64 {
    slots.div_ceil(u64::from(geometry.slots_per_zone) - wasted_slots(geometry))
}

/// Slots that a dump in which no program fails takes, besides what zones' ends waste.
fn plain_slots(geometry: &ZoneGeometry, entry_pages: u32, frames: u32) -> u64 {
    let pages = u64::from(entry_pages) + u64::from(frames);
    2 * u64::from(geometry.append_slots(1)) + packed_appends(geometry, pages)
}

/// Zones of the dump area. A program that fails gives the rest of its zone up, which may be all of it.
fn dump_zones(geometry: &ZoneGeometry, entry_pages: u32, options: &DumpOptions) -> u64 {
    let plain = zones_for(geometry, plain_slots(geometry, entry_pages, options.frames_max));
    plain + u64::from(options.program_failures_max)
}

/// Slots that a dump programs at the most: the energy for it. An append that fails is programmed
/// again, and each time that pages go on in another zone their appends may be cut differently.
fn dump_slots(geometry: &ZoneGeometry, entry_pages: u32, options: &DumpOptions) -> u64 {
    let append = u64::from(geometry.append_slots(geometry.append_pages_max));
    plain_slots(geometry, entry_pages, options.frames_max)
        + u64::from(options.program_failures_max) * append
        + dump_zones(geometry, entry_pages, options) * wasted_slots(geometry)
}

impl Layout {
    /// Divides `options` up for a device of `pages` logical pages.
    ///
    /// # Errors
    /// `InvalidInput` where the budget is too small for the frames and the least of entries.
    pub fn new(geometry: &ZoneGeometry, pages: u64, options: &DumpOptions) -> Result<Layout> {
        let budget_slots = options.budget_bytes / PAGE_BYTES as u64;
        let fits = |pages: u32| dump_slots(geometry, pages, options) <= budget_slots;
        let least = least_entry_pages(geometry, pages);
        if !fits(least) {
            let needed = options.with_least_budget(geometry, pages).budget_bytes;
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "{} frames cannot be dumped with energy for {} bytes while {} programs fail: \
                     at least {needed} are needed",
                    options.frames_max, options.budget_bytes, options.program_failures_max
                ),
            ));
        }
        // Each page may be in three lists at once.
        let useful = (3 * pages).div_ceil(ENTRIES_MIN as u64).min(u64::from(u32::MAX / 256)) as u32;
        let (mut entry_pages, mut too_many) = (least, useful.max(least) + 1);
        while too_many - entry_pages > 1 {
            let middle = entry_pages + (too_many - entry_pages) / 2;
            *(if fits(middle) { &mut entry_pages } else { &mut too_many }) = middle;
        }
        let zones = dump_zones(geometry, entry_pages, options) as u32;
        // Two whole lists, and what is written between two checkpoints: as much as a quarter of one,
        // and as what is left of the last zone, up to a whole one.
        let lists = packed_appends(geometry, 2 * u64::from(entry_pages))
            + 4 * u64::from(geometry.append_slots(1));
        let checkpoint = checkpoint::slots_max(geometry, pages);
        let packed = u64::from(packed_slots(geometry));
        let delta_zones = (lists + checkpoint / 4).div_ceil(packed) as u32;
        let delta_slots_max = (lists + checkpoint).min(u64::from(delta_zones) * packed);
        let entries_max = entry_pages * ENTRIES_MIN as u32;
        let shares_max = entries_max / 4;
        Ok(Layout { zones, entries_max, delta_slots_max, delta_zones, shares_max })
    }
}

/// What a dump's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpHeader {
    /// The dump's number: the epoch of its zones.
    pub number: u64,
    /// The checkpoint that it builds on.
    pub checkpoint: u64,
    /// Delta pages up to (not with) this number belong to it.
    pub deltas_up_to: u64,
    /// No version from here on has been used.
    pub next_version: Version,
    /// Delta pages of that checkpoint, in the meta zones.
    pub delta_pages: u64,
    /// Pages of changed entries.
    pub entry_pages: u32,
    /// Frames.
    pub frames: u32,
}

impl DumpHeader {
    /// Pages of the dump, header and footer included.
    pub fn pages(&self) -> u64 {
        2 + u64::from(self.entry_pages) + u64::from(self.frames)
    }

    fn encode(&self, magic: u64) -> PageBuf {
        let mut page = [0; PAGE_BYTES];
        let counts = u64::from(self.frames) << 32 | u64::from(self.entry_pages);
        let words = [
            magic,
            self.number,
            self.checkpoint,
            self.deltas_up_to,
            self.next_version.0,
            self.delta_pages,
            counts,
        ];
        for (bytes, word) in page.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        PageBuf::copy_from(&page)
    }

    /// What a header or, with `footer`, a footer says; `None` where the page is none.
    pub fn decode(page: &PageBuf, footer: bool) -> Option<Self> {
        let long = |index: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&page[index * 8..index * 8 + 8]);
            u64::from_le_bytes(word)
        };
        (long(0) == if footer { FOOTER_MAGIC } else { HEADER_MAGIC }).then(|| DumpHeader {
            number: long(1),
            checkpoint: long(2),
            deltas_up_to: long(3),
            next_version: Version(long(4)),
            delta_pages: long(5),
            entry_pages: long(6) as u32,
            frames: (long(6) >> 32) as u32,
        })
    }
}

/// What a dump came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpReport {
    /// Frames of the buffer pool.
    pub frames: u32,
    /// Mapping entries that were in no durable page.
    pub entries: u32,
    /// Bytes programmed, headers and padding included.
    pub bytes: u64,
    /// Bytes that the stored energy could have programmed.
    pub budget_bytes: u64,
    /// The dump's number; 0 where there was nothing to dump.
    pub number: u64,
}

/// Where the next append of a dump goes, and what it may still take.
struct Area {
    zones: std::vec::IntoIter<ZoneNo>,
    zone: Option<ZoneNo>,
    used_slots: u32,
    bytes: u64,
}

/// A page of the FTL's own, in its place in the dump.
fn own_page<P>(body: PageBuf, index: u64) -> (Spare, Body<P>) {
    let (kind, checksum) = (SlotKind::Dump, body.checksum());
    (Spare { kind, page: PageNo(index), version: Version(index), checksum }, Body::Meta(body))
}

/// What lies between header and footer.
fn contents<P: Payload>(
    entries: Vec<PageBuf>,
    frames: &[(PageNo, P)],
) -> (Vec<Spare>, Vec<Body<P>>) {
    let frames_from = 1 + entries.len() as u64;
    let entries = (1..).zip(entries).map(|(index, body)| own_page(body, index));
    let frames = (frames_from..).zip(frames).map(|(index, (page, content))| {
        let (kind, checksum) = (SlotKind::Dump, content.checksum());
        let spare = Spare { kind, page: *page, version: Version(index), checksum };
        (spare, Body::Data(content.clone()))
    });
    entries.chain(frames).unzip()
}

impl<M: ZoneMedia> Ftl<M> {
    /// Bytes that a dump with `frames` frames would program now, where nothing fails meanwhile.
    pub fn bytes_to_dump(&self, frames: u32) -> u64 {
        let entry_pages = self.state.borrow().deltas.held().div_ceil(ENTRIES_MIN as u32);
        let slots = plain_slots(&self.geometry, entry_pages, frames);
        let slots = slots + zones_for(&self.geometry, slots) * wasted_slots(&self.geometry);
        slots * PAGE_BYTES as u64
    }

    /// Writes the dump through `media`, a new handle on the medium, while this FTL's memory is
    /// kept by stored energy. Nothing else of it may run any more.
    ///
    /// # Errors
    /// `PowerCut` where the energy does not reach; the medium's. The next recovery then finds an
    /// incomplete dump, and says so.
    pub async fn dump(&self, media: &M, frames: &[(PageNo, M::Page)]) -> Result<DumpReport> {
        let Some(options) = self.options.dump else {
            let context = "this device has no energy for a dump";
            return Err(Error::new(ErrorKind::InvalidInput, context));
        };
        let (header, entries, held, zones) = {
            let state = self.state.borrow();
            assert!(state.dump_in_force.is_none(), "the dump area still holds another dump");
            let entries = state.deltas.dump(&state.map, &state.shares_in_flight);
            let header = DumpHeader {
                number: state.zones.epoch() + 1,
                checkpoint: state.checkpoint_in_force,
                deltas_up_to: state.deltas.written_up_to(),
                next_version: state.next_version,
                delta_pages: state.deltas.places().count() as u64,
                entry_pages: entries.len() as u32,
                frames: frames.len() as u32,
            };
            (header, entries, state.deltas.held(), state.zones.dump_zones())
        };
        self.check_dump(&header, held, &options)?;
        let mut area = Area { zones: zones.into_iter(), zone: None, used_slots: 0, bytes: 0 };
        let last = header.pages() - 1;
        let (spares, bodies) = contents(entries, frames);
        let head = own_page(header.encode(HEADER_MAGIC), 0);
        let foot = own_page(header.encode(FOOTER_MAGIC), last);
        let number = header.number;
        self.dump_pages(media, &mut area, number, &[head.0], &[head.1]).await?;
        if Fault::DumpFooterFirst.is_planted() {
            self.dump_pages(media, &mut area, number, &[foot.0], &[foot.1]).await?;
            self.dump_pages(media, &mut area, number, &spares, &bodies).await?;
        } else {
            self.dump_pages(media, &mut area, number, &spares, &bodies).await?;
            media.sync().await?;
            self.dump_pages(media, &mut area, number, &[foot.0], &[foot.1]).await?;
        }
        media.sync().await?;
        Ok(DumpReport {
            frames: header.frames,
            entries: held,
            bytes: area.bytes,
            budget_bytes: options.budget_bytes,
            number,
        })
    }

    /// The budget must be enough also if the buffer pool were full and as many programs failed as may.
    fn check_dump(&self, header: &DumpHeader, held: u32, options: &DumpOptions) -> Result<()> {
        let slots = dump_slots(&self.geometry, header.entry_pages, options);
        if slots * PAGE_BYTES as u64 <= options.budget_bytes {
            return Ok(());
        }
        let context = format!(
            "{held} changed mapping entries are more than the stored energy can dump beside {} \
             frames",
            options.frames_max
        );
        Err(Error::new(ErrorKind::PowerCut, context))
    }

    /// Appends pages to the dump area, in as many appends as it takes.
    async fn dump_pages(
        &self,
        media: &M,
        area: &mut Area,
        number: u64,
        spares: &[Spare],
        bodies: &[Body<M::Page>],
    ) -> Result<()> {
        let budget_bytes = self.options.dump.map_or(0, |options| options.budget_bytes);
        let mut start = 0;
        while start < bodies.len() {
            let free = area.zone.map_or(0, |_| self.geometry.slots_per_zone - area.used_slots);
            let fit = self.geometry.append_pages_fit(free) as usize;
            let Some(zone) = area.zone.filter(|_| fit > 0) else {
                let next = area.zones.next().ok_or_else(|| {
                    Error::new(ErrorKind::OutOfSpace, "the dump area is full: nothing is kept")
                })?;
                // It is erased: this takes no time and no energy.
                media.reset(next).await?;
                (area.zone, area.used_slots) = (Some(next), 0);
                continue;
            };
            let end = bodies.len().min(start + fit);
            let slots = self.geometry.append_slots((end - start) as u32);
            let bytes = u64::from(slots) * PAGE_BYTES as u64;
            if area.bytes + bytes > budget_bytes {
                let context = format!(
                    "the stored energy ran out after {} of {budget_bytes} bytes of the dump",
                    area.bytes
                );
                return Err(Error::new(ErrorKind::PowerCut, context));
            }
            area.bytes += bytes;
            area.used_slots += slots;
            let header = AppendHeader {
                epoch: number,
                stream: Stream::Dump as u8,
                batch_len: (end - start) as u32,
                ..AppendHeader::default()
            };
            let append =
                media.append(zone, &header, &spares[start..end], &bodies[start..end], true);
            match append.await {
                Ok(_) => start = end,
                // Once more, in the next zone.
                Err(error) if error.kind() == ErrorKind::ProgramFailed => area.zone = None,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: ZoneGeometry = ZoneGeometry {
        zones: 20,
        slots_per_zone: 32,
        append_unit_slots: 2,
        append_overhead_slots: 0,
        append_pages_max: 16,
    };

    #[test]
    fn a_budget_is_used_up_and_never_overdrawn() {
        for frames_max in [1, 24, 500] {
            let least = DumpOptions::least(&GEOMETRY, 1 << 20, frames_max);
            let mut entries_before = 0;
            for more_slots in 0..400 {
                let budget_bytes = least.budget_bytes + more_slots * PAGE_BYTES as u64;
                let options = DumpOptions { budget_bytes, ..least };
                let layout = Layout::new(&GEOMETRY, 1 << 20, &options).unwrap();
                let pages = layout.entries_max / ENTRIES_MIN as u32;
                assert!(dump_slots(&GEOMETRY, pages, &options) * 4096 <= budget_bytes);
                assert!(dump_slots(&GEOMETRY, pages + 1, &options) * 4096 > budget_bytes);
                assert!(layout.entries_max >= entries_before);
                entries_before = layout.entries_max;
            }
            let budget_bytes = least.budget_bytes - 1;
            let refused = Layout::new(&GEOMETRY, 1 << 20, &DumpOptions { budget_bytes, ..least });
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn headers_come_back() {
        let header = DumpHeader {
            number: 1 << 40,
            checkpoint: 7,
            deltas_up_to: 1 << 50,
            next_version: Version(99),
            delta_pages: 12,
            entry_pages: 3,
            frames: 1 << 30,
        };
        assert_eq!(DumpHeader::decode(&header.encode(HEADER_MAGIC), false), Some(header));
        assert_eq!(DumpHeader::decode(&header.encode(HEADER_MAGIC), true), None);
        assert_eq!(DumpHeader::decode(&PageBuf::zero(), false), None);
    }
}
