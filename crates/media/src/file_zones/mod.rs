//! Zones as fixed extents of a flat store.
//!
//! An append is one contiguous write: a header page with the spares and their checksums, then the pages
//! (docs/format.md, "File zones"). A header holds its own checksum, its volume, zone and place, and the checksum of
//! every page. So torn or misdirected appends and decayed pages are detected without any other data.
//!
//! # Leftovers of a reset
//! A reset writes nothing: it only makes the next append start at slot 0. Old content stays on the store until it is
//! overwritten. Its epoch distinguishes it from later appends, because a scan returns only the latest epoch. So the
//! caller guarantees:
//! - every opening of a zone uses a larger epoch than every earlier opening on the device;
//! - a zone is reset only if nothing in it is needed, even if a power cut undoes the reset;
//! - a zone is deallocated, and then reads as zeros in whole or in part, only if no recovery looks for anything in
//!   it;
//! - a caller that knows the epoch of a zone passes it to [`scan`](ZoneMedia::scan). Without an epoch, a zone whose
//!   new appends were all lost returns its content from before the reset: old pages with their true versions, which
//!   lose against newer ones. A record that only changes the mapping (a trim) must be kept as long as such a page can
//!   be found.
//!
//! # After opening
//! After opening, the next free slot of a zone is unknown, so a zone accepts appends only after a reset. Older
//! content can be read and scanned.
mod anchors;
mod header;
mod inspect;
mod read;
mod scan;

use crate::block_store::{BlockStore, IoBuf};
use crate::zone::{
    AnchorCopies, AppendHeader, Body, InspectedZone, ScannedAppend, Spare, ZoneGeometry, ZoneMedia,
};
use anchors::AnchorArea;
pub use anchors::{ANCHOR_BYTES_MAX, ANCHOR_MAGIC, anchor_area_bytes};
pub use header::APPEND_PAGES_MAX;
use header::Place;
use scan::Scanner;
use std::cell::RefCell;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, Result, ResultExt, SlotNo, ZoneNo};
use tantalum_runtime::sync::WaitQueue;

/// Location and volume of the zones.
#[derive(Clone, Copy, Debug)]
pub struct FileZonesOptions {
    /// Identity of the volume. Content that another volume left on the store is ignored.
    pub volume_id: u128,
    /// Start of the first zone, in bytes from the start of the store; a multiple of 4096.
    pub first_byte: u64,
    /// Number of zones.
    pub zones: u32,
    /// Pages of 4096 bytes in a zone, headers included; at least 2.
    pub slots_per_zone: u32,
}

/// Zones over a [`BlockStore`].
pub struct FileZones<S> {
    store: S,
    options: FileZonesOptions,
    zones: RefCell<Vec<Zone>>,
    prepared: WaitQueue,
    anchors: Option<AnchorArea>,
}

#[derive(Clone, Copy)]
struct Zone {
    /// Slot of the next append; unknown until the zone is reset.
    next_offset: Option<u32>,
    preparation: Preparation,
}

/// Whether the extent of the zone was written before, so that a write costs no journal commit of the file system.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Preparation {
    Unknown,
    Running,
    Done,
}

impl<S: BlockStore> FileZones<S> {
    /// Bytes that a scan reads in one operation.
    const SCAN_READ_BYTES: u64 = 1 << 20;

    /// Zones on `store`.
    ///
    /// # Errors
    /// `InvalidInput` if they do not fit in the store, or the options are invalid.
    pub fn new(store: S, options: FileZonesOptions) -> Result<Self> {
        let FileZonesOptions { first_byte, zones, slots_per_zone, .. } = options;
        let invalid = |reason: String| Err(Error::new(ErrorKind::InvalidInput, reason));
        if zones == 0 || slots_per_zone < 2 || zones.checked_mul(slots_per_zone).is_none() {
            return invalid(format!(
                "{zones} zones of {slots_per_zone} slots are not a valid geometry"
            ));
        }
        if !first_byte.is_multiple_of(PAGE_BYTES as u64) {
            return invalid(format!(
                "zones cannot start at byte {first_byte}: it is not the start of a page"
            ));
        }
        let needed = u64::from(zones) * u64::from(slots_per_zone) * PAGE_BYTES as u64;
        if first_byte.checked_add(needed).is_none_or(|end| end > store.bytes()) {
            return invalid(format!(
                "{zones} zones of {slots_per_zone} slots from byte {first_byte} on do not fit in \
                 {} bytes",
                store.bytes()
            ));
        }
        let zone = Zone { next_offset: None, preparation: Preparation::Unknown };
        let zones = RefCell::new(vec![zone; zones as usize]);
        let prepared = WaitQueue::new("a zone's preparation");
        Ok(FileZones { store, options, zones, prepared, anchors: None })
    }

