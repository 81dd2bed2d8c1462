//! Reads of slots: neighbouring slots in one flash page are read once.
use super::{NandZones, at_slot, retired};
use crate::nand::SlotRead;
use tantalum_base::{ErrorKind, Payload, Result, SlotNo};
use tantalum_media::zone::{Body, Spare};
use tantalum_runtime::Runtime;

impl<R: Runtime, P: Payload> NandZones<R, P> {
    /// Reads hosts' pages and passes each to `each`, with its index and its spare.
    pub(super) async fn read_pages(
        &self,
        slots: &[SlotNo],
        mut each: impl FnMut(usize, P, Spare),
    ) -> Result<()> {
        let (end_ns, result) = self.submit_reads(slots, |index, found| match found {
            SlotRead::Found(spare, Body::Data(page)) => {
                each(index, page, spare);
                Ok(())
            }
            _ => Err(at_slot(ErrorKind::Corrupt, slots[index])),
        })?;
        self.finish(end_ns).await?;
        result
    }

    /// Submits the reads of `slots` and passes the results to `out`. Returns the end time, and the
    /// first failure.
    pub(super) fn submit_reads(
        &self,
        slots: &[SlotNo],
        mut out: impl FnMut(usize, SlotRead<P>) -> Result<()>,
    ) -> Result<(u64, Result<()>)> {
        let now_ns = self.runtime.now_ns();
        let mut array = self.nand.array();
        self.powered(array.power)?;
        let table = self.table.borrow();
        let (mut end_ns, mut result) = (now_ns, Ok(()));
        let mut places = self.places.borrow_mut();
        places.clear();
        places.extend(slots.iter().map(|slot| {
            self.locate(&table, self.geometry.zone_of(*slot), self.geometry.offset_of(*slot))
        }));
        array.fetch(places.iter().map(|(page, slot_in_block)| (page.block, *slot_in_block)));
        let unit = self.geometry.append_unit_slots as usize;
        let mut at = 0;
        while at < slots.len() {
            let zone = self.geometry.zone_of(slots[at]);
            if table.zones[zone.index()].retired {
                return Err(retired(zone));
            }
            let (page, _) = places[at];
            // Neighbouring slots in one flash page are sensed once.
            let rest = &places[at..slots.len().min(at + unit)];
            let run = rest.iter().take_while(|(other, _)| *other == page).count();
            end_ns = end_ns.max(array.read(now_ns, page));
            for index in at..at + run {
                let checked = match array.slot(page.block, places[index].1) {
                    SlotRead::Unreadable => {
                        array.count_uncorrectable();
                        Err(at_slot(ErrorKind::Uncorrectable, slots[index]))
                    }
                    found => out(index, found),
                };
                if result.is_ok() {
                    result = checked;
                }
            }
            at += run;
        }
        Ok((end_ns, result))
    }
}
