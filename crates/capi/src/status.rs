//! What a call returns.
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

impl From<ErrorKind> for TantalumStatus {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::InvalidInput => Self::InvalidInput,
            ErrorKind::OutOfRange => Self::OutOfRange,
            ErrorKind::OutOfSpace => Self::OutOfSpace,
            ErrorKind::Unsupported => Self::Unsupported,
            ErrorKind::Conflict => Self::Conflict,
            ErrorKind::UnknownTransaction => Self::UnknownTransaction,
            ErrorKind::TooManyTransactions => Self::TooManyTransactions,
            ErrorKind::TooLarge => Self::TooLarge,
            ErrorKind::Checksum => Self::Checksum,
            ErrorKind::Uncorrectable => Self::Uncorrectable,
            ErrorKind::ProgramFailed => Self::ProgramFailed,
            ErrorKind::ZoneRetired => Self::ZoneRetired,
            ErrorKind::Corrupt => Self::Corrupt,
            ErrorKind::Format => Self::Format,
            ErrorKind::Locked => Self::Locked,
            ErrorKind::Latched => Self::Latched,
            ErrorKind::Io => Self::Io,
            ErrorKind::PowerCut => Self::PowerCut,
            ErrorKind::Closed => Self::Closed,
            ErrorKind::Unmapped => Self::Unmapped,
            ErrorKind::ReadOnly => Self::ReadOnly,
            _ => Self::Other,
        }
    }
}

/// The names in the order of the values.
const NAMES: [&CStr; 24] = [
    c"ok",
    c"invalid input",
    c"out of range",
    c"out of space",
    c"unsupported",
    c"conflict",
    c"unknown transaction",
    c"too many transactions",
    c"too large",
    c"checksum",
    c"uncorrectable",
    c"program failed",
    c"zone retired",
    c"corrupt",
    c"format",
    c"locked",
    c"latched",
    c"input or output",
    c"power cut",
    c"closed",
    c"other",
    c"panicked",
    c"unmapped",
    c"read only",
];

/// The name of the status with value `status`, which may be anything.
pub(crate) fn name(status: c_int) -> &'static CStr {
    let at = usize::try_from(status).ok();
    at.and_then(|at| NAMES.get(at)).copied().unwrap_or(c"no status of this library")
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
        for odd in [-1, NAMES.len() as c_int, c_int::MAX] {
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
