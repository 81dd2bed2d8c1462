//! The changes in each zone since the checkpoint in force.
//!
//! Every change has a version and versions are contiguous, so recovery can count: each version from
//! the checkpoint up to the durable watermark must be found, or it was damaged. But cleaning resets
//! zones, and with them versions whose content was replaced. So before a zone is reset, those of
//! its versions that are in no other zone are listed as dead
//! ([`encode_dead`](crate::log::records::encode_dead)). A version that is neither found nor dead is
//! missing: recovery fails rather than serve older content.
use tantalum_base::{Version, ZoneNo};
use tantalum_media::{SlotKind, Spare};

/// Versions from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VersionRange {
    pub first: Version,
    pub last: Version,
}

impl VersionRange {
    /// Number of versions in the range.
    pub fn count(&self) -> u64 {
        self.last.0 - self.first.0 + 1
    }
}

/// `ranges` in order, without overlaps.
pub(crate) fn merged(mut ranges: Vec<VersionRange>) -> Vec<VersionRange> {
    ranges.sort_unstable_by_key(|range| range.first);
    let mut merged: Vec<VersionRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.first <= last.last.next() => last.last = last.last.max(range.last),
            _ => merged.push(range),
        }
    }
    merged
}

/// The versions in each zone that the checkpoint in force does not cover.
pub(crate) struct UncoveredVersions {
    // For each zone its ranges, in the order of placement.
    zones: Vec<Vec<VersionRange>>,
    covered: Version,
}

/// Whether recovery counts a slot as the change of its version. A copy made for a remapped page has
/// the version of the share, whose record is counted instead.
pub(crate) fn counts(spare: &Spare) -> bool {
    let own = spare.kind.is_page() && spare.kind != SlotKind::RemappedCopy;
    own || spare.kind == SlotKind::Record
}

impl UncoveredVersions {
    /// No versions in any of `zones` zones.
    pub fn new(zones: u32) -> Self {
        UncoveredVersions { zones: vec![Vec::new(); zones as usize], covered: Version::NEVER }
    }

    /// The version up to which the checkpoint in force covers all changes.
    pub fn covered(&self) -> Version {
        self.covered
    }

    /// Adds the versions of an append to `zone`.
    pub fn placed(&mut self, zone: ZoneNo, spares: &[Spare]) {
        spares.iter().filter(|spare| counts(spare)).for_each(|spare| self.add(zone, spare.version));
    }

    /// Adds `version` to `zone`.
    pub fn add(&mut self, zone: ZoneNo, version: Version) {
        let ranges = &mut self.zones[zone.index()];
        match ranges.last_mut() {
            _ if version <= self.covered => {}
            Some(last) if last.last.next() == version => last.last = version,
            _ => ranges.push(VersionRange { first: version, last: version }),
        }
    }

    /// Removes the versions of a failed append to `zone`; they are placed elsewhere.
    pub fn failed(&mut self, zone: ZoneNo, spares: &[Spare]) {
        let mut versions: Vec<Version> = spares.iter().map(|spare| spare.version).collect();
        self.moved(zone, &mut versions);
    }

    /// Removes `versions` from `zone`, because other zones hold them too and keep them. Sorts `versions`.
    pub fn moved(&mut self, zone: ZoneNo, versions: &mut [Version]) {
        self.zones[zone.index()] = self.without(zone, versions);
    }

    /// The versions in `zone` that are not among those `kept` elsewhere. Sorts `kept`.
    pub fn without(&self, zone: ZoneNo, kept: &mut [Version]) -> Vec<VersionRange> {
        kept.sort_unstable();
        let mut rest = Vec::new();
        for range in &self.zones[zone.index()] {
            let mut first = range.first;
            let from = kept.partition_point(|version| *version < range.first);
            for version in kept[from..].iter().take_while(|version| **version <= range.last) {
                if *version > first {
                    rest.push(VersionRange { first, last: Version(version.0 - 1) });
                }
                first = first.max(version.next());
            }
            if first <= range.last {
                rest.push(VersionRange { first, last: range.last });
            }
        }
        rest
    }

    /// Whether `zone` holds any version.
    pub fn holds_any(&self, zone: ZoneNo) -> bool {
        !self.zones[zone.index()].is_empty()
    }

    /// Clears `zone`, which was reset.
    pub fn reset(&mut self, zone: ZoneNo) {
        self.zones[zone.index()] = Vec::new();
    }

    /// Panics if it is inconsistent. For tests.
    pub fn validate(&self, next_version: Version) {
        for range in self.zones.iter().flatten() {
            let (first, last) = (range.first, range.last);
            let sound = self.covered < first && first <= last && last < next_version;
            assert!(sound, "changes {first} to {last} are noted as covered by no checkpoint");
        }
    }

    /// Drops versions up to `covered`, which a checkpoint in force covers.
    pub fn covered_up_to(&mut self, covered: Version) {
        self.covered = covered;
        for ranges in self.zones.iter_mut().filter(|ranges| !ranges.is_empty()) {
            ranges.retain_mut(|range| {
                range.first = range.first.max(covered.next());
                range.first <= range.last
            });
            if ranges.is_empty() {
                *ranges = Vec::new();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::PageNo;

    fn spares(versions: &[u64]) -> Vec<Spare> {
        let spare = |version: &u64| Spare {
            kind: SlotKind::Data,
            page: PageNo(0),
            version: Version(*version),
            checksum: 0,
        };
        versions.iter().map(spare).collect()
    }

    fn ranges(logged: &UncoveredVersions, kept: &[u64]) -> Vec<(u64, u64)> {
        let mut kept: Vec<Version> = kept.iter().copied().map(Version).collect();
        let rest = logged.without(ZoneNo(1), &mut kept);
        rest.iter().map(|range| (range.first.0, range.last.0)).collect()
    }

    #[test]
    fn what_is_kept_elsewhere_is_not_dead() {
        let mut logged = UncoveredVersions::new(2);
        logged.placed(ZoneNo(1), &spares(&[5, 6, 7, 8, 20, 21]));
        assert_eq!(ranges(&logged, &[]), [(5, 8), (20, 21)]);
        assert_eq!(ranges(&logged, &[21, 6, 5]), [(7, 8), (20, 20)]);
        assert_eq!(ranges(&logged, &[7, 7, 30]), [(5, 6), (8, 8), (20, 21)]);
        assert_eq!(ranges(&logged, &[5, 6, 7, 8, 20, 21]), []);
    }

    #[test]
    fn a_checkpoint_covers_and_a_failure_takes_back() {
        let mut logged = UncoveredVersions::new(2);
        logged.placed(ZoneNo(1), &spares(&[5, 6, 7]));
        logged.failed(ZoneNo(1), &spares(&[6, 7]));
        assert_eq!(ranges(&logged, &[]), [(5, 5)]);
        logged.placed(ZoneNo(1), &spares(&[8, 9, 10]));
        logged.covered_up_to(Version(8));
        assert_eq!(ranges(&logged, &[]), [(9, 10)]);
        logged.placed(ZoneNo(1), &spares(&[3]));
        assert_eq!(ranges(&logged, &[]), [(9, 10)], "older versions need no account");
        logged.reset(ZoneNo(1));
        assert_eq!(ranges(&logged, &[]), []);
    }
}
