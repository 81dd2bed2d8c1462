//! Scans: find the appends recorded in a zone's flash pages, or in only their spare areas.
use super::NandZones;
use super::append_log::LoggedAppend;
use crate::nand::{Array, SlotRead};
use tantalum_base::{Payload, Result, ZoneNo};
use tantalum_media::zone::ScannedAppend;
use tantalum_runtime::Runtime;

/// The part of a flash page that is transferred.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Whole,
    Spare,
}

impl<R: Runtime, P: Payload> NandZones<R, P> {
    /// Reads the zone's flash pages from `from_offset` to `end_offset`. Returns the end time.
    pub(super) fn sense(
        &self,
        array: &mut Array<P>,
        zone: ZoneNo,
        from_offset: u32,
        end_offset: u32,
        part: Part,
    ) -> u64 {
        let now_ns = self.runtime.now_ns();
        let unit = self.geometry.append_unit_slots;
        let table = self.table.borrow();
        let mut end_ns = now_ns;
        for flash_page in from_offset / unit..end_offset.div_ceil(unit) {
            let (page, _) = self.locate(&table, zone, flash_page * unit);
            end_ns = end_ns.max(match part {
                Part::Whole => array.read(now_ns, page),
                Part::Spare => array.read_spare(now_ns, page),
            });
        }
        end_ns
    }

    /// Reads `part` of each of the zone's flash pages. Returns the appends found.
    pub(super) async fn scan_part(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
        part: Part,
    ) -> Result<Vec<ScannedAppend>> {
        let (end_ns, found) = {
            let array = &mut *self.nand.array();
            self.powered(array.power)?;
            // The log of a retired zone is empty: its blocks may serve other zones.
            let appends: Vec<LoggedAppend> =
                self.table.borrow().zones[zone.index()].log.from(from_offset).collect();
            let end_offset = appends.last().map_or(from_offset, |last| {
                last.first_offset + self.geometry.append_slots(last.pages)
            });
            let end_ns = self.sense(array, zone, from_offset, end_offset, part);
            let found: Vec<ScannedAppend> =
                appends.iter().filter_map(|append| self.scanned(array, zone, append)).collect();
            (end_ns, found)
        };
        self.finish(end_ns).await?;
        let epoch = epoch.or(found.first().map(|first| first.header.epoch));
        Ok(found.into_iter().filter(|append| Some(append.header.epoch) == epoch).collect())
    }

    /// The result of a scan for one append; `None` if none of it can be read.
    fn scanned(
        &self,
        array: &Array<P>,
        zone: ZoneNo,
        append: &LoggedAppend,
    ) -> Option<ScannedAppend> {
        let table = self.table.borrow();
        let LoggedAppend { header, first_offset, pages } = *append;
        // Each flash page of an append contains the header.
        let readable = (first_offset..first_offset + pages).any(|offset| {
            let (page, slot) = self.locate(&table, zone, offset);
            array.is_whole(page.block, slot)
        });
        readable.then(|| {
            let mut found = ScannedAppend {
                header,
                first_offset,
                end_offset: first_offset + self.geometry.append_slots(pages),
                spares: vec![None; pages as usize],
                damaged: Vec::new(),
            };
            for index in 0..pages {
                let (page, slot) = self.locate(&table, zone, first_offset + index);
                match array.slot(page.block, slot) {
                    SlotRead::Found(spare, body) if body.checksum() == spare.checksum => {
                        found.spares[index as usize] = Some(spare);
                    }
                    SlotRead::Found(spare, _) => found.damaged.push((index, spare)),
                    SlotRead::Blank | SlotRead::Unreadable => {}
                }
            }
            found
        })
    }
}
