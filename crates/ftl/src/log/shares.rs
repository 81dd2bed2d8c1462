//! Shares that a power cut or a failure of the log may still undo.
use tantalum_base::{PageNo, Version};

use crate::map::MapEntry;

/// How to undo the change of one page by a share.
#[derive(Clone, Copy)]
pub(crate) struct Undo {
    pub page: PageNo,
    /// The page's entry before the share.
    pub before: MapEntry,
    /// The version of the share.
    pub version: Version,
}

/// Shares in flight. What they replaced stays on the medium: its zone waits until they are durable.
#[derive(Default)]
pub(crate) struct SharesInFlight {
    // Shares that are not durable yet, or that follow one in the log that is not.
    undurable: Vec<Undo>,
    // Shares of batches whose other pages are still being written: readers do not see them.
    unseen: Vec<Undo>,
}

impl SharesInFlight {
    /// All shares that a power cut may undo, in the order of their versions.
    pub fn undurable(&self) -> &[Undo] {
        &self.undurable
    }

    /// Notes a share that is in the mapping.
    pub fn began(&mut self, undo: Undo) {
        self.undurable.push(undo);
    }

    /// Hides a share from readers until its batch has returned.
    pub fn hide(&mut self, undo: Undo) {
        self.unseen.push(undo);
    }

    /// What readers see of `page`, whose entry in the mapping is `entry`.
    #[inline]
    pub fn visible(&self, page: PageNo, mut entry: MapEntry) -> MapEntry {
        for undo in self.unseen.iter().rev() {
            if (undo.page, undo.version) == (page, entry.version) {
                entry = undo.before;
            }
        }
        entry
    }

    /// Shows readers the batch of versions `first` to `last`, which has returned.
    pub fn batch_returned(&mut self, first: Version, last: Version) {
        self.unseen.retain(|undo| undo.version < first || undo.version > last);
    }

    /// Notes that all changes up to `version` are durable. A later change may depend on an earlier
    /// one that can still be lost; so a share stays here until all before it is durable.
    pub fn durable_up_to(&mut self, version: Version) {
        self.undurable.retain(|undo| undo.version > version);
    }

    /// Notes that a share wrote `page` again, under `version`, instead of remapping it: undoing it
    /// restores the entry `now`.
    pub fn rewritten(&mut self, page: PageNo, version: Version, now: impl Fn() -> MapEntry) {
        for undo in &mut self.undurable {
            if (undo.page, undo.version) == (page, version) {
                undo.before = now();
            }
        }
    }

    /// Notes the change `entry` of `page`, which returned after newer shares: undoing them restores it.
    pub fn returned_late(&mut self, page: PageNo, entry: MapEntry) {
        for undo in self.undurable.iter_mut().chain(&mut self.unseen) {
            let between = undo.before.version < entry.version && entry.version < undo.version;
            if undo.page == page && between {
                undo.before = entry;
            }
        }
    }

    /// Removes the shares of versions `first` to `last`, which failed.
    pub fn take_failed(&mut self, first: Version, last: Version) -> Vec<Undo> {
        let failed = |undo: &mut Undo| first <= undo.version && undo.version <= last;
        self.undurable.extract_if(.., failed).collect()
    }

    /// Makes later shares of the same page, when undone, restore what `failed` had replaced.
    pub fn rebase(&mut self, failed: &Undo) {
        for undo in self.undurable.iter_mut().chain(&mut self.unseen) {
            if undo.page == failed.page && undo.before.version == failed.version {
                undo.before = failed.before;
            }
        }
    }

    /// Panics where it contradicts itself. For tests.
    pub fn validate(&self) {
        for unseen in &self.unseen {
            let Undo { page, version, .. } = unseen;
            let same = |undo: &Undo| (undo.page, undo.version) == (*page, *version);
            assert!(
                self.undurable.iter().any(same),
                "the share {version} of page {page} is not seen, and is not under way either"
            );
        }
    }
}
