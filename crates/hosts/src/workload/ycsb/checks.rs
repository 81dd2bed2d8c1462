//! The results that a read may return.
//!
//! Writes of one record may overlap and take effect in any order. So a record has a range of versions that may be read: a completed
//! write has replaced every write that completed before it began, that is, all versions below the oldest one that was in progress
//! then.
use tantalum_base::{Error, ErrorKind, FastMap, Result};

/// The versions of each record, from 1 on; 0 if there is none.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// The newest version begun.
    begun: Vec<u32>,
    /// The oldest version that may be found.
    floors: Vec<u32>,
    /// Versions in progress, oldest first.
    writing: FastMap<u64, Vec<u32>>,
}

/// A write in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writing {
    record: u64,
    pub(super) version: u32,
    /// The oldest version that was in progress when it began.
    oldest: u32,
}

impl Checks {
    /// Begins a write of a record; the record may be a new one, the next after all others.
    pub(super) fn begin(&mut self, record: u64) -> Writing {
        let at = record as usize;
        if at >= self.begun.len() {
            self.begun.resize(at + 1, 0);
            self.floors.resize(at + 1, 0);
        }
        self.begun[at] += 1;
        let version = self.begun[at];
        let writing = self.writing.entry(record).or_default();
        writing.push(version);
        Writing { record, version, oldest: writing[0] }
    }

    /// The write is complete.
    pub(super) fn end(&mut self, done: Writing) {
        let floor = &mut self.floors[done.record as usize];
        *floor = done.oldest.max(*floor);
        if let Some(writing) = self.writing.get_mut(&done.record) {
            writing.retain(|version| *version != done.version);
            if writing.is_empty() {
                self.writing.remove(&done.record);
            }
        }
    }

    /// The power was cut: writes in progress never end, whether or not they took effect.
    pub(super) fn cut_off(&mut self) {
        self.writing.clear();
    }

    /// The oldest version that a read that begins now may find.
    pub(super) fn floor(&self, record: u64) -> u32 {
        self.floors[record as usize]
    }

    /// Checks the result of a read that began with this floor and ends now; `None` if there is no record.
    ///
    /// # Errors
    /// `Corrupt` if it is not possible.
    pub(super) fn check(&self, record: u64, floor: u32, found: Option<(u64, u32)>) -> Result<()> {
        let newest = self.begun.get(record as usize).copied().unwrap_or(0);
        let whole = match found {
            Some((of, version)) => of == record && (floor.max(1)..=newest).contains(&version),
            None => floor == 0,
        };
        if whole {
            return Ok(());
        }
        let context = format!(
            "record {record}: found {found:?} as record and version, where versions {floor} to {newest} may be found"
        );
        Err(Error::new(ErrorKind::Corrupt, context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_replaced_before_a_read_began_may_not_be_found() {
        let mut checks = Checks::default();
        let first = checks.begin(0);
        checks.check(0, 0, None).unwrap();
        checks.end(first);
        let floor = checks.floor(0);
        checks.check(0, floor, Some((0, 1))).unwrap();
        assert_eq!(checks.check(0, floor, None).unwrap_err().kind(), ErrorKind::Corrupt);
        assert!(checks.check(0, floor, Some((1, 1))).is_err(), "another record");
        assert!(checks.check(0, floor, Some((0, 2))).is_err(), "of the future");
        // Two overlapping writes may take effect in any order; each replaces the first version.
        let (second, third) = (checks.begin(0), checks.begin(0));
        checks.check(0, checks.floor(0), Some((0, 1))).unwrap();
        checks.end(third);
        assert!(checks.check(0, checks.floor(0), Some((0, 1))).is_err());
        checks.check(0, checks.floor(0), Some((0, 2))).unwrap();
        checks.end(second);
        for version in [2, 3] {
            checks.check(0, checks.floor(0), Some((0, version))).unwrap();
        }
        let fourth = checks.begin(0);
        checks.end(fourth);
        assert!(checks.check(0, checks.floor(0), Some((0, 3))).is_err());
        // A write that was cut off took effect or not; later writes replace it.
        checks.begin(0);
        checks.cut_off();
        for version in [4, 5] {
            checks.check(0, checks.floor(0), Some((0, version))).unwrap();
        }
        let sixth = checks.begin(0);
        checks.end(sixth);
        assert!(checks.check(0, checks.floor(0), Some((0, 5))).is_err());
    }
}