    /// The store underneath.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The byte of the store at which `slot` starts.
    pub fn byte_of(&self, slot: SlotNo) -> u64 {
        self.options.first_byte + u64::from(slot.0) * PAGE_BYTES as u64
    }

    /// Allocates the next place in `zone` for an append of `pages` pages.
    fn take_place(&self, zone: ZoneNo, pages: u32) -> u32 {
        let mut zones = self.zones.borrow_mut();
        let next_offset = &mut zones[zone.index()].next_offset;
        let Some(offset) = *next_offset else {
            panic!("zone {zone} was not reset since it was opened: no append");
        };
        let end = offset + 1 + pages;
        assert!(
            end <= self.options.slots_per_zone,
            "an append of {pages} pages does not fit in zone {zone} from slot {offset} on"
        );
        *next_offset = Some(end);
        offset
    }

    /// Prepares the zone's extent once, before the first append to it; concurrent appends wait.
    async fn prepare(&self, zone: ZoneNo) -> Result<()> {
        let state = || self.zones.borrow()[zone.index()].preparation;
        while state() != Preparation::Done {
            if state() == Preparation::Running {
                self.prepared.until(|| (state() != Preparation::Running).then_some(())).await;
                continue;
            }
            self.set_preparation(zone, Preparation::Running);
            let mut running =
                RunningPreparation { zones: self, zone, reached: Preparation::Unknown };
            let bytes = u64::from(self.options.slots_per_zone) * PAGE_BYTES as u64;
            let first_byte = self.byte_of(self.geometry().slot(zone, 0));
            self.store
                .prepare(first_byte, bytes)
                .await
                .context(|| format!("preparing zone {zone}"))?;
            running.reached = Preparation::Done;
        }
        Ok(())
    }

    fn set_preparation(&self, zone: ZoneNo, preparation: Preparation) {
        self.zones.borrow_mut()[zone.index()].preparation = preparation;
        self.prepared.wake_all();
    }

    /// Encodes the append as it is written to the store.
    fn encode(
        &self,
        zone: ZoneNo,
        offset: u32,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<PageBuf>],
    ) -> IoBuf {
        let mut buf = self.store.buffer((1 + bodies.len()) * PAGE_BYTES);
        let (head, pages) = buf.split_at_mut(PAGE_BYTES);
        let place = Place { volume_id: self.options.volume_id, zone: zone.0, offset };
        header::encode(head, place, header, spares);
        for (page, body) in pages.chunks_exact_mut(PAGE_BYTES).zip(bodies) {
            let (Body::Data(bytes) | Body::Meta(bytes)) = body;
            page.copy_from_slice(&bytes[..]);
        }
        buf
    }
}

/// Ends a preparation even if its future is dropped; otherwise appends would wait for it forever.
struct RunningPreparation<'a, S: BlockStore> {
    zones: &'a FileZones<S>,
    zone: ZoneNo,
    reached: Preparation,
}

impl<S: BlockStore> Drop for RunningPreparation<'_, S> {
    fn drop(&mut self) {
        self.zones.set_preparation(self.zone, self.reached);
    }
}

impl<S: BlockStore> ZoneMedia for FileZones<S> {
    type Page = PageBuf;

    fn reads_spares(&self) -> bool {
        false
    }

    fn geometry(&self) -> ZoneGeometry {
        ZoneGeometry {
            zones: self.options.zones,
            slots_per_zone: self.options.slots_per_zone,
            append_unit_slots: 1,
            append_overhead_slots: 1,
            append_pages_max: header::APPEND_PAGES_MAX.min(self.options.slots_per_zone - 1),
        }
    }

    fn retired(&self) -> Vec<ZoneNo> {
        Vec::new()
    }

