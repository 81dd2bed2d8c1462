//! What programs that serve a device have in common, be it a volume or a simulated device.
//!
//! ```text
//! outside  addresses and limits, as options of a command
//! logs     logging, the pid file, systemd
//! watched  metrics of what is served
//! serve    NBD and metrics until a signal
//! ```
mod logs;
mod outside;
mod serve;
mod watched;

pub use logs::{Logging, Ready};
pub use outside::{Listeners, Listening, Outside};
pub use serve::{serve_until, tell};
pub use watched::{About, Tell};
