//! Error values in replies.
use tantalum_base::ErrorKind;

/// The error field of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum ErrorCode {
    /// Not permitted: a change of a read-only export.
    Perm = 1,
    /// The device failed.
    Io = 5,
    /// A resource other than space has run out for now.
    NoMem = 12,
    /// The request is invalid here.
    Inval = 22,
    /// No space left, or a write past the end.
    NoSpc = 28,
    /// Over a limit of the device.
    Overflow = 75,
    /// Not supported.
    NotSup = 95,
    /// The device is closing or closed.
    Shutdown = 108,
}

impl ErrorCode {
    /// The error value for a device's error.
    pub(crate) fn of(kind: ErrorKind) -> ErrorCode {
        match kind {
            ErrorKind::InvalidInput | ErrorKind::OutOfRange | ErrorKind::UnknownTransaction => {
                ErrorCode::Inval
            }
            ErrorKind::OutOfSpace => ErrorCode::NoSpc,
            ErrorKind::Unsupported => ErrorCode::NotSup,
            ErrorKind::TooManyTransactions => ErrorCode::NoMem,
            ErrorKind::TooLarge => ErrorCode::Overflow,
            ErrorKind::Locked | ErrorKind::ReadOnly => ErrorCode::Perm,
            ErrorKind::PowerCut | ErrorKind::Closed => ErrorCode::Shutdown,
            // EIO fits bad media and a latched log, and is the default for new kinds. Pages held by open transactions
            // (`Conflict`) are waited for.
            _ => ErrorCode::Io,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_protocol() {
        let codes = [
            (ErrorKind::Locked, 1),
            (ErrorKind::ReadOnly, 1),
            (ErrorKind::Checksum, 5),
            (ErrorKind::Uncorrectable, 5),
            (ErrorKind::Latched, 5),
            (ErrorKind::Conflict, 5),
            (ErrorKind::TooManyTransactions, 12),
            (ErrorKind::InvalidInput, 22),
            (ErrorKind::OutOfRange, 22),
            (ErrorKind::OutOfSpace, 28),
            (ErrorKind::TooLarge, 75),
            (ErrorKind::Unsupported, 95),
            (ErrorKind::PowerCut, 108),
            (ErrorKind::Closed, 108),
        ];
        for (kind, value) in codes {
            assert_eq!(ErrorCode::of(kind) as u32, value, "{kind:?}");
        }
    }
}
