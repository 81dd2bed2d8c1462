//! Recovery: finds its starting point: the checkpoint in force, the content of each zone, and the parts of it that must
//! be scanned.
use std::collections::BTreeMap;
use tantalum_base::{Result, ZoneNo};
use tantalum_media::{ScannedAppend, ZoneMedia};

use crate::checkpoints::anchor_pages::Era;
use crate::checkpoints::pages::ZoneEntry;
use crate::fault_points::Fault;
use crate::recovery::find_checkpoint::{Checkpoint, MetaSlots};
use crate::recovery::limits::senseless;
use crate::recovery::log_scan::ScannedLog;
use crate::recovery::{Opening, Reader};

/// The starting point of recovery.
pub(super) struct Survey {
    pub newest: Checkpoint,
    /// The opening of every zone, `None` if it is empty.
    pub openings: Vec<Option<Opening>>,
    /// Number of leading slots of each zone that need not be scanned.
    pub covered_slots: Vec<u32>,
    /// Zones that were scanned already.
    pub scans: BTreeMap<ZoneNo, Vec<ScannedAppend>>,
    /// The checkpoint covers every change.
    pub clean: bool,
    /// Highest number of a checkpoint that was begun, so far; the scan of the log may find a higher
    /// one.
    pub highest_checkpoint: u64,
    /// Pages of checkpoints and delta pages, if all zones were surveyed.
    pub meta: MetaSlots,
    /// The log since the checkpoint, if it was scanned already.
    pub log: Option<ScannedLog>,
}

impl Survey {
    /// Whether durable changes since the checkpoint are missing.
    pub fn misses_any(&self) -> bool {
        let covered = self.newest.footer.covered;
        self.log.as_ref().is_some_and(|log| !log.missing(covered).is_empty())
    }
}

impl<M: ZoneMedia> Reader<'_, M> {
    /// Surveys every zone.
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

    /// The opening of every zone, `None` if it is empty.
    async fn look_at_zones(&self) -> Result<Vec<Option<Opening>>> {
        // If a reset leaves old content, the first header may be an old one because the newer one was lost.
        let resets_erase = self.geometry.append_overhead_slots == 0;
        let mut openings = Vec::with_capacity(self.geometry.zones as usize);
        for zone in (0..self.geometry.zones).map(ZoneNo) {
            let header = match self.peek(zone).await? {
                Some(header) if resets_erase => Some(header),
                // The first append may be torn or decayed while later ones are intact.
                _ => {
                    openings.push(Opening::of_all(&self.scan(zone, 0, None).await?));
                    continue;
                }
            };
            openings.push(header.map(Opening::of));
        }
        Ok(openings)
    }

    /// Surveys only the zones that `era` lists.
    pub(super) async fn survey_era(&self, era: &Era) -> Result<Survey> {
        self.limits.era(era).map_err(|why| senseless("the anchors", &why))?;
        let newest = self.checkpoint_in(era.checkpoint, &era.extents).await?;
        let highest_checkpoint = newest.id;
        // Earlier versions of this program also closed a device while changes were in flight that the checkpoint lacks.
        let is_covered = newest.footer.covered == newest.footer.durable
            || Fault::UncoveredTakenForClean.is_planted();
        let clean = era.clean && is_covered;
        let in_use = |entry: &ZoneEntry| Opening::new(entry.epoch, entry.stream);
        let mut openings: Vec<Option<Opening>> = newest.zones.iter().map(in_use).collect();
        let mut covered_slots: Vec<u32> =
            newest.zones.iter().map(|entry| entry.covered_slots).collect();
        let mut unopened = BTreeMap::new();
        for noted in &era.zones {
            let at = noted.zone.index();
            unopened.insert(noted.zone, noted.epoch == 0);
            openings[at] = Opening::new(noted.epoch, noted.stream);
            covered_slots[at] = noted.covered_slots;
        }
        let mut scans = BTreeMap::new();
        let unopened = unopened.into_iter().filter(|(_, unopened)| *unopened && !clean);
        for (zone, _) in unopened {
            let appends = self.scan(zone, 0, None).await?;
            openings[zone.index()] = Opening::of_all(&appends);
            scans.insert(zone, appends);
        }
        let meta = MetaSlots::default();
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
