//! Zones as superblocks over simulated NAND.
//!
//! A zone consists of one block of every plane. Its slots run across the planes first: slot `i` is
//! in the zone's flash page `i / unit`, which is page `i / unit / planes` of the block in plane `i
//! / unit % planes`. So neighbouring flash pages are on different channels, and one open zone keeps
//! all channels busy.
//!
//! Programs are durable when they complete, so `sync` does nothing.
mod append_log;
mod read;
mod scan;
mod table;

#[cfg(test)]
mod tests;

use crate::nand::{Nand, PageAddr, SlotRead};
use append_log::AppendLog;
use scan::Part;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use table::ZoneTable;
use tantalum_base::{Error, ErrorKind, PageBuf, Payload, Result, SlotNo, ZoneNo};
use tantalum_media::cut::Fate;
use tantalum_media::zone::{AppendHeader, Body, ScannedAppend, Spare, ZoneGeometry, ZoneMedia};
use tantalum_runtime::Runtime;

/// How an array is divided into zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NandZonesOptions {
    /// Number of blocks of each plane that belong to no zone and replace bad ones.
    pub spare_blocks_per_plane: u32,
    /// Maximum number of pages in one append, up to 65,535.
    pub append_pages_max: u32,
}

impl Default for NandZonesOptions {
    fn default() -> Self {
        NandZonesOptions { spare_blocks_per_plane: 0, append_pages_max: 64 }
    }
}

/// Zones over a NAND array, for the virtual or the live runtime.
pub struct NandZones<R, P> {
    runtime: R,
    nand: Nand<P>,
    table: Rc<RefCell<ZoneTable>>,
    geometry: ZoneGeometry,
    planes: u32,
    // The array's number of power cuts when this was opened: after another one every operation
    // fails.
    power: u64,
    // Number of mapping-table pages programmed since.
    mapping_programs: Cell<u64>,
    // Buffer for reads: the flash page of each slot, and the slot's number in the block.
    places: RefCell<Vec<(PageAddr, u32)>>,
}

