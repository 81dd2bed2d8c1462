//! Which zones are being read: none of them is reset meanwhile.
//!
//! A read of several pages looks all places up at one moment, and must find there what it looked up,
//! also where newer contents have taken the pages elsewhere since. Whoever resets a zone first takes
//! care that nothing leads there any more, so that no reader comes, and waits for those that came.
use std::cell::RefCell;
use tantalum_base::{SlotNo, ZoneNo};
use tantalum_media::ZoneGeometry;
use tantalum_runtime::sync::WaitQueue;

use crate::fault_points::Fault;

/// Counts the slots of each zone that are being read.
pub struct ZoneReaders {
    geometry: ZoneGeometry,
    counts: RefCell<Vec<u32>>,
    left: WaitQueue,
}

/// Slots being read, until it is dropped.
pub struct Reading<'a> {
    readers: &'a ZoneReaders,
    slots: &'a [SlotNo],
}

impl ZoneReaders {
    /// No reader in any zone of `geometry`.
    pub fn new(geometry: ZoneGeometry) -> Self {
        let counts = RefCell::new(vec![0; geometry.zones as usize]);
        ZoneReaders { geometry, counts, left: WaitQueue::new("readers of a zone") }
    }

    /// Begins to read `slots`. The caller looked them up in the same step.
    pub fn enter<'a>(&'a self, slots: &'a [SlotNo]) -> Reading<'a> {
        let mut counts = self.counts.borrow_mut();
        slots.iter().for_each(|slot| counts[self.geometry.zone_of(*slot).index()] += 1);
        Reading { readers: self, slots }
    }

    /// Waits until nobody reads in `zone`, to which nothing leads any more.
    pub async fn wait_until_left(&self, zone: ZoneNo) {
        let is_empty = || {
            let empty = self.counts.borrow()[zone.index()] == 0;
            (empty || Fault::NoWaitForReaders.is_planted()).then_some(())
        };
        self.left.until(is_empty).await;
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let readers = self.readers;
        let mut counts = readers.counts.borrow_mut();
        for slot in self.slots {
            counts[readers.geometry.zone_of(*slot).index()] -= 1;
        }
        drop(counts);
        readers.left.wake_all();
    }
}
