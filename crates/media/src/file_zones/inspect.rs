//! Reads everything that one opening of a zone left, for a check. This includes content that nothing refers to any
//! more.
use super::FileZones;
use super::header::{self, Place};
use super::scan::Scanner;
use crate::block_store::BlockStore;
use crate::zone::{InspectedZone, ZoneMedia};
use tantalum_base::checksum::crc32c;
use tantalum_base::{ErrorKind, PAGE_BYTES, Result, ZoneNo};

impl<S: BlockStore> FileZones<S> {
    pub(super) async fn inspect_zone(&self, zone: ZoneNo, epoch: u64) -> Result<InspectedZone> {
        let slots_per_zone = self.options.slots_per_zone;
        let scanner = Scanner::new(self.options.volume_id, zone.0, slots_per_zone, Some(epoch));
        let mut inspection =
            Inspection { zone, epoch, scanner, found: InspectedZone::default(), zones: self };
        let chunk_slots = (Self::SCAN_READ_BYTES / PAGE_BYTES as u64) as u32;
        let mut offset = 0;
        while offset < slots_per_zone {
            let slots = chunk_slots.min(slots_per_zone - offset);
            inspection.read(offset, slots).await?;
            offset += slots;
        }
        Ok(inspection.finish())
    }
}

struct Inspection<'a, S> {
    zones: &'a FileZones<S>,
    zone: ZoneNo,
    epoch: u64,
    scanner: Scanner,
    found: InspectedZone,
}

impl<S: BlockStore> Inspection<'_, S> {
    /// Reads `slots` slots from `offset` on in one operation, or one by one if that fails.
    async fn read(&mut self, offset: u32, slots: u32) -> Result<()> {
        let first = self.zones.geometry().slot(self.zone, offset);
        let buf = self.zones.store.buffer(slots as usize * PAGE_BYTES);
        match self.zones.store.read(self.zones.byte_of(first), buf).await {
            Ok(buf) => {
                for (at, content) in (offset..).zip(buf.chunks_exact(PAGE_BYTES)) {
                    self.take(at, content);
                }
                self.zones.store.recycle(buf);
            }
            Err(error) if error.kind() == ErrorKind::PowerCut => return Err(error),
            Err(error) if slots == 1 => {
                let at = format!("reading slot {offset} of zone {}", self.zone);
                self.found.unreadable.push((offset, error.wrap(at)));
                self.found.checksums.push(None);
            }
            Err(_) => {
                for at in offset..offset + slots {
                    Box::pin(self.read(at, 1)).await?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, offset: u32, content: &[u8]) {
        let checksum = crc32c(content);
        self.found.checksums.push(Some(checksum));
        self.scanner.checked_slot(offset, content, || checksum);
        let volume_id = self.zones.options.volume_id;
        let place = Place { volume_id, zone: self.zone.0, offset };
        if !header::resembles(content, place, self.epoch) {
            return;
        }
        match header::decode(content, place) {
            None => self.found.broken_headers.push(offset),
            Some(_) if !header::is_zero_where_unused(content) => {
                self.found.odd_headers.push(offset)
            }
            Some(_) => {}
        }
    }

    /// The result. A host page may look like a header; such a page lies inside an append and is not counted.
    fn finish(self) -> InspectedZone {
        let mut found = self.found;
        found.appends = self.scanner.finish();
        let appends = &found.appends;
        let inside = |offset: &u32| {
            let at = appends.partition_point(|append| append.first_offset <= *offset);
            at > 0 && *offset < appends[at - 1].end_offset
        };
        found.broken_headers.retain(|offset| !inside(offset));
        found.odd_headers.retain(|offset| !inside(offset));
        found
    }
}
