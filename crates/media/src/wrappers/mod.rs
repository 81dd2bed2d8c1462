//! Wrappers over any [`ZoneMedia`](crate::ZoneMedia); they can be stacked.
//!
//! ```text
//! Faults     lets chosen operations fail, corrupts pages silently
//! Recorder   keeps what was done, and a running hash of it
//! Throttle   adds latency and limits bandwidth
//! Checker    asserts that its caller keeps the contract
//! ReadOnly   refuses whatever would change it
//! ZoneWindow some of a medium's zones as a medium of their own
//! forward    what none of them changes
//! ```
mod checker;
mod faults;
mod forward;
mod read_only;
mod recorder;
mod throttle;
mod window;

pub use checker::Checker;
pub use faults::{AppendFault, Faults, FaultsOptions};
pub use read_only::ReadOnly;
pub use recorder::{Recorded, Recorder};
pub use throttle::{Throttle, ThrottleOptions};
pub use window::ZoneWindow;
