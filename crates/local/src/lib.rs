//! One volume for many processes of a machine: who serves it lets others use it over a Unix socket, with
//! transactions and SQLite's locks, which end with the process that holds them.
//!
//! ```text
//! request      what a client asks of a device, and what it is answered
//! service      does that for one client; its transactions are its own
//!   open       which those are, and how long nobody used them
//!   places     how many of all a client may have
//! locks        SHARED, RESERVED, PENDING, EXCLUSIVE among all who use a volume
//! changes      which pages changed since when, for those who keep pages in memory
//! tracked      a device that remembers that
//! protocol     the bytes on the wire, as pure functions (docs/local.md)
//! server       accepts, limits, stops; the state that all clients share
//!   session    one client: its requests, its end
//!   turns      whose turn it is to write, among those who were refused
//!   waiting    waits for a lock that another client holds
//!   allowances for how long
//!   metrics    what is counted of all that
//!   inbox      frames off a connection, in bounded memory
//! connection   the client's side: blocking, for any number of threads
//! place        where the socket of a volume is
//! fault_points protections that a test can switch off
//! ```
//!
//! The server knows only [`tantalum_base::PageDevice`] of a volume, and runs as tasks of the volume's own executor.
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
