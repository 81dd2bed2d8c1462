//! Room: waits for free zones, keeps the reserve, resets zones before they are filled again.
use tantalum_base::{Error, ErrorKind, Result, ZoneNo};
use tantalum_media::ZoneMedia;

use crate::ftl::Ftl;
use crate::options::packed_slots;
use crate::zones::Stream;

/// A zone may be closed with one slot in so many unused.
const UNUSED_SLOTS_DIVISOR: u32 = 32;

impl<M: ZoneMedia> Ftl<M> {
    /// Waits for room for a batch of `pages` in the host stream, with its zones reset.
    pub(crate) async fn admit_host(&self, pages: u32) -> Result<()> {
        if self.cleaner_rest.end() {
            self.cleaning_wanted.wake_all();
        }
        loop {
            self.check_latch()?;
            {
                let state = &mut *self.state.borrow_mut();
                let prepared =
                    state.prepared.len() as u64 * u64::from(packed_slots(&self.geometry));
                if self.open_room(state, Stream::Host) + prepared >= u64::from(pages) {
                    return Ok(());
                }
            }
            let zone = self.wait_for_zone(|| self.reserve_zones, false).await?;
            if self.reset_taken(zone).await? {
                self.declare(zone).await?;
                self.state.borrow_mut().prepared.push(zone);
            }
        }
    }

    /// Makes sure that the stream's open zone has room for one append of `pages`; may leave
    /// only as many zones as `keep_free` says at the time.
    pub(crate) async fn admit(
        &self,
        stream: Stream,
        pages: u32,
        keep_free: impl Fn() -> u32,
    ) -> Result<()> {
        loop {
            self.check_latch()?;
            if self.state.borrow().zones.room_pages(stream) >= pages {
                return Ok(());
            }
            let worn = stream != Stream::Host && self.levelling.get();
            let zone = self.wait_for_zone(&keep_free, worn).await?;
            if self.reset_taken(zone).await? {
                self.declare(zone).await?;
                let state = &mut *self.state.borrow_mut();
                state.zones.seal(stream);
                state.zones.open(zone, stream);
            }
        }
    }

    /// Whether a batch of `pages` that would be split over two zones goes as one append to the next
    /// one instead. That leaves slots unused, so only where they are few. Cleaning is not kept from
    /// its end by that: a zone with unused slots has less to move.
    pub(crate) fn better_in_fresh_zone(
        &self,
        state: &crate::ftl::State<M::Page>,
        pages: u32,
    ) -> bool {
        let Some(zone) = state.zones.open_zone(Stream::Host) else { return false };
        if state.zones.room_pages(Stream::Host) >= pages || state.prepared.is_empty() {
            return false;
        }
        let unused_slots = self.geometry.slots_per_zone - state.zones.get(zone).used_slots;
        pages <= self.geometry.append_pages_fit(self.geometry.slots_per_zone)
            && unused_slots <= self.geometry.slots_per_zone / UNUSED_SLOTS_DIVISOR
    }

    /// Pages that appends to the stream's open zone can still hold.
    pub(crate) fn open_room(&self, state: &crate::ftl::State<M::Page>, stream: Stream) -> u64 {
        let Some(zone) = state.zones.open_zone(stream) else { return 0 };
        let mut free = self.geometry.slots_per_zone - state.zones.get(zone).used_slots;
        let mut pages = 0;
        loop {
            let fit = self.geometry.append_pages_fit(free);
            if fit == 0 {
                return pages;
            }
            pages += u64::from(fit);
            free -= self.geometry.append_slots(fit);
        }
    }

    /// Waits until more than `keep_free` zones are free and takes one: the least worn, or the
    /// most `worn`.
    async fn wait_for_zone(&self, keep_free: impl Fn() -> u32, worn: bool) -> Result<ZoneNo> {
        let zone = || {
            let keep_free = keep_free();
            let state = &mut *self.state.borrow_mut();
            if let Some(error) = &state.latched {
                return Some(Err(error.clone()));
            }
            if state.zones.free_count() > keep_free {
                let zones = &mut state.zones;
                return if worn { zones.take_worn() } else { zones.take_free() }.map(Ok);
            }
            // Room goes before rest.
            self.cleaner_rest.end();
            self.cleaning_wanted.wake_all();
            state.cleaning_stuck.then(|| {
                Err(Error::new(
                    ErrorKind::OutOfSpace,
                    "no zone is free and cleaning finds nothing to give up",
                ))
            })
        };
        let zone = self.room.until(zone).await;
        // The pool shrank: cleaning may have to start.
        self.cleaning_wanted.wake_all();
        zone
    }

    /// Resets a zone that was taken from the pool, where needed; false where it had to be retired
    /// instead. After any other failure it is back in the pool.
    async fn reset_taken(&self, zone: ZoneNo) -> Result<bool> {
        let reset = self.reset_if_needed(zone).await;
        if reset.is_err() {
            self.state.borrow_mut().zones.take_back(zone);
            self.room.wake_all();
        }
        reset
    }

    /// Resets a zone that is not in the pool, where needed; false where it had to be retired instead.
    pub(crate) async fn reset_if_needed(&self, zone: ZoneNo) -> Result<bool> {
        if !self.state.borrow().zones.get(zone).needs_reset {
            return Ok(true);
        }
        let reset = self.media.reset(zone).await;
        let state = &mut *self.state.borrow_mut();
        match reset {
            Ok(()) => {
                state.statistics.zone_resets += 1;
                let zone = state.zones.get_mut(zone);
                zone.needs_reset = false;
                zone.resets += 1;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::ZoneRetired => {
                state.zones.retire(zone);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
