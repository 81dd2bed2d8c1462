//! Recovery: what recovery starts from. Which checkpoint is in force, what each zone holds, and what
//! of it must be looked at.
use std::collections::BTreeMap;
use tantalum_base::{Result, ZoneNo};
use tantalum_media::{ScannedAppend, ZoneMedia};

use crate::checkpoints::anchor_pages::Era;
use crate::checkpoints::pages::ZoneEntry;
use crate::recovery::find_checkpoint::{Checkpoint, MetaSlots};
use crate::recovery::log_scan::ScannedLog;
use crate::recovery::{Opening, Reader};

/// What recovery starts from.
pub(super) struct Survey {
    pub newest: Checkpoint,
    /// What every zone holds, `None` where it holds nothing.
    pub openings: Vec<Option<Opening>>,
    /// Slots of each zone, from its first on, that need not be looked at.
    pub covered_slots: Vec<u32>,
    /// Zones that were looked at already.
    pub scans: BTreeMap<ZoneNo, Vec<ScannedAppend>>,
    /// Nothing was appended behind the checkpoint.
    pub clean: bool,
    /// Highest number of a checkpoint that was ever begun, as far as was seen; the scan of the log
    /// sees more.
    pub highest_checkpoint: u64,
    /// Pages of checkpoints and delta pages, where all zones were looked at.
    pub meta: MetaSlots,
    /// What was appended since the checkpoint, where that was looked for.
    pub log: Option<ScannedLog>,
}

impl Survey {
    /// Whether changes that were durable since the checkpoint are gone.
    pub fn misses_any(&self) -> bool {
        let covered = self.newest.footer.covered;
        self.log.as_ref().is_some_and(|log| !log.missing(covered).is_empty())
    }
}

impl<M: ZoneMedia> Reader<'_, M> {
    /// Looks at every zone.
    pub(super) async fn survey_all(&self) -> Result<Survey> {
        let openings = self.look_at_zones().await?;
        let meta = self.meta_slots(&openings).await?;
        let newest = self.find_checkpoint(&meta).await?;
        let covered = newest.zones.iter().zip(&openings).map(|(entry, opening)| {
            let same = opening.is_some_and(|opening| opening.epoch == entry.epoch);
            if same { entry.covered_slots } else { 0 }
        });
        let covered_slots = covered.collect();
        let highest_checkpoint = meta.highest_id().max(newest.id);
        let (scans, clean) = (BTreeMap::new(), false);
        let log = None;
        Ok(Survey { newest, openings, covered_slots, scans, clean, highest_checkpoint, meta, log })
    }

    /// What every zone holds, `None` where it holds nothing.
    async fn look_at_zones(&self) -> Result<Vec<Option<Opening>>> {
        // Where a reset leaves what was there, the first header may be an old one of which the
        // newer one never landed.
        let resets_erase = self.geometry.append_overhead_slots == 0;
        let mut openings = Vec::with_capacity(self.geometry.zones as usize);
        for zone in (0..self.geometry.zones).map(ZoneNo) {
            let header = match self.media.peek(zone).await? {
                Some(header) if resets_erase => Some(header),
                // The first append may be torn or decayed and others behind it whole.
                _ => self.media.scan(zone, 0, None).await?.first().map(|append| append.header),
            };
            openings.push(header.map(Opening::of));
        }
        Ok(openings)
    }

    /// Looks at what `era` says, and nothing else.
    pub(super) async fn survey_era(&self, era: &Era) -> Result<Survey> {
        let newest = self.checkpoint_in(era.checkpoint, &era.extents).await?;
        let highest_checkpoint = newest.id;
        let in_use = |entry: &ZoneEntry| Opening::new(entry.epoch, entry.stream);
        let mut openings: Vec<Option<Opening>> = newest.zones.iter().map(in_use).collect();
        let mut covered_slots: Vec<u32> =
            newest.zones.iter().map(|entry| entry.covered_slots).collect();
        let mut unopened = BTreeMap::new();
        for noted in &era.zones {
            let at = noted.zone.index();
            if at >= openings.len() {
                continue;
            }
            unopened.insert(noted.zone, noted.epoch == 0);
            openings[at] = Opening::new(noted.epoch, noted.stream);
            covered_slots[at] = noted.covered_slots;
        }
        let mut scans = BTreeMap::new();
        let unopened = unopened.into_iter().filter(|(_, unopened)| *unopened && !era.clean);
        for (zone, _) in unopened {
            let appends = self.media.scan(zone, 0, None).await?;
            openings[zone.index()] = appends.first().map(|append| Opening::of(append.header));
            scans.insert(zone, appends);
        }
        let (clean, meta) = (era.clean, MetaSlots::default());
        let mut survey = Survey {
            newest,
            openings,
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
