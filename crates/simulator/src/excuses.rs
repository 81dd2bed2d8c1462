//! What a medium that fails or is damaged excuses of the device on it.
use tantalum_base::{Error, ErrorKind, Payload};

use super::damage::Damage;
use super::history::{History, LostTail};
use super::verify;

/// Answers that tell of damage.
pub(super) fn tells_of_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Uncorrectable | ErrorKind::Checksum | ErrorKind::Corrupt)
}

/// Why a device may latch in this time with power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Latching {
    /// A program fails, or something of the device's own is damaged.
    pub(super) programs: bool,
    /// A write or a sync fails.
    pub(super) io: bool,
    /// I/O errors pass.
    pub(super) passing: bool,
    /// Changes are acknowledged when home has them.
    pub(super) awaits_home: bool,
    /// Contents are damaged: nothing goes home, and whoever waits for that gets an error, until it is known that they are lost.
    pub(super) is_damaged: bool,
}

impl Latching {
    /// Whether `error` is what such a device answers: to the command under which its log failed, and to all
    /// later ones.
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
    /// What is excused of the contents, in numbers of `history`.
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

    /// Why the device may latch, beyond what fails.
    pub(super) fn latching(&self, failing: Latching) -> Latching {
        let is_damaged = !self.excuses().lost.is_empty();
        Latching { programs: failing.programs || self.may_refuse(), is_damaged, ..failing }
    }
}