    async fn append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<PageBuf>],
        durable: bool,
    ) -> Result<SlotNo> {
        let geometry = self.geometry();
        assert_eq!(spares.len(), bodies.len(), "an append needs one spare a body");
        assert!(
            (1..=geometry.append_pages_max as usize).contains(&bodies.len()),
            "an append has 1 to {} pages, not {}",
            geometry.append_pages_max,
            bodies.len()
        );
        let offset = self.take_place(zone, bodies.len() as u32);
        if self.zones.borrow()[zone.index()].preparation != Preparation::Done {
            self.prepare(zone).await?;
        }
        let slot = geometry.slot(zone, offset);
        let buf = self.encode(zone, offset, header, spares, bodies);
        let buf = self.store.write(self.byte_of(slot), buf, durable).await.context(|| {
            format!("append of {} pages to zone {zone} at slot {offset}", bodies.len())
        })?;
        self.store.recycle(buf);
        Ok(SlotNo(slot.0 + 1))
    }

    /// Returns the bytes of any slot, even FTL metadata or the header of an append, because a file slot has no spare
    /// that distinguishes them. The caller detects these by the checksum that it expects.
    async fn read(&self, slots: &[SlotNo], out: &mut [PageBuf]) -> Result<()> {
        self.read_slots(slots, out).await
    }

    async fn read_with_spares(
        &self,
        slots: &[SlotNo],
        out: &mut [PageBuf],
        _spares: &mut [Option<Spare>],
    ) -> Result<()> {
        self.read(slots, out).await
    }

    async fn read_meta_run(&self, first: SlotNo, out: &mut [PageBuf]) -> Result<()> {
        let slots: Vec<SlotNo> = (first.0..).map(SlotNo).take(out.len()).collect();
        self.read_slots(&slots, out).await
    }

    /// Reads the zone in large pieces. Without an `epoch` it always reads from the start of the zone, whatever
    /// `from_offset` is, to find the latest epoch.
    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        let FileZonesOptions { volume_id, slots_per_zone, .. } = self.options;
        assert!(from_offset <= slots_per_zone, "slot {from_offset} is not in zone {zone}");
        let mut scanner = Scanner::new(volume_id, zone.0, slots_per_zone, epoch);
        let mut offset = if epoch.is_some() { from_offset } else { 0 };
        let chunk_slots = (Self::SCAN_READ_BYTES / PAGE_BYTES as u64) as u32;
        while offset < slots_per_zone {
            let slots = chunk_slots.min(slots_per_zone - offset);
            let byte = self.byte_of(self.geometry().slot(zone, offset));
            let buf = self.store.buffer(slots as usize * PAGE_BYTES);
            let buf = self
                .store
                .read(byte, buf)
                .await
                .context(|| format!("scan of zone {zone} at slot {offset}"))?;
            for (at, content) in (offset..).zip(buf.chunks_exact(PAGE_BYTES)) {
                scanner.slot(at, content);
            }
            self.store.recycle(buf);
            offset += slots;
        }
        let mut appends = scanner.finish();
        if !appends.is_empty() {
            self.set_preparation(zone, Preparation::Done);
        }
        appends.retain(|append| append.first_offset > from_offset);
        Ok(appends)
    }

    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>> {
        self.scan(zone, 0, None).await
    }

    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>> {
        let slot = self.geometry().slot(zone, 0);
        let buf = self.store.buffer(PAGE_BYTES);
        let buf = self
            .store
            .read(self.byte_of(slot), buf)
            .await
            .context(|| format!("reading the first header of zone {zone}"))?;
        let place = Place { volume_id: self.options.volume_id, zone: zone.0, offset: 0 };
        let header = header::decode_header(&buf, place);
        self.store.recycle(buf);
        if header.is_some() {
            self.set_preparation(zone, Preparation::Done);
        }
        Ok(header)
    }

    async fn reset(&self, zone: ZoneNo) -> Result<()> {
        self.zones.borrow_mut()[zone.index()].next_offset = Some(0);
        Ok(())
    }

    async fn give_room_back(&self, zone: ZoneNo) -> Result<bool> {
        let bytes = u64::from(self.options.slots_per_zone) * PAGE_BYTES as u64;
        self.store.give_room_back(self.byte_of(self.geometry().slot(zone, 0)), bytes).await
    }

    fn zones_with_room(&self) -> Vec<bool> {
        let zone_bytes = u64::from(self.options.slots_per_zone) * PAGE_BYTES as u64;
        let first_byte = self.options.first_byte;
        let mut with_room = vec![false; self.options.zones as usize];
        let mut from = first_byte;
        while let Some(byte) = self.store.next_room(from) {
            let zone = (byte - first_byte) / zone_bytes;
            let Some(has_room) = with_room.get_mut(zone as usize) else { break };
            *has_room = true;
            from = first_byte + (zone + 1) * zone_bytes;
        }
        with_room
    }

    fn anchors(&self) -> u32 {
        self.anchors.map_or(0, |area| area.places)
    }

    async fn write_anchor(&self, number: u64, content: &[u8]) -> Result<()> {
        self.write_both(number, content).await
    }

    async fn read_anchors(&self) -> Result<Vec<(u64, Vec<u8>)>> {
        self.read_all().await
    }

    async fn inspect(&self, zone: ZoneNo, epoch: u64) -> Result<Option<InspectedZone>> {
        self.inspect_zone(zone, epoch).await.map(Some)
    }

    async fn inspect_anchors(&self) -> Result<Option<AnchorCopies>> {
        Ok(self.read_copies().await)
    }

    async fn sync(&self) -> Result<()> {
        self.store.sync().await
    }

    async fn persist_mapping(&self) -> Result<()> {
        Ok(())
    }
}
