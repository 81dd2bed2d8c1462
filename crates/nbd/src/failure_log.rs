//! Logs failed requests.
use crate::protocol::transmission::Request;
use tantalum_base::{Error, ErrorKind};

/// Logs a failed request.
pub(crate) fn tell(request: &Request, error: &Error) {
    let Request { command, offset, length, .. } = request;
    let kind = error.kind().name();
    match error.kind() {
        // Failures of the medium, which need attention.
        ErrorKind::Checksum
        | ErrorKind::Corrupt
        | ErrorKind::Uncorrectable
        | ErrorKind::Io
        | ErrorKind::Latched => {
            tracing::error!(?command, offset, length, kind, %error, "a request failed");
        }
        _ => tracing::warn!(?command, offset, length, kind, %error, "a request failed"),
    }
}
