//! Asserts that the caller of a medium obeys the contract of [`ZoneMedia`].
use super::{ZoneLayer, ZoneOperation};
use crate::zone::{AppendHeader, Body, ScannedAppend, Spare, ZoneGeometry, ZoneMedia};
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result, SlotNo, ZoneNo};

/// The checker's state of a zone.
#[derive(Clone, Debug, Default)]
struct Zone {
    // False before the first reset after opening, and after a failure. The zone may then be read, but not appended
    // to.
    open: bool,
    resetting: bool,
    retired: bool,
    next_offset: u32,
    appends_in_flight: u32,
    reads_in_flight: u32,
    epoch: Option<u64>,
    // The largest epoch seen on this zone.
    epoch_max: u64,
    // For each slot below `next_offset`: whether it holds a page of a completed append.
    readable: Vec<bool>,
}

/// Forwards everything and panics if the caller breaks the contract: appends past the end of a zone, appends to a
/// zone that failed or was not reset since opening, reads of slots that no completed append filled, resets of zones
/// in use, decreasing epochs, spares that do not match their pages.
///
/// Any slot may be read until its zone's first reset, because the content at opening is unknown here.
pub struct Checker<M> {
    inner: Rc<M>,
    geometry: ZoneGeometry,
    zones: RefCell<Vec<Zone>>,
}

impl<M: ZoneMedia> Checker<M> {
    /// Checks the use of `inner`, which has just been opened.
    pub fn new(inner: Rc<M>) -> Self {
        let geometry = inner.geometry();
        let mut zones = vec![Zone::default(); geometry.zones as usize];
        for zone in inner.retired() {
            zones[zone.index()].retired = true;
        }
        Checker { inner, geometry, zones: RefCell::new(zones) }
    }

    fn zone<T>(&self, zone: ZoneNo, change: impl FnOnce(&mut Zone) -> T) -> T {
        let mut zones = self.zones.borrow_mut();
        let count = zones.len();
        let state = zones
            .get_mut(zone.index())
            .unwrap_or_else(|| panic!("{zone:?} of a medium of {count} zones"));
        change(state)
    }

    fn start_append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<M::Page>],
    ) -> u32 {
        let geometry = &self.geometry;
        let pages = bodies.len() as u32;
        assert_eq!(spares.len(), bodies.len(), "spares and bodies of an append to {zone:?}");
        assert!(
            (1..=geometry.append_pages_max).contains(&pages),
            "append of {pages} pages to {zone:?}, at most {}",
            geometry.append_pages_max,
        );
        self.zone(zone, |state| {
            assert!(!state.retired, "append to the retired {zone:?}");
            assert!(state.open && !state.resetting, "append to {zone:?}, which was not reset");
            let first = state.next_offset + geometry.append_overhead_slots;
            let end = state.next_offset + geometry.append_slots(pages);
            assert!(
                end <= geometry.slots_per_zone,
                "append up to offset {end} of {zone:?}, which has {} slots",
                geometry.slots_per_zone,
            );
            match state.epoch {
                Some(epoch) => assert_eq!(header.epoch, epoch, "epoch of an append to {zone:?}"),
                None => assert!(
                    header.epoch > state.epoch_max || state.epoch_max == 0,
                    "epoch {} of an append to {zone:?} after epoch {}",
                    header.epoch,
                    state.epoch_max,
                ),
            }
            state.epoch = Some(header.epoch);
            state.epoch_max = state.epoch_max.max(header.epoch);
            state.next_offset = end;
            state.readable.resize(end as usize, false);
            state.appends_in_flight += 1;
            first
        })
    }

    fn end_append(&self, zone: ZoneNo, first: u32, pages: u32, result: &Result<SlotNo>) {
        let expected = self.geometry.slot(zone, first);
        self.zone(zone, |state| {
            state.appends_in_flight -= 1;
            match result {
                Ok(slot) => {
                    assert_eq!(*slot, expected, "place of an append to {zone:?}");
                    state.readable[first as usize..(first + pages) as usize].fill(true);
                }
                Err(_) => state.open = false,
            }
        });
    }

    fn start_reads(&self, slots: impl Iterator<Item = SlotNo>) {
        for slot in slots {
            let zone = self.geometry.zone_of(slot);
            let offset = self.geometry.offset_of(slot) as usize;
            self.zone(zone, |state| {
                assert!(!state.retired, "read of {slot:?} in the retired {zone:?}");
                assert!(!state.resetting, "read of {slot:?} while {zone:?} is being reset");
                // Without an epoch the zone may hold content from before opening.
                let unknown = !state.open && state.epoch.is_none();
                assert!(
                    unknown || state.readable.get(offset).is_some_and(|readable| *readable),
                    "read of {slot:?}, offset {offset} of {zone:?}, where nothing is",
                );
                state.reads_in_flight += 1;
            });
        }
    }

    fn end_reads(&self, slots: impl Iterator<Item = SlotNo>) {
        for slot in slots {
            self.zone(self.geometry.zone_of(slot), |state| state.reads_in_flight -= 1);
        }
    }

    fn start_reset(&self, zone: ZoneNo) {
        self.zone(zone, |state| {
            assert!(!state.resetting, "reset of {zone:?} while it is being reset");
            assert_eq!(state.appends_in_flight, 0, "reset of {zone:?} with appends in flight");
            assert_eq!(state.reads_in_flight, 0, "reset of {zone:?} with reads in flight");
            state.resetting = true;
        });
    }

    fn end_reset(&self, zone: ZoneNo, error: Option<&Error>) {
        self.zone(zone, |state| {
            state.resetting = false;
            state.next_offset = 0;
            state.epoch = None;
            state.readable.clear();
            state.open = error.is_none();
            state.retired |= error.is_some_and(|error| error.kind() == ErrorKind::ZoneRetired);
        });
    }

    fn check_scan(&self, zone: ZoneNo, from_offset: u32, found: &[ScannedAppend]) {
        let mut behind = from_offset;
        for append in found {
            let pages = append.spares.len() as u32;
            assert!(
                append.first_offset >= behind && append.first_offset + pages <= append.end_offset,
                "scan of {zone:?} found {append:?} behind offset {behind}",
            );
            behind = append.end_offset;
        }
        if let Some(last) = found.last() {
            self.zone(zone, |state| state.epoch_max = state.epoch_max.max(last.header.epoch));
        }
    }
}

