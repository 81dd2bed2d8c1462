//! One volume for many processes of a machine. A server lets other processes use its volume over a Unix socket,
//! with transactions and SQLite's locks. Both end with the process that holds them.
//!
//! ```text
//! request      a client's requests to a device, and the answers
//! service      performs the requests of one client; its transactions are its own
//!   open       its open transactions, and the time for which they have been idle
//!   places     the number of open transactions allowed to each client
//! locks        SHARED, RESERVED, PENDING, EXCLUSIVE among all users of a volume
//! changes      the latest changes by page, for clients that keep pages in memory
//! tracked      a device that records its changes there
//! protocol     the bytes on the wire, as pure functions (docs/local.md)
//! server       accepts, limits and stops clients; the state that all clients share
//!   session    one client: its requests, its end
//!   turns      the order of writing among refused clients
//!   waiting    waits for a lock that another client holds
//!   allowances limits the time of these waits
//!   metrics    counters of clients and their requests
//!   inbox      receives frames from a connection, in bounded memory
//! connection   the client's side: blocking, for any number of threads
//! place        the path of a volume's socket
//! fault_points protections that a test can switch off
//! ```
//!
//! The server uses a volume only through [`tantalum_base::PageDevice`], and runs as tasks of the volume's own
//! executor.
mod allowances;
pub mod changes;
mod connection;
pub mod fault_points;
mod inbox;
mod locks;
mod metrics;
mod open;
mod place;
mod places;
mod protocol;
mod request;
mod server;
mod service;
mod session;
#[cfg(test)]
mod tests;
mod tracked;
mod turns;
mod waiting;

pub use connection::{Connection, Patience, connect};
pub use locks::{Level, Locks};
pub use place::{Place, socket_path};
pub use protocol::{FileId, Welcome};
pub use request::{Answer, Call, Raise, Request};
pub use server::{Server, ServerOptions};
pub use service::Service;
pub use tracked::Tracked;
