//! What a medium that fails, decays or is damaged excuses of the device on it.
use tantalum_base::{Error, ErrorKind, Payload};

use super::damage::Damage;
use super::decay::Decay;
use super::history::{History, LostTail};
use super::verify;

/// What of a medium is damaged, in one way or another.
#[derive(Clone)]
pub(super) struct Medium<P> {
    pub(super) decay: Decay<P>,
    pub(super) damage: Damage<P>,
}

/// Why a device may latch in this time with power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Latching {
    /// A program fails, or something of the device's own is damaged.
    pub(super) programs: bool,
    /// A write or a sync fails.
    pub(super) io: bool,
}

impl Latching {
    /// Whether `error` is what such a device answers: to the command under which its log failed, and to all
    /// later ones.
    pub(super) fn excuses(self, error: &Error) -> bool {
        match error.kind() {
            ErrorKind::Latched => self.programs || self.io,
            ErrorKind::ProgramFailed | ErrorKind::ZoneRetired => self.programs,
            ErrorKind::Io | ErrorKind::OutOfSpace => self.io,
            _ => false,
        }
    }
}

impl<P: Payload> Medium<P> {
    /// What is excused of the contents, in numbers of `history`.
    pub(super) fn excuses(&self, history: &History<P>) -> verify::Excuses {
        let damage = self.damage.excuses();
        let acknowledges_early = damage.acknowledges_early;
        let lost = [self.decay.lost(), damage.lost].concat();
        let tail = damage.tail.map(|tail| LostTail {
            from: tail.from,
            contents: history.numbers(&tail.contents),
            has_records: tail.has_records,
            acknowledges_early,
        });
        verify::Excuses { lost: history.numbers(&lost), tail }
    }

    /// Whether opening the device may be refused.
    pub(super) fn may_refuse(&self, history: &History<P>) -> bool {
        let is_hosts = |page: &P| history.identify(page).is_some();
        self.decay.may_refuse(is_hosts) || self.damage.may_refuse()
    }

    /// Why the device may latch, beyond what fails.
    pub(super) fn latching(&self, failing: Latching) -> Latching {
        let own = self.decay.has_own() || self.damage.may_refuse();
        Latching { programs: failing.programs || own, ..failing }
    }
}
