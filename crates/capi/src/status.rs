//! The status that each call returns.
use std::ffi::{CStr, c_int};
use tantalum_base::ErrorKind;

/// What a call returns. Values never change their meaning; more may be added.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TantalumStatus {
    /// Done.
    Ok = 0,
    /// An argument or a configuration makes no sense.
    InvalidInput = 1,
    /// A page outside the volume.
    OutOfRange = 2,
    /// No room left; nothing was changed.
    OutOfSpace = 3,
    /// This volume does not offer that.
    Unsupported = 4,
    /// Another open transaction holds the page.
    Conflict = 5,
    /// The transaction is not open (never begun, committed, aborted).
    UnknownTransaction = 6,
    /// As many transactions as may be are open.
    TooManyTransactions = 7,
    /// More pages or pairs than the limit.
    TooLarge = 8,
    /// Content does not match its checksum; it is not given out.
    Checksum = 9,
    /// The medium could not read a page back.
    Uncorrectable = 10,
    /// The medium failed to write a page, and no other place did better.
    ProgramFailed = 11,
    /// The medium can no longer use a zone.
    ZoneRetired = 12,
    /// A structure on the medium contradicts itself.
    Corrupt = 13,
    /// Not a volume, or one of another version or size.
    Format = 14,
    /// Somebody else has the volume open.
    Locked = 15,
    /// After a failed write to its log the volume refuses writes until it is opened again.
    Latched = 16,
    /// The operating system reported a failure.
    Io = 17,
    /// Power was cut (simulated devices only).
    PowerCut = 18,
    /// The volume's thread has gone, or an earlier call panicked midway.
    Closed = 19,
    /// A kind of error that this header has no name for.
    Other = 20,
    /// A bug in the library; the volume should be closed.
    Panicked = 21,
    /// A page that is to be shared holds nothing.
    Unmapped = 22,
    /// A change of a volume that was opened to be read only.
    ReadOnly = 23,
}

/// Every status in the order of its value, with its name and the kind of error that it stands for.
const STATUSES: [(TantalumStatus, &CStr, Option<ErrorKind>); 24] = [
    (TantalumStatus::Ok, c"ok", None),
    (TantalumStatus::InvalidInput, c"invalid input", Some(ErrorKind::InvalidInput)),
    (TantalumStatus::OutOfRange, c"out of range", Some(ErrorKind::OutOfRange)),
    (TantalumStatus::OutOfSpace, c"out of space", Some(ErrorKind::OutOfSpace)),
    (TantalumStatus::Unsupported, c"unsupported", Some(ErrorKind::Unsupported)),
    (TantalumStatus::Conflict, c"conflict", Some(ErrorKind::Conflict)),
    (
        TantalumStatus::UnknownTransaction,
        c"unknown transaction",
        Some(ErrorKind::UnknownTransaction),
    ),
    (
        TantalumStatus::TooManyTransactions,
        c"too many transactions",
        Some(ErrorKind::TooManyTransactions),
    ),
    (TantalumStatus::TooLarge, c"too large", Some(ErrorKind::TooLarge)),
    (TantalumStatus::Checksum, c"checksum", Some(ErrorKind::Checksum)),
    (TantalumStatus::Uncorrectable, c"uncorrectable", Some(ErrorKind::Uncorrectable)),
    (TantalumStatus::ProgramFailed, c"program failed", Some(ErrorKind::ProgramFailed)),
    (TantalumStatus::ZoneRetired, c"zone retired", Some(ErrorKind::ZoneRetired)),
    (TantalumStatus::Corrupt, c"corrupt", Some(ErrorKind::Corrupt)),
    (TantalumStatus::Format, c"format", Some(ErrorKind::Format)),
    (TantalumStatus::Locked, c"locked", Some(ErrorKind::Locked)),
    (TantalumStatus::Latched, c"latched", Some(ErrorKind::Latched)),
    (TantalumStatus::Io, c"input or output", Some(ErrorKind::Io)),
    (TantalumStatus::PowerCut, c"power cut", Some(ErrorKind::PowerCut)),
    (TantalumStatus::Closed, c"closed", Some(ErrorKind::Closed)),
    (TantalumStatus::Other, c"other", None),
    (TantalumStatus::Panicked, c"panicked", None),
    (TantalumStatus::Unmapped, c"unmapped", Some(ErrorKind::Unmapped)),
    (TantalumStatus::ReadOnly, c"read only", Some(ErrorKind::ReadOnly)),
];

impl From<ErrorKind> for TantalumStatus {
    fn from(kind: ErrorKind) -> Self {
        let found = STATUSES.iter().find(|(.., told)| *told == Some(kind));
        found.map_or(TantalumStatus::Other, |(status, ..)| *status)
    }
}

/// The name of a status.
pub(crate) fn name(status: c_int) -> &'static CStr {
    let found = usize::try_from(status).ok().and_then(|at| STATUSES.get(at));
    found.map_or(c"no status of this library", |(_, name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_names_stand_in_one_order() {
        assert_eq!(name(TantalumStatus::Ok as c_int), c"ok");
        assert_eq!(name(TantalumStatus::Latched as c_int), c"latched");
        assert_eq!(name(TantalumStatus::Panicked as c_int), c"panicked");
        assert_eq!(name(TantalumStatus::Unmapped as c_int), c"unmapped");
        assert_eq!(name(TantalumStatus::ReadOnly as c_int), c"read only");
        for odd in [-1, STATUSES.len() as c_int, c_int::MAX] {
            assert_eq!(name(odd), c"no status of this library");
        }
    }

    #[test]
    fn kinds_keep_their_meaning() {
        assert_eq!(TantalumStatus::from(ErrorKind::Conflict), TantalumStatus::Conflict);
        assert_eq!(TantalumStatus::from(ErrorKind::Io), TantalumStatus::Io);
        assert_eq!(TantalumStatus::from(ErrorKind::Closed), TantalumStatus::Closed);
    }
}
