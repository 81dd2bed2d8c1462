//! The record pages in force, which no checkpoint covers, by version and by slot.
use std::collections::BTreeMap;
use tantalum_base::{FastMap, SlotNo, Version};

use crate::log::OwnPage;

/// Record pages that the next recovery needs.
#[derive(Default)]
pub(crate) struct LiveRecords {
    by_version: BTreeMap<Version, OwnPage>,
    by_slot: FastMap<SlotNo, Version>,
}

impl LiveRecords {
    /// Number of records in force.
    pub fn len(&self) -> usize {
        self.by_version.len()
    }

    /// Their slots, in the order of versions.
    pub fn slots(&self) -> impl Iterator<Item = SlotNo> + '_ {
        self.by_version.values().map(|page| page.slot)
    }

    /// The record of `version`.
    pub fn get(&self, version: Version) -> Option<OwnPage> {
        self.by_version.get(&version).copied()
    }

    /// The version and the record in `slot`.
    pub fn at(&self, slot: SlotNo) -> Option<(Version, OwnPage)> {
        let version = *self.by_slot.get(&slot)?;
        Some((version, self.by_version[&version]))
    }

    /// Adds the record of `version`; returns the slot in which it was before.
    pub fn insert(&mut self, version: Version, page: OwnPage) -> Option<SlotNo> {
        let before = self.by_version.insert(version, page).map(|before| before.slot);
        if let Some(before) = before {
            self.by_slot.remove(&before);
        }
        self.by_slot.insert(page.slot, version);
        before
    }

    /// Removes the records up to `covered`; returns their slots.
    pub fn take_covered(&mut self, covered: Version) -> Vec<SlotNo> {
        let live = self.by_version.split_off(&covered.next());
        let dead = std::mem::replace(&mut self.by_version, live);
        let slots: Vec<SlotNo> = dead.into_values().map(|page| page.slot).collect();
        for slot in &slots {
            self.by_slot.remove(slot);
        }
        slots
    }

    /// Panics if it is inconsistent. For tests.
    pub fn validate(&self, next_version: Version) {
        assert_eq!(self.by_slot.len(), self.by_version.len(), "records by slot and by version");
        for (version, page) in &self.by_version {
            assert_eq!(
                self.by_slot.get(&page.slot),
                Some(version),
                "the record in slot {}",
                page.slot
            );
            assert!(
                *version < next_version,
                "a record has version {version}, which was never taken"
            );
        }
    }
}
