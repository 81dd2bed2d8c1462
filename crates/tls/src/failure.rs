//! The reason for the failure of a handshake or a connection, in words for the log.
use rustls::{AlertDescription, CertificateError, Error as Fault};
use std::fmt;
use tantalum_base::{Error, ErrorKind};

/// Maximum characters of a text with content of a client's certificate.
const TOLD_CHARS_MAX: usize = 200;

/// The reason for the failure of a TLS connection.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The client closed before the handshake was complete.
    BrokeOff,
    /// The client broke the protocol, or one side refused the other.
    Tls(Fault),
    /// The connection below failed.
    Connection(Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::BrokeOff => write!(f, "the client broke off the TLS handshake"),
            Failure::Tls(fault) => tell(fault, f),
            Failure::Connection(error) => write!(f, "{error}"),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::BrokeOff => Error::new(ErrorKind::Closed, failure.to_string()),
            Failure::Tls(_) => Error::new(ErrorKind::InvalidInput, failure.to_string()),
            Failure::Connection(error) => error,
        }
    }
}

fn tell(fault: &Fault, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fault {
        // GnuTLS does not send a certificate of a CA that the server does not name.
        Fault::NoCertificatesPresented => {
            write!(f, "the client sent no certificate; it may have none from a CA in ca-cert.pem")
        }
        Fault::InvalidCertificate(why) => write!(f, "the client's certificate {}", told_of(why)),
        Fault::AlertReceived(alert) => {
            write!(f, "the client refused the connection: {}", told_of_alert(*alert))
        }
        Fault::InvalidMessage(what) => write!(f, "the client sent no valid TLS ({what:?})"),
        Fault::PeerIncompatible(why) => {
            write!(f, "the client has no version or cipher of TLS in common ({why:?})")
        }
        Fault::PeerMisbehaved(how) => write!(f, "the client broke the rules of TLS ({how:?})"),
        Fault::DecryptError => write!(f, "a message of the client was changed on its way"),
        _ => write!(f, "TLS failed ({})", short(&fault.to_string())),
    }
}

/// The fault of a certificate, as the end of a sentence.
pub(crate) fn told_of(why: &CertificateError) -> String {
    use CertificateError::*;
    match why {
        Expired | ExpiredContext { .. } => "has expired".into(),
        NotValidYet | NotValidYetContext { .. } => "is not valid yet".into(),
        Revoked => "was revoked".into(),
        UnknownIssuer => "is of no CA in ca-cert.pem".into(),
        UnknownRevocationStatus => "is of a CA without a list in ca-crl.pem".into(),
        BadEncoding => "cannot be read".into(),
        BadSignature => "has a signature that does not match".into(),
        InvalidPurpose | InvalidPurposeContext { .. } => "is not for this purpose".into(),
        ApplicationVerificationFailure => "comes with more than four others".into(),
        other => format!("is refused ({})", short(&format!("{other:?}"))),
    }
}

/// The beginning of a text that a client may have made long.
fn short(text: &str) -> String {
    let end = text.char_indices().nth(TOLD_CHARS_MAX);
    end.map_or_else(|| text.to_owned(), |(end, _)| format!("{}...", &text[..end]))
}

fn told_of_alert(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnknownCA => "it does not know the CA of the server's certificate".into(),
        AlertDescription::CertificateExpired => "the server's certificate has expired".into(),
        AlertDescription::BadCertificate | AlertDescription::CertificateUnknown => {
            format!("it does not accept the server's certificate ({alert:?})")
        }
        other => format!("{other:?}"),
    }
}
