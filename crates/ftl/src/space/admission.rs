//! Admission: waits for free zones, keeps the reserve, resets zones before they are reused.
use tantalum_base::{ErrorKind, Result, ZoneNo};
use tantalum_media::ZoneMedia;
use tantalum_runtime::sync::Waiting;

use crate::ftl::Ftl;
use crate::space::Stream;

impl<M: ZoneMedia> Ftl<M> {
    /// Waits for space for a batch of `pages` in the host stream, and resets its zones.
    pub(crate) async fn admit_host(&self, pages: u32) -> Result<()> {
        if self.cleaner.rest.end() {
            self.cleaner.wanted.wake_all();
        }
        loop {
            self.check_latch()?;
            if self.parts.borrow().space.host_pages() >= u64::from(pages) {
                return Ok(());
            }
            let zone = self.wait_for_zone(|| self.reserve_zones(), false, Some(pages)).await?;
            if let Some(zone) = zone
                && self.reset_taken(zone).await?
            {
                self.declare(zone).await?;
                self.parts.borrow_mut().space.prepare(zone);
            }
        }
    }

    /// Waits until the stream's open zone has space for one append of `pages`; leaves at least
    /// `keep_free` zones free, which it evaluates at each attempt.
    pub(crate) async fn admit(
        &self,
        stream: Stream,
        pages: u32,
        keep_free: impl Fn() -> u32,
    ) -> Result<()> {
        loop {
            self.check_latch()?;
            if self.parts.borrow().space.append_pages_fit(stream) >= pages {
                return Ok(());
            }
            let worn = stream != Stream::Host && self.cleaner.levelling.get();
            let zone = self.wait_for_zone(&keep_free, worn, None).await?;
            if let Some(zone) = zone
                && self.reset_taken(zone).await?
            {
                self.declare(zone).await?;
                let parts = &mut *self.parts.borrow_mut();
                parts.space.seal(stream);
                parts.space.open(zone, stream);
            }
        }
    }

    /// Waits until more than `keep_free` zones are free and takes one: the least worn, or with `worn`
    /// the most worn. `None` if a batch of `pages` of hosts fits without one.
    async fn wait_for_zone(
        &self,
        keep_free: impl Fn() -> u32,
        worn: bool,
        pages: Option<u32>,
    ) -> Result<Option<ZoneNo>> {
        let zone = || {
            let keep_free = keep_free();
            let parts = &mut *self.parts.borrow_mut();
            if let Some(error) = parts.log.latched() {
                return Some(Err(error.clone()));
            }
            // Cleaning may have left room behind its copies.
            let fits = |pages| parts.space.host_pages() >= u64::from(pages);
            if parts.space.has_room_behind_copies() && pages.is_some_and(fits) {
                return Some(Ok(None));
            }
            if parts.space.free_count() > keep_free {
                let space = &mut parts.space;
                let taken = if worn { space.take_worn() } else { space.take_free() };
                return taken.map(|zone| Ok(Some(zone)));
            }
            // Space is more urgent than the cleaner's rest.
            self.cleaner.rest.end();
            self.cleaner.wanted.wake_all();
            // Pages that cannot be read now may give space when they can be read again.
            let waits =
                pages.is_some() && self.waits_for_room.get() && !parts.unreadable.is_empty();
            (parts.refuses() && !waits).then(|| Err(parts.out_of_space()))
        };
        let waiting = Waiting::new(&self.cleaner.pace.zones_wanted, 1);
        let zone = self.zones_freed.until(zone).await;
        drop(waiting);
        // Fewer zones are free: cleaning may have to start.
        self.cleaner.wanted.wake_all();
        zone
    }

    /// Resets a zone that was taken from the pool, if needed; returns false if it had to be retired
    /// instead. After any other failure the zone is back in the pool.
    async fn reset_taken(&self, zone: ZoneNo) -> Result<bool> {
        let reset = self.reset_if_needed(zone).await;
        if reset.is_err() {
            self.parts.borrow_mut().space.take_back(zone);
            self.zones_freed.wake_all();
        }
        reset
    }

    /// Resets a zone that is not in the pool, if needed; returns false if it had to be retired
    /// instead.
    pub(crate) async fn reset_if_needed(&self, zone: ZoneNo) -> Result<bool> {
        if !self.parts.borrow().space.get(zone).needs_reset {
            return Ok(true);
        }
        let reset = self.media.reset(zone).await;
        let parts = &mut *self.parts.borrow_mut();
        match reset {
            Ok(()) => {
                parts.statistics.zone_resets += 1;
                let zone = parts.space.get_mut(zone);
                zone.needs_reset = false;
                zone.resets += 1;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::ZoneRetired => {
                parts.space.retire(zone);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
