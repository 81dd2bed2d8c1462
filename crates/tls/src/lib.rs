//! TLS for a server, over any [`ByteStream`](tantalum_runtime::ByteStream): encrypted connections of clients that have a certificate.
//!
//! ```text
//! certificates   reads certificates from a folder, and checks that they can be used
//!   revoked      the CA of a list of revoked certificates
//! clients        the check of a client's certificate, with a limit on its work
//! stream         a connection in TLS, itself a byte stream
//!   outgoing     sends the session's bytes, for the reader and the writer of a connection
//!   lent         a value that returns to its cell even if the task that uses it is dropped
//! failure        the reason for the failure of a handshake or a connection, in words
//! ```
//!
//! The protocol is that of `rustls`, with the cryptography of `ring`. Keys are made with randomness of the operating system, so the bytes
//! of a connection differ from run to run, in virtual time too. Nothing else of a run depends on them.
mod certificates;
mod clients;
mod failure;
mod lent;
mod outgoing;
mod revoked;
mod stream;

pub use certificates::Certificates;
pub use failure::Failure;
pub use stream::{HELD_BYTES, SENT_BYTES, TlsStream};