impl<R: Runtime, P: Payload> NandZones<R, P> {
    /// Divides a new array into zones.
    ///
    /// # Errors
    /// `InvalidInput` if the options leave no zone or no append.
    pub fn new(runtime: R, nand: Nand<P>, options: NandZonesOptions) -> Result<Self> {
        let NandZonesOptions { spare_blocks_per_plane, append_pages_max } = options;
        let shape = nand.geometry();
        if spare_blocks_per_plane >= shape.blocks_per_plane
            || !(1..=u32::from(u16::MAX)).contains(&append_pages_max)
        {
            let context = format!("zones over NAND with {shape:?} and {options:?}");
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let planes = shape.planes();
        let geometry = ZoneGeometry {
            zones: shape.blocks_per_plane - spare_blocks_per_plane,
            slots_per_zone: planes * shape.slots_per_block(),
            append_unit_slots: shape.slots_per_page(),
            append_overhead_slots: 0,
            append_pages_max,
        };
        let table = ZoneTable::new(&nand.array(), spare_blocks_per_plane);
        let power = nand.power_cuts();
        let table = Rc::new(RefCell::new(table));
        let mapping_programs = Cell::new(0);
        let places = RefCell::default();
        Ok(NandZones { runtime, nand, table, geometry, planes, power, mapping_programs, places })
    }

    /// The zones of the same array on a new executor, after a loss of power. If the power was not
    /// cut, operations in flight are completed first. Zones must be reset before they are appended
    /// to.
    pub fn reopen<S: Runtime>(&self, runtime: S) -> NandZones<S, P> {
        // Needed even without an earlier cut: the new executor's clock is unrelated to the old
        // one's.
        self.nand.power_cut(u64::MAX, |_| Fate::Land);
        self.table.borrow_mut().power_on(&self.nand.array());
        NandZones {
            runtime,
            nand: self.nand.clone(),
            table: Rc::clone(&self.table),
            geometry: self.geometry,
            planes: self.planes,
            power: self.nand.power_cuts(),
            mapping_programs: Cell::new(0),
            places: RefCell::default(),
        }
    }

    /// The array underneath.
    pub fn nand(&self) -> &Nand<P> {
        &self.nand
    }

    /// The smallest number of replacement blocks left in a plane.
    pub fn spare_blocks_min(&self) -> u32 {
        let table = self.table.borrow();
        (0..self.planes).map(|plane| table.spare_blocks(plane)).min().unwrap_or(0)
    }

    /// The flash page of the zone's slot `offset`, and the slot's number in the block.
    #[inline]
    fn locate(&self, table: &ZoneTable, zone: ZoneNo, offset: u32) -> (PageAddr, u32) {
        let unit = self.geometry.append_unit_slots;
        let flash_page = offset / unit;
        let page = flash_page / self.planes;
        let block = table.block(zone, flash_page % self.planes);
        (block.page(page), page * unit + offset % unit)
    }

    fn powered(&self, power: u64) -> Result<()> {
        if power == self.power { Ok(()) } else { Err(power_cut()) }
    }

    /// Sleeps until the end of an operation. Returns an error if the power was cut in the meantime.
    async fn finish(&self, end_ns: u64) -> Result<()> {
        self.runtime.sleep_until(end_ns).await;
        self.powered(self.nand.power_cuts())
    }

    /// Submits an append. Returns its first slot, its end time, and whether it succeeds.
    fn submit_append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<P>],
    ) -> Result<(u32, u64, bool)> {
        let now_ns = self.runtime.now_ns();
        let mut array = self.nand.array();
        self.powered(array.power)?;
        let table = &mut *self.table.borrow_mut();
        let pages = bodies.len() as u32;
        assert!(
            spares.len() == bodies.len() && (1..=self.geometry.append_pages_max).contains(&pages),
            "append of {pages} pages with {} spares to {zone:?}",
            spares.len(),
        );
        let state = &mut table.zones[zone.index()];
        let first = state.next_offset;
        let end = first + self.geometry.append_slots(pages);
        assert!(
            end <= self.geometry.slots_per_zone && !state.retired && !state.sealed,
            "append of {pages} pages at {first} of {zone:?}, which has {} slots, retired: {}, \
             needs a reset: {}",
            self.geometry.slots_per_zone,
            state.retired,
            state.sealed,
        );
        state.next_offset = end;
        // The previous reset is over, even if nobody waited for its end.
        state.log_before_reset = None;
        state.log.push(header, first, pages);
        if end == self.geometry.slots_per_zone {
            state.log.shrink();
        }
        array.begin_mutation();
        let (mut end_ns, mut ok) = (now_ns, true);
        let unit = self.geometry.append_unit_slots as usize;
        let planes = self.planes;
        let flash_page = first / unit as u32;
        let (mut plane, mut page) = (flash_page % planes, flash_page / planes);
        for (spares, bodies) in spares.chunks(unit).zip(bodies.chunks(unit)) {
            let at = table.block(zone, plane).page(page);
            let outcome = array.program(now_ns, at, spares, bodies);
            end_ns = end_ns.max(outcome.end_ns());
            ok &= outcome.ok;
            plane += 1;
            if plane == planes {
                (plane, page) = (0, page + 1);
            }
        }
        if array.end_mutation(now_ns) {
            return Err(power_cut());
        }
        Ok((first, end_ns, ok))
    }
}

impl<R: Runtime, P: Payload> ZoneMedia for NandZones<R, P> {
    type Page = P;

    fn reads_spares(&self) -> bool {
        true
    }

    fn geometry(&self) -> ZoneGeometry {
        self.geometry
    }

    fn retired(&self) -> Vec<ZoneNo> {
        let table = self.table.borrow();
        let retired = table.zones.iter().enumerate().filter(|(_, zone)| zone.retired);
        retired.map(|(number, _)| ZoneNo(number as u32)).collect()
    }

