//! Recovery: what recovery starts from. Which checkpoint is in force, what each zone holds, and what
//! of it must be looked at.
use std::collections::BTreeMap;
use tantalum_base::{Result, ZoneNo};
use tantalum_media::{ScannedAppend, ZoneMedia};

use crate::era::Era;
use crate::find_checkpoint::{Checkpoint, MetaSlots};
use crate::ftl::Ftl;
use crate::log_scan::Log;

/// What recovery starts from.
pub(crate) struct Survey {
    pub newest: Checkpoint,
    /// Epoch and stream of every zone's content, `None` where it has none.
    pub epochs: Vec<Option<(u64, u8)>>,
    /// Slots of each zone, from its first on, that need not be looked at.
    pub covered_slots: Vec<u32>,
    /// Zones that were looked at already.
    pub scans: BTreeMap<ZoneNo, Vec<ScannedAppend>>,
    /// Nothing was appended behind the checkpoint.
    pub clean: bool,
    /// Highest number of a checkpoint that was ever begun, as far as was seen; the scan of the log
    /// sees more.
    pub highest_checkpoint: u64,
    /// Pages of checkpoints and deltas, where all zones were looked at.
    pub meta: MetaSlots,
    /// What was appended since the checkpoint, where that was looked for.
    pub log: Option<Log>,
}

impl Survey {
    /// Whether changes that were durable since the checkpoint are gone.
    pub fn misses_any(&self) -> bool {
        let covered = self.newest.footer.covered;
        self.log.as_ref().is_some_and(|log| !log.missing(covered).is_empty())
    }
}

impl<M: ZoneMedia> Ftl<M> {
    /// Looks at every zone.
    pub(crate) async fn survey_all(&self) -> Result<Survey> {
        let epochs = self.look_at_zones().await?;
        let meta = self.meta_slots(&epochs).await?;
        let newest = self.find_checkpoint(&meta).await?;
        let covered = newest.zones.iter().zip(&epochs).map(|(entry, epoch)| {
            let same = epoch.is_some_and(|(epoch, _)| epoch == entry.epoch);
            if same { entry.covered_slots } else { 0 }
        });
        let covered_slots = covered.collect();
        let highest_checkpoint = meta.highest_id().max(newest.id);
        let (scans, clean) = (BTreeMap::new(), false);
        let log = None;
        Ok(Survey { newest, epochs, covered_slots, scans, clean, highest_checkpoint, meta, log })
    }

    /// Epoch and stream of every zone's content, `None` where it has none.
    async fn look_at_zones(&self) -> Result<Vec<Option<(u64, u8)>>> {
        // Where a reset leaves what was there, the first header may be an old one of which the
        // newer one never landed.
        let resets_erase = self.geometry.append_overhead_slots == 0;
        let mut epochs = Vec::with_capacity(self.geometry.zones as usize);
        for zone in (0..self.geometry.zones).map(ZoneNo) {
            let header = match self.media.peek(zone).await? {
                Some(header) if resets_erase => Some(header),
                // The first append may be torn or decayed and others behind it whole.
                _ => self.media.scan(zone, 0, None).await?.first().map(|append| append.header),
            };
            epochs.push(header.map(|header| (header.epoch, header.stream)));
        }
        Ok(epochs)
    }

    /// Looks at what `era` says, and nothing else.
    pub(crate) async fn survey_era(&self, era: &Era) -> Result<Survey> {
        let newest = self.checkpoint_in(era.checkpoint, &era.extents).await?;
        let highest_checkpoint = newest.id;
        let in_use = newest
            .zones
            .iter()
            .map(|entry| (entry.epoch > 0).then_some((entry.epoch, entry.stream)));
        let mut epochs: Vec<Option<(u64, u8)>> = in_use.collect();
        let mut covered_slots: Vec<u32> =
            newest.zones.iter().map(|entry| entry.covered_slots).collect();
        let mut unopened = BTreeMap::new();
        for noted in &era.zones {
            let at = noted.zone.index();
            if at >= epochs.len() {
                continue;
            }
            unopened.insert(noted.zone, noted.epoch == 0);
            epochs[at] = (noted.epoch > 0).then_some((noted.epoch, noted.stream));
            covered_slots[at] = noted.covered_slots;
        }
        let mut scans = BTreeMap::new();
        let unopened = unopened.into_iter().filter(|(_, unopened)| *unopened && !era.clean);
        for (zone, _) in unopened {
            let appends = self.media.scan(zone, 0, None).await?;
            let first = appends.first().map(|append| append.header);
            epochs[zone.index()] = first.map(|header| (header.epoch, header.stream));
            scans.insert(zone, appends);
        }
        let (clean, meta) = (era.clean, MetaSlots::default());
        let mut survey = Survey {
            newest,
            epochs,
            covered_slots,
            scans,
            clean,
            highest_checkpoint,
            meta,
            log: None,
        };
        if !clean {
            survey.log = Some(self.scan_log(&mut survey).await?);
        }
        Ok(survey)
    }
}
