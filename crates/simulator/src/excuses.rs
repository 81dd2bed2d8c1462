//! The deviations of a device that failures of its medium, or damage to it, excuse.
use tantalum_base::{Error, ErrorKind, Payload};

use super::damage::Damage;
use super::history::{History, LostTail};
use super::verify;

/// Errors that report damage.
pub(super) fn tells_of_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Uncorrectable | ErrorKind::Checksum | ErrorKind::Corrupt)
}

/// The reasons for which a device may latch in this power-on period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Latching {
    /// A program fails, or one of the device's own pages is damaged.
    pub(super) programs: bool,
    /// A write or a sync fails.
    pub(super) io: bool,
    /// I/O errors pass.
    pub(super) passing: bool,
    /// Changes are acknowledged only once the home has them.
    pub(super) awaits_home: bool,
    /// Contents are damaged: nothing is written home, and commands that wait for that fail, until the contents are known to be
    /// lost.
    pub(super) is_damaged: bool,
}

impl Latching {
    /// Whether such a device may return `error`: for the command during which its log failed, and for all later ones.
    pub(super) fn excuses(self, error: &Error) -> bool {
        match error.kind() {
            ErrorKind::Latched => self.programs || self.io || self.passing,
            ErrorKind::ProgramFailed | ErrorKind::ZoneRetired => self.programs,
            ErrorKind::Io | ErrorKind::OutOfSpace => self.io || self.passing,
            _ => self.awaits_home && self.is_damaged && tells_of_damage(error),
        }
    }
}

impl<P: Payload> Damage<P> {
    /// The excuses for contents, as numbers of `history`.
    pub(super) fn excuses_in(&self, history: &History<P>) -> verify::Excuses {
        let excuses = self.excuses();
        let acknowledges_early = excuses.acknowledges_early;
        let tail = excuses.tail.map(|tail| LostTail {
            from: tail.from,
            contents: history.numbers(&tail.contents),
            has_records: tail.has_records,
            acknowledges_early,
        });
        verify::Excuses { lost: history.numbers(&excuses.lost), tail }
    }

    /// The reasons for which the device may latch, in addition to failures.
    pub(super) fn latching(&self, failing: Latching) -> Latching {
        let is_damaged = !self.excuses().lost.is_empty();
        Latching { programs: failing.programs || self.may_refuse(), is_damaged, ..failing }
    }
}
