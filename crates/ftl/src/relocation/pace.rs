//! Paces cleaning: short copies, in step with the hosts' appends.
//!
//! Unpaced cleaning uses all the bandwidth of a medium until the high watermark is reached. On a medium that does one
//! operation at a time, each write of a host then waits behind a copy, which may be as long as the longest append.
//! Paced cleaning makes twice the space that hosts take meanwhile, so that it finishes, and each copy is short. If
//! hosts would soon have to wait for space, it runs unpaced.
use std::cell::Cell;
use tantalum_media::ZoneMedia;

use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::options::packed_slots;

/// Most pages of a short copy, for which hosts do not wait long.
const SHORT_COPY_PAGES: u32 = 64;

/// Schedules the copies of paced cleaning by the slots that hosts appended.
#[derive(Default)]
pub(crate) struct Pace {
    host_slots: Cell<u64>,
    /// The next copy is due when hosts have appended this many slots.
    next_at: Cell<u64>,
    /// The number of tasks that wait for a free zone, or for a zone that is being emptied.
    pub zones_wanted: Cell<u32>,
}

impl Pace {
    pub(crate) fn hosts_appended(&self, slots: u64) {
        self.host_slots.set(self.host_slots.get() + slots);
    }

    /// Called when cleaning begins. Slots appended while it rested do not count.
    pub(crate) fn begin(&self) {
        self.next_at.set(self.host_slots.get());
    }

    /// Notes that `pages` pages were copied out of a zone of `slots` slots, of which `live` must be copied.
    pub(crate) fn copied(&self, pages: u64, live: u64, slots: u64) {
        let gained = pages * slots.saturating_sub(live) / live.max(1);
        self.next_at.set(self.next_at.get() + gained / 2);
    }

    fn is_due(&self) -> bool {
        self.host_slots.get() >= self.next_at.get()
    }
}

impl<M: ZoneMedia> Ftl<M> {
    /// Waits until the next copy is due, from a zone with `live` slots to copy; returns the most pages that the copy
    /// may have.
    pub(crate) async fn next_copy_pages_max(&self, live: usize) -> u32 {
        let turn = || match self.hurries(live as u32) {
            true => Some(u32::MAX),
            false => self.cleaner.pace.is_due().then_some(SHORT_COPY_PAGES),
        };
        self.cleaner.wanted.until(turn).await
    }

    /// Whether cleaning must not be paced: space is more urgent than the latency of hosts' writes, or the cleaner is
    /// asked to rest.
    fn hurries(&self, live: u32) -> bool {
        let is_paced = self.options.paces_cleaning && !Fault::CleaningUnpaced.is_planted();
        if !is_paced || self.cleaner.rest.is_due() {
            return true;
        }
        let kept = self.kept_from_cleaning();
        let parts = self.parts.borrow();
        let (space, slots) = (&parts.space, self.geometry.slots_per_zone);
        let beyond_reserve = u64::from(space.free_count().saturating_sub(space.reserve_zones()));
        let host_pages =
            space.host_pages() + beyond_reserve * u64::from(packed_slots(&self.geometry));
        parts.log.latched().is_some()
            || parts.relocation.evacuation_wanted
            || self.cleaner.pace.zones_wanted.get() > 0
            // A zone without live content gives room back without any copy, so it must not wait for hosts' writes.
            || space.lags_behind(parts.checkpoints.slots.len())
            || host_pages < u64::from(slots / 2)
            // Short copies take more slots, because of their headers. So copies are long if a zone yields little space,
            // or if the last free zone is being filled.
            || space.free_count() < kept + 2
            || live > slots / 8 * 7
    }
}