    async fn append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<P>],
        _durable: bool,
    ) -> Result<SlotNo> {
        let (first, end_ns, ok) = self.submit_append(zone, header, spares, bodies)?;
        self.finish(end_ns).await?;
        if !ok {
            let context = format!("append at offset {first} of {zone:?}");
            return Err(Error::new(ErrorKind::ProgramFailed, context));
        }
        Ok(self.geometry.slot(zone, first))
    }

    async fn read(&self, slots: &[SlotNo], out: &mut [P]) -> Result<()> {
        assert_eq!(slots.len(), out.len(), "slots and pages of a read");
        self.read_pages(slots, |index, page, _| out[index] = page).await
    }

    async fn read_with_spares(
        &self,
        slots: &[SlotNo],
        out: &mut [P],
        spares: &mut [Option<Spare>],
    ) -> Result<()> {
        assert_eq!(slots.len(), out.len(), "slots and pages of a read");
        assert_eq!(slots.len(), spares.len(), "slots and spares of a read");
        let each = |index: usize, page, spare| (out[index], spares[index]) = (page, Some(spare));
        self.read_pages(slots, each).await
    }

    async fn read_meta_run(&self, first: SlotNo, out: &mut [PageBuf]) -> Result<()> {
        for (slot, page) in (first.0..).map(SlotNo).zip(out) {
            let (end_ns, result) = self.submit_reads(&[slot], |_, found| match found {
                SlotRead::Found(_, Body::Meta(bytes)) => {
                    *page = bytes;
                    Ok(())
                }
                _ => Err(at_slot(ErrorKind::Corrupt, slot)),
            })?;
            self.finish(end_ns).await?;
            result?;
        }
        Ok(())
    }

    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        self.scan_part(zone, from_offset, epoch, Part::Whole).await
    }

    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>> {
        self.scan_part(zone, 0, None, Part::Spare).await
    }

    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>> {
        let (end_ns, header) = {
            let array = &mut *self.nand.array();
            self.powered(array.power)?;
            if self.table.borrow().zones[zone.index()].retired {
                return Ok(None);
            }
            let first = self.table.borrow().zones[zone.index()].log.from(0).next();
            let end_ns = self.sense(array, zone, 0, 1, Part::Whole);
            let table = self.table.borrow();
            let (page, slot) = self.locate(&table, zone, 0);
            let whole = array.is_whole(page.block, slot);
            (end_ns, first.filter(|_| whole).map(|append| append.header))
        };
        self.finish(end_ns).await?;
        Ok(header)
    }

    async fn reset(&self, zone: ZoneNo) -> Result<()> {
        let end_ns = {
            let now_ns = self.runtime.now_ns();
            let array = &mut *self.nand.array();
            self.powered(array.power)?;
            let table = &mut *self.table.borrow_mut();
            if table.zones[zone.index()].retired {
                return Err(retired(zone));
            }
            array.begin_mutation();
            let end_ns = table.erase_zone(array, zone, now_ns);
            let state = &mut table.zones[zone.index()];
            let log = std::mem::take(&mut state.log);
            if !log.is_empty() {
                state.log_before_reset = Some(log);
            }
            state.next_offset = 0;
            state.sealed = false;
            if array.end_mutation(now_ns) {
                return Err(power_cut());
            }
            end_ns
        };
        self.finish(end_ns).await?;
        let state = &mut self.table.borrow_mut().zones[zone.index()];
        state.log_before_reset = None::<AppendLog>;
        if state.retired { Err(retired(zone)) } else { Ok(()) }
    }

    async fn sync(&self) -> Result<()> {
        self.powered(self.nand.power_cuts())
    }

    fn anchors(&self) -> u32 {
        0
    }

    async fn write_anchor(&self, _number: u64, _content: &[u8]) -> Result<()> {
        panic!("zones over NAND have no anchors: the first page of each zone tells what it holds")
    }

    async fn read_anchors(&self) -> Result<Vec<(u64, Vec<u8>)>> {
        Ok(Vec::new())
    }

    async fn persist_mapping(&self) -> Result<()> {
        self.powered(self.nand.power_cuts())?;
        let nth = self.mapping_programs.get();
        self.mapping_programs.set(nth + 1);
        let end_ns = self.nand.array().program_mapping(self.runtime.now_ns(), nth);
        self.finish(end_ns).await
    }
}

fn power_cut() -> Error {
    Error::new(ErrorKind::PowerCut, "the power of the NAND array was cut")
}

fn retired(zone: ZoneNo) -> Error {
    Error::new(ErrorKind::ZoneRetired, format!("{zone:?} has too many bad blocks"))
}

fn at_slot(kind: ErrorKind, slot: SlotNo) -> Error {
    let what = match kind {
        ErrorKind::Uncorrectable => "cannot be read back",
        _ => "holds nothing of that kind",
    };
    Error::new(kind, format!("{slot:?} {what}"))
}
