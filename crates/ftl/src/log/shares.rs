//! Shares that a power cut or a failure of the log may still undo.
use std::collections::BTreeMap;
use tantalum_base::{PageNo, Version};

use crate::map::MapEntry;

/// The data to undo the change of one page by a share.
#[derive(Clone, Copy)]
pub(crate) struct Undo {
    pub page: PageNo,
    /// The page's entry before the share.
    pub before: MapEntry,
    /// The version of the share.
    pub version: Version,
}

/// Changes by shares, by version. An ordered map, because every write looks here while a share of thousands of pages
/// is in flight.
type Undos = BTreeMap<(Version, PageNo), Undo>;

/// Shares in flight. The content that they replaced stays on the medium: its zone is not reset until they are
/// durable.
#[derive(Default)]
pub(crate) struct SharesInFlight {
    // Shares that are not durable yet, or that follow a change in the log that is not.
    undurable: Undos,
    // Shares of batches whose other pages are still being written: readers do not see them yet.
    unseen: Undos,
}

impl SharesInFlight {
    /// All shares that a power cut may undo, in the order of their versions.
    pub fn undurable(&self) -> impl DoubleEndedIterator<Item = &Undo> {
        self.undurable.values()
    }

    /// Notes a share that is in the mapping.
    pub fn began(&mut self, undo: Undo) {
        self.undurable.insert((undo.version, undo.page), undo);
    }

    /// Hides a share from readers until its batch has returned.
    pub fn hide(&mut self, undo: Undo) {
        self.unseen.insert((undo.version, undo.page), undo);
    }

    /// The entry of `page` that readers see; its entry in the mapping is `entry`.
    #[inline]
    pub fn visible(&self, page: PageNo, mut entry: MapEntry) -> MapEntry {
        if self.unseen.is_empty() {
            return entry;
        }
        while let Some(undo) = self.unseen.get(&(entry.version, page)) {
            entry = undo.before;
        }
        entry
    }

    /// Whether `entry`, which the mapping has for `page`, comes from a share that readers do not see yet.
    pub fn is_unseen(&self, page: PageNo, entry: &MapEntry) -> bool {
        !self.unseen.is_empty() && self.unseen.contains_key(&(entry.version, page))
    }

    /// Shows readers the batch of versions `first` to `last`, which has returned.
    pub fn batch_returned(&mut self, first: Version, last: Version) {
        if !self.unseen.is_empty() {
            self.unseen.retain(|(version, _), _| *version < first || *version > last);
        }
    }

    /// Notes that all changes up to `version` are durable. A later change may depend on an earlier one that can
    /// still be lost, so a share stays here until all changes before it are durable.
    pub fn durable_up_to(&mut self, version: Version) {
        if !self.undurable.is_empty() {
            self.undurable = self.undurable.split_off(&(version.next(), PageNo(0)));
        }
    }

    /// Notes that a share wrote `page` again, under `version`, instead of remapping it: undoing it
    /// restores the entry `now`.
    pub fn rewritten(&mut self, page: PageNo, version: Version, now: impl Fn() -> MapEntry) {
        if let Some(undo) = self.undurable.get_mut(&(version, page)) {
            undo.before = now();
        }
    }

    /// Notes the change `entry` of `page`, which returned after newer shares: undoing those restores it.
    pub fn returned_late(&mut self, page: PageNo, entry: MapEntry) {
        for undo in self.undurable.values_mut().chain(self.unseen.values_mut()) {
            let between = undo.before.version < entry.version && entry.version < undo.version;
            if undo.page == page && between {
                undo.before = entry;
            }
        }
    }

    /// Removes the shares of versions `first` to `last`, which failed.
    pub fn take_failed(&mut self, first: Version, last: Version) -> Vec<Undo> {
        let mut failed = self.undurable.split_off(&(first, PageNo(0)));
        self.undurable.append(&mut failed.split_off(&(last.next(), PageNo(0))));
        failed.into_values().collect()
    }

    /// Makes later shares of the same page, when undone, restore the entry that `failed` had replaced.
    pub fn rebase(&mut self, failed: &Undo) {
        for undo in self.undurable.values_mut().chain(self.unseen.values_mut()) {
            if undo.page == failed.page && undo.before.version == failed.version {
                undo.before = failed.before;
            }
        }
    }

    /// Panics if it is inconsistent. For tests.
    pub fn validate(&self) {
        for (key, Undo { page, version, .. }) in &self.unseen {
            assert!(
                self.undurable.contains_key(key),
                "the share {version} of page {page} is not seen, and is not under way either"
            );
        }
    }
}
