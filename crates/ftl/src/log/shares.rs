//! Shares that a power cut or a failure of the log may still take back.
use tantalum_base::{PageNo, Version};

use crate::map::MapEntry;

/// How to take the change of one page by a share back.
#[derive(Clone, Copy)]
pub(crate) struct Undo {
    pub page: PageNo,
    /// What the page was.
    pub before: MapEntry,
    /// The version of the share.
    pub version: Version,
}

/// Shares under way. What they replaced is still on the medium: its zone waits for them to be durable.
#[derive(Default)]
pub(crate) struct SharesInFlight {
    // Not durable yet, or behind one in the log that is not.
    undurable: Vec<Undo>,
    // Of batches of which other pages are still being written: nobody sees them.
    unseen: Vec<Undo>,
}

impl SharesInFlight {
    /// All that a power cut may take back, in the order of their versions.
    pub fn undurable(&self) -> &[Undo] {
        &self.undurable
    }

    /// A share was put in force in the mapping.
    pub fn began(&mut self, undo: Undo) {
        self.undurable.push(undo);
    }

    /// Readers are not to see it until its batch has returned.
    pub fn hide(&mut self, undo: Undo) {
        self.unseen.push(undo);
    }

    /// What readers see of `page`, of which the mapping says `entry`.
    #[inline]
    pub fn visible(&self, page: PageNo, mut entry: MapEntry) -> MapEntry {
        for undo in self.unseen.iter().rev() {
            if (undo.page, undo.version) == (page, entry.version) {
                entry = undo.before;
            }
        }
        entry
    }

    /// The batch of versions `first` to `last` returned: readers may see all of it.
    pub fn batch_returned(&mut self, first: Version, last: Version) {
        self.unseen.retain(|undo| undo.version < first || undo.version > last);
    }

    /// All changes up to `version` are durable. One that returned before an earlier one may build
    /// on that, which can still be lost; so a share stays here until all before it is durable.
    pub fn durable_up_to(&mut self, version: Version) {
        self.undurable.retain(|undo| undo.version > version);
    }

    /// `page` was written under `version` by a share that could not be made by the mapping alone: what it is
    /// to go back to is what it is `now`.
    pub fn rewritten(&mut self, page: PageNo, version: Version, now: impl Fn() -> MapEntry) {
        for undo in &mut self.undurable {
            if (undo.page, undo.version) == (page, version) {
                undo.before = now();
            }
        }
    }

    /// The change `entry` of `page` became known behind shares that are newer: they go back to that.
    pub fn came_late(&mut self, page: PageNo, entry: MapEntry) {
        for undo in self.undurable.iter_mut().chain(&mut self.unseen) {
            let between = undo.before.version < entry.version && entry.version < undo.version;
            if undo.page == page && between {
                undo.before = entry;
            }
        }
    }

    /// Takes out those of `version`, which failed.
    pub fn take_failed(&mut self, version: Version) -> Vec<Undo> {
        self.undurable.extract_if(.., |undo| undo.version == version).collect()
    }

    /// Later shares of a page whose share `failed` fall back on what that had replaced.
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
