//! Writes the dump at a power loss, on stored energy: the buffer pool, and the mapping entries that
//! are in no durable page (DuraSSD paper, section 3.4.1).
//!
//! ```text
//! header   the emergency flag: the opening, checkpoint and delta pages on which the dump builds
//! deltas   changed mapping entries, as in delta pages
//! frames   one page of a host each; its spare has the page number, and the index in the dump
//! footer   the dump is complete
//! ```
//!
//! Header and footer are separate appends, the footer last. The dump's number is the epoch of its
//! zones, higher than any before, so a checkpoint can state up to which number dumps are void, even
//! while they are still in the dump area. `docs/format.md` has the bytes.
use tantalum_base::{
    Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, Payload, Result, Version, ZoneNo,
};
use tantalum_media::{AppendHeader, Body, SlotKind, Spare, ZoneMedia};

use crate::dump::delta_pages::ENTRIES_MIN;
use crate::dump::energy::{DumpOptions, dump_slots, plain_slots, wasted_slots, zones_for};
use crate::dump::header::{DumpHeader, FOOTER_MAGIC, HEADER_MAGIC};
use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::space::Stream;

/// The result of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpReport {
    /// Frames of the buffer pool written.
    pub frames: u32,
    /// Mapping entries written: those that were in no durable page.
    pub entries: u32,
    /// Bytes programmed, headers and padding included.
    pub bytes: u64,
    /// Bytes that the stored energy could have programmed.
    pub budget_bytes: u64,
    /// The dump's number; 0 if there was nothing to dump.
    pub number: u64,
}

/// The place of the next append of a dump, and the bytes programmed so far.
struct Area {
    zones: std::vec::IntoIter<ZoneNo>,
    zone: Option<ZoneNo>,
    used_slots: u32,
    bytes: u64,
}

/// A metadata page with its index in the dump.
fn own_page<P>(body: PageBuf, index: u64) -> (Spare, Body<P>) {
    let (kind, checksum) = (SlotKind::Dump, body.checksum());
    (Spare { kind, page: PageNo(index), version: Version(index), checksum }, Body::Meta(body))
}

/// The pages between header and footer.
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

fn no_energy() -> Error {
    Error::new(ErrorKind::InvalidInput, "this device has no energy for a dump")
}

impl<M: ZoneMedia> Ftl<M> {
    /// Bytes that a dump with `frames` frames would program now, if no program fails.
    pub fn bytes_to_dump(&self, frames: u32) -> u64 {
        let parts = self.parts.borrow();
        let held = parts.dump.as_ref().map_or(0, |dump| dump.log.held());
        let entry_pages = held.div_ceil(ENTRIES_MIN as u32);
        let slots = plain_slots(&self.geometry, entry_pages, frames);
        let slots = slots + zones_for(&self.geometry, slots) * wasted_slots(&self.geometry);
        slots * PAGE_BYTES as u64
    }

    /// Writes the dump through `media`, a new handle on the medium, while stored energy powers this
    /// FTL's memory. All of its tasks must have ended.
    ///
    /// # Errors
    /// `PowerCut` if the energy does not suffice; the medium's errors. The next recovery then finds
    /// an incomplete dump, and reports it.
    pub async fn dump(&self, media: &M, frames: &[(PageNo, M::Page)]) -> Result<DumpReport> {
        let Some(options) = self.options.dump else { return Err(no_energy()) };
        let (header, entries, held, zones) = {
            let parts = self.parts.borrow();
            let Some(dump) = &parts.dump else { return Err(no_energy()) };
            assert!(dump.in_force.is_none(), "the dump area still holds another dump");
            let copied = &parts.relocation.copied;
            let entries = dump.log.dump(&parts.map, parts.log.shares.undurable(), copied);
            let header = DumpHeader {
                number: parts.space.epoch() + 1,
                checkpoint: parts.checkpoints.in_force,
                deltas_up_to: dump.log.written_up_to(),
                next_version: parts.log.next_version(),
                delta_pages: dump.log.pages(),
                entry_pages: entries.len() as u32,
                frames: frames.len() as u32,
            };
            (header, entries, dump.log.held(), parts.space.dump_zones())
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

    /// Checks that the budget suffices even with a full buffer pool and the most failed programs.
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

    /// Appends pages to the dump area, in as few appends as possible.
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
                    Error::new(
                        ErrorKind::OutOfSpace,
                        "the dump area is full: the content of the write cache is lost",
                    )
                })?;
                // The zone was erased before, so this takes no time and no energy.
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
                // Repeat in the next zone.
                Err(error) if error.kind() == ErrorKind::ProgramFailed => area.zone = None,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
