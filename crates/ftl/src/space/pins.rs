//! Zones that are being read are not reset meanwhile.
//!
//! A read of several pages looks all places up at one moment, and must find there what it looked up,
//! also where newer contents have taken the pages elsewhere since: it pins these slots. Whoever resets
//! a zone first takes care that nothing leads there any more, so that no reader comes, and waits for
//! those that came.
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

/// Slots that stay as they are, until it is dropped.
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

    /// Pins `slots`. The caller looked them up in the same step.
    pub fn pin<'a>(&'a self, slots: &'a [SlotNo]) -> Pinned<'a> {
        let mut counts = self.counts.borrow_mut();
        slots.iter().for_each(|slot| counts[self.geometry.zone_of(*slot).index()] += 1);
        Pinned { pins: self, slots }
    }

    /// Waits until no slot of `zone` is pinned, to which nothing leads any more.
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
