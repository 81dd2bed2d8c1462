//! Pins: zones that are being read are not reset.
//!
//! A read of several pages looks up all slots at one moment, and must find their content there,
//! even if the pages are mapped elsewhere since: it pins these slots. A reset first makes sure that
//! no mapping leads to the zone any more, so that no new reader comes, and then waits until it is
//! unpinned.
use std::cell::RefCell;
use tantalum_base::{SlotNo, ZoneNo};
use tantalum_media::ZoneGeometry;
use tantalum_runtime::sync::WaitQueue;

use crate::fault_points::Fault;

/// Counts the pinned slots of each zone.
pub struct ZonePins {
    geometry: ZoneGeometry,
    counts: RefCell<Vec<u32>>,
    unpinned: WaitQueue,
}

/// Slots that keep their content until this is dropped.
pub struct Pinned<'a> {
    pins: &'a ZonePins,
    slots: &'a [SlotNo],
}

impl ZonePins {
    /// No slot of `geometry` is pinned.
    pub fn new(geometry: ZoneGeometry) -> Self {
        let counts = RefCell::new(vec![0; geometry.zones as usize]);
        ZonePins { geometry, counts, unpinned: WaitQueue::new("readers of a zone") }
    }

    /// Pins `slots`, which the caller looked up in the same step.
    pub fn pin<'a>(&'a self, slots: &'a [SlotNo]) -> Pinned<'a> {
        let mut counts = self.counts.borrow_mut();
        slots.iter().for_each(|slot| counts[self.geometry.zone_of(*slot).index()] += 1);
        Pinned { pins: self, slots }
    }

    /// Waits until no slot of `zone` is pinned; nothing may map to it any more.
    pub async fn wait_until_unpinned(&self, zone: ZoneNo) {
        let is_unpinned = || {
            let unpinned = self.counts.borrow()[zone.index()] == 0;
            (unpinned || Fault::NoWaitForReaders.is_planted()).then_some(())
        };
        self.unpinned.until(is_unpinned).await;
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        let pins = self.pins;
        let mut counts = pins.counts.borrow_mut();
        for slot in self.slots {
            counts[pins.geometry.zone_of(*slot).index()] -= 1;
        }
        drop(counts);
        pins.unpinned.wake_all();
    }
}
