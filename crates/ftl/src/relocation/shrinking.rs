//! Shrinking: keeps little room beyond the live data, if the medium can take room back (`space::room`).
use tantalum_base::Result;
use tantalum_media::ZoneMedia;

use crate::ftl::Ftl;
use crate::relocation::victim::Choice;
use crate::space::room::Spared;

impl<M: ZoneMedia> Ftl<M> {
    /// Empties zones that hold more room than their live data is worth, and gives back room that is not needed soon.
    /// Called by the cleaner; does nothing if nothing changed, or if room cannot be given back.
    pub(crate) async fn shrink(&self) -> Result<()> {
        loop {
            let low_zones = self.options.cleaning_low_zones;
            let short = self.is_short(&self.parts.borrow(), low_zones);
            // Other cleaning comes first; this is called again afterwards.
            if short || self.cleaner.rest.is_due() || !self.parts.borrow_mut().space.begin_look() {
                return Ok(());
            }
            self.clean_for_room().await?;
            self.give_room_back().await?;
        }
    }

    /// Empties zones as long as one is worth it for its room.
    async fn clean_for_room(&self) -> Result<()> {
        loop {
            self.check_latch()?;
            let choice = {
                let parts = self.parts.borrow();
                let short = self.is_short(&parts, self.options.cleaning_low_zones);
                if short || self.cleaner.rest.is_due() {
                    return Ok(());
                }
                let live_max = parts.space.live_max_for_room(parts.checkpoints.slots.len());
                let kept = parts.kept_from_cleaning(self.checkpointer.is_at_work());
                self.cleaner.victims.borrow_mut().choose_up_to(live_max, &parts, kept)
            };
            match choice {
                Choice::Zone(victim) => _ = self.clean(victim).await?,
                Choice::AfterDurable(version) => self.wait_for_hosts(version).await?,
                // The cleaner looks again when they return, or when the next zone is opened.
                Choice::AfterAppends | Choice::Nothing => return Ok(()),
            }
        }
    }

    /// Gives back the room of free zones beyond the reserve.
    async fn give_room_back(&self) -> Result<()> {
        loop {
            self.check_latch()?;
            if self.cleaner.rest.is_due() {
                return Ok(());
            }
            let spared = {
                let parts = &mut *self.parts.borrow_mut();
                let checkpoint_slots = parts.checkpoints.slots.len();
                parts.space.take_spared(parts.checkpoints.in_force, checkpoint_slots)
            };
            match spared {
                Spared::Zone(zone) => {
                    let gave = self.media.give_room_back(zone).await;
                    let space = &mut self.parts.borrow_mut().space;
                    space.gave_room_back(zone, *gave.as_ref().unwrap_or(&false));
                    self.zones_freed.wake_all();
                    gave?;
                }
                Spared::AfterCheckpoint => self.checkpoint().await?,
                Spared::Nothing => return Ok(()),
            }
        }
    }
}
