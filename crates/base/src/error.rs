//! One error for all crates: a kind to match on, a context to read, the source.
use std::fmt;
use std::sync::Arc;

use crate::plain::plain;

/// The kind of a failure, to match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument or a configuration is invalid.
    InvalidInput,
    /// A page outside the device.
    OutOfRange,
    /// A page has no content, but content is required.
    Unmapped,
    /// No room left; nothing was changed.
    OutOfSpace,
    /// The device does not support this.
    Unsupported,
    /// Another open transaction holds the page.
    Conflict,
    /// The transaction is not open (never begun, committed, aborted).
    UnknownTransaction,
    /// The limit on open transactions is reached.
    TooManyTransactions,
    /// A transaction or an atomic write exceeds its limit.
    TooLarge,
    /// Content does not match its checksum. It is not returned as data.
    Checksum,
    /// The medium could not read a page back (bit errors past correction).
    Uncorrectable,
    /// The medium failed to program a page; it may be written elsewhere.
    ProgramFailed,
    /// The medium can no longer use a zone.
    ZoneRetired,
    /// A structure on the medium is inconsistent.
    Corrupt,
    /// Not a volume, or one of an unsupported version or size.
    Format,
    /// Another process holds the volume.
    Locked,
    /// An attempt to change something that was opened read-only.
    ReadOnly,
    /// A log flush has failed, so the device refuses writes until it is opened again.
    Latched,
    /// The operating system reported a failure.
    Io,
    /// Power was cut (simulated).
    PowerCut,
    /// The other end has closed.
    Closed,
    /// A long run was stopped on request before it was done.
    Interrupted,
}

impl ErrorKind {
    /// Every kind, ordered by its number (`kind as usize`).
    pub const ALL: [ErrorKind; 22] = [
        ErrorKind::InvalidInput,
        ErrorKind::OutOfRange,
        ErrorKind::Unmapped,
        ErrorKind::OutOfSpace,
        ErrorKind::Unsupported,
        ErrorKind::Conflict,
        ErrorKind::UnknownTransaction,
        ErrorKind::TooManyTransactions,
        ErrorKind::TooLarge,
        ErrorKind::Checksum,
        ErrorKind::Uncorrectable,
        ErrorKind::ProgramFailed,
        ErrorKind::ZoneRetired,
        ErrorKind::Corrupt,
        ErrorKind::Format,
        ErrorKind::Locked,
        ErrorKind::ReadOnly,
        ErrorKind::Latched,
        ErrorKind::Io,
        ErrorKind::PowerCut,
        ErrorKind::Closed,
        ErrorKind::Interrupted,
    ];

    /// The name of the kind in machine-readable output, such as `out_of_space`.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::InvalidInput => "invalid_input",
            ErrorKind::OutOfRange => "out_of_range",
            ErrorKind::Unmapped => "unmapped",
            ErrorKind::OutOfSpace => "out_of_space",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Conflict => "conflict",
            ErrorKind::UnknownTransaction => "unknown_transaction",
            ErrorKind::TooManyTransactions => "too_many_transactions",
            ErrorKind::TooLarge => "too_large",
            ErrorKind::Checksum => "checksum",
            ErrorKind::Uncorrectable => "uncorrectable",
            ErrorKind::ProgramFailed => "program_failed",
            ErrorKind::ZoneRetired => "zone_retired",
            ErrorKind::Corrupt => "corrupt",
            ErrorKind::Format => "format",
            ErrorKind::Locked => "locked",
            ErrorKind::ReadOnly => "read_only",
            ErrorKind::Latched => "latched",
            ErrorKind::Io => "io",
            ErrorKind::PowerCut => "power_cut",
            ErrorKind::Closed => "closed",
            ErrorKind::Interrupted => "interrupted",
        }
    }
}

/// A failure: kind, context and source. Cheap to clone, so that all waiters of a failed group commit can get it.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: ErrorKind,
    context: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Result with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error without a source. `context` gives the place and the reason in a few words.
    pub fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        Error(Arc::new(Inner { kind, context: context.into(), source: None }))
    }

    /// An error with its cause.
    pub fn with_source(
        kind: ErrorKind,
        context: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let source = Some(Arc::from(source.into()));
        Error(Arc::new(Inner { kind, context: context.into(), source }))
    }

    /// An operating-system failure. `context` names the file and the operation.
    pub fn io(context: impl Into<String>, source: std::io::Error) -> Self {
        Error::with_source(ErrorKind::Io, context, source)
    }

    /// The kind, to match on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The context of this level alone (without the source).
    pub fn context(&self) -> &str {
        &self.0.context
    }

    /// The cause, if known.
    pub fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }

    /// The same failure with another kind.
    pub fn with_kind(self, kind: ErrorKind) -> Self {
        let Inner { context, source, .. } = &*self.0;
        Error(Arc::new(Inner { kind, context: context.clone(), source: source.clone() }))
    }

    /// The same kind with a wider context; this error becomes the source.
    pub fn wrap(self, context: impl Into<String>) -> Self {
        Error(Arc::new(Inner {
            kind: self.0.kind,
            context: context.into(),
            source: Some(Arc::new(self)),
        }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(&self.0.context))?;
        if let Some(source) = &self.0.source {
            write!(f, ": {}", plain(&source.to_string()))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

// `source` is not implemented: `Display` already prints the whole chain, and `anyhow` would repeat it.
impl std::error::Error for Error {}

/// Adds context to the error of a result.
pub trait ResultExt<T> {
    /// Wraps the error in `context`, which is only evaluated on failure.
    fn context<C: Into<String>>(self, context: impl FnOnce() -> C) -> Result<T>;
}

impl<T> ResultExt<T> for Result<T> {
    fn context<C: Into<String>>(self, context: impl FnOnce() -> C) -> Result<T> {
        self.map_err(|error| error.wrap(context()))
    }
}

impl<T> ResultExt<T> for std::io::Result<T> {
    fn context<C: Into<String>>(self, context: impl FnOnce() -> C) -> Result<T> {
        self.map_err(|error| Error::io(context(), error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_failure_of_another_kind_says_the_same() {
        let cause = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let error = Error::io("writing /x", cause);
        let other = error.clone().with_kind(ErrorKind::OutOfSpace);
        assert_eq!(other.kind(), ErrorKind::OutOfSpace);
        assert_eq!(other.to_string(), error.to_string());
        assert!(other.cause().is_some_and(|cause| cause.is::<std::io::Error>()));
    }

    #[test]
    fn an_error_shows_no_terminal_what_to_do() {
        let cause = std::io::Error::other("\u{1b}[31mred");
        let error = Error::io("reading \u{1b}]0;title\u{7}", cause);
        assert_eq!(error.to_string(), r"reading \u001b]0;title\u0007: \u001b[31mred");
    }

    #[test]
    fn every_kind_has_its_place_and_a_name_of_its_own() {
        for (at, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at, "{kind:?}");
        }
        // The last kind: the assertion fails if a kind is added but not listed.
        assert_eq!(ErrorKind::Interrupted as usize + 1, ErrorKind::ALL.len());
        let names: BTreeSet<&str> = ErrorKind::ALL.into_iter().map(ErrorKind::name).collect();
        assert_eq!(names.len(), ErrorKind::ALL.len());
    }
}