impl<M: ZoneMedia> ZoneLayer for Checker<M> {
    type Inner = M;

    fn inner(&self) -> &M {
        &self.inner
    }

    async fn around<T>(
        &self,
        operation: ZoneOperation<'_>,
        run: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match operation {
            ZoneOperation::Read(slots) => self.start_reads(slots.iter().copied()),
            ZoneOperation::ReadMeta(first, pages) => self.start_reads(run_of(first, pages)),
            ZoneOperation::Reset(zone) => self.start_reset(zone),
            _ => {}
        }
        let result = run.await;
        match operation {
            ZoneOperation::Read(slots) => self.end_reads(slots.iter().copied()),
            ZoneOperation::ReadMeta(first, pages) => self.end_reads(run_of(first, pages)),
            ZoneOperation::Reset(zone) => self.end_reset(zone, result.as_ref().err()),
            _ => {}
        }
        result
    }

    fn geometry(&self) -> ZoneGeometry {
        self.geometry
    }

    async fn append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<M::Page>],
        durable: bool,
    ) -> Result<SlotNo> {
        for (spare, body) in spares.iter().zip(bodies) {
            assert_eq!(spare.checksum, body.checksum(), "checksum of {spare:?} for {zone:?}");
        }
        let first = self.start_append(zone, header, spares, bodies);
        let result = self.inner.append(zone, header, spares, bodies, durable).await;
        self.end_append(zone, first, bodies.len() as u32, &result);
        result
    }

    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        assert!(from_offset <= self.geometry.slots_per_zone, "scan of {zone:?} from {from_offset}");
        let found = self.inner.scan(zone, from_offset, epoch).await?;
        self.check_scan(zone, from_offset, &found);
        Ok(found)
    }

    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>> {
        let found = self.inner.scan_spares(zone).await?;
        self.check_scan(zone, 0, &found);
        Ok(found)
    }

    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>> {
        let header = self.inner.peek(zone).await?;
        if let Some(header) = header {
            self.zone(zone, |state| state.epoch_max = state.epoch_max.max(header.epoch));
        }
        Ok(header)
    }
}

fn run_of(first: SlotNo, slots: usize) -> impl Iterator<Item = SlotNo> {
    (first.0..).map(SlotNo).take(slots)
}
