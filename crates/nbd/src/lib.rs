//! Serves a page device to NBD clients: Linux (`nbd-client`), QEMU, libnbd's tools, fio.
//!
//! ```text
//! server                     accepts, limits, stops
//!   session                  one connection: reader -> workers -> writer
//!     session::negotiation   fixed newstyle handshake
//!     session::tls           the step from a plain connection to TLS
//!     session::inbox, link   receive buffer; state shared by the tasks of a connection
//!     session::reply         simple or structured replies
//!   part                     parts of an export by their names
//!   client                   its turns among all clients, and whether it has gone
//!   export                   the commands, in pages; shared by all connections
//!     pieces                 long requests as several commands of the device
//!     block_status           which bytes are allocated, and which are zeros
//!     refusal                checks a request before the device sees it
//!     holds                  waits for pages that a transaction holds
//!     range_lock             orders read-modify-writes and overlapping requests
//! live                       on sockets of the live executor
//! metrics                    counters and durations for monitoring
//! protocol                   the bytes on the wire, as pure functions
//! ```
//!
//! It uses a volume only through [`tantalum_base::PageDevice`]. It runs as tasks on the executor of the volume's own
//! thread, so a request does not switch threads. `docs/nbd.md` has the promises to clients.
mod block_status;
mod client;
mod export;
mod failure_log;
mod holds;
mod live;
mod metrics;
mod options;
mod part;
mod pieces;
mod protocol;
mod range_lock;
mod refusal;
mod server;
mod session;
mod signal;
mod span;
mod statistics;
mod terms;
#[cfg(test)]
mod tests;

pub use options::{ServerOptions, Tls};
pub use server::Server;
pub use statistics::Statistics;
pub use tantalum_runtime::{Accept, ByteStream};
pub use tantalum_tls::Certificates;
