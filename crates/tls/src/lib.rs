//! TLS for a server, over any [`ByteStream`](tantalum_runtime::ByteStream): encrypted connections of clients that have a certificate.
//!
//! ```text
//! certificates   reads them from a folder, and checks that they can work
//!   revoked      the CA of a list of revoked certificates
//! clients        the check of a client's certificate, with a limit on its work
//! stream         a connection in TLS, itself a byte stream
//!   outgoing     sends what the session has to send, for the reader and the writer of a connection
//!   lent         a buffer that a task may drop while it waits
//! failure        why a handshake or a connection failed, in words
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
