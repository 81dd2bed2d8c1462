//! Common to programs that serve a device, which may be a volume or a simulated device.
//!
//! ```text
//! outside  addresses and limits, as options of a command
//! encryption  TLS for NBD clients, as options of a command
//! group    groups of the system, by name
//! logs     logging, the pid file, systemd
//!   log_writer  writes lines without making the server wait
//!   log_limits  limits lines by kind
//! watched  the metrics of the device and the servers
//! serve    NBD and metrics until a signal
//! ```
mod encryption;
mod group;
mod log_limits;
mod log_writer;
mod logs;
mod outside;
mod serve;
mod watched;

pub use encryption::told_of_tls;
pub use logs::{Log, Logging, Ready};
pub use outside::{Listeners, Listening, Outside};
pub use serve::{Ending, serve_until, tell};
pub use watched::{About, Tell};
