//! Wrappers over any [`ZoneMedia`](crate::ZoneMedia); they can be stacked.
//!
//! ```text
//! Faults     lets chosen operations fail, corrupts pages silently
//! Recorder   keeps what was done, and a running hash of it
//! Throttle   adds latency and limits bandwidth
//! Checker    asserts that its caller keeps the contract
//! ReadOnly   refuses whatever would change it
//! ZoneWindow some of a medium's zones as a medium of their own
//! UntilCut   stops everything when the power goes
//! layer      how they are made: a ZoneLayer forwards whatever it does not change
//! ```
mod checker;
mod faults;
mod layer;
mod read_only;
mod recorder;
mod throttle;
mod until_cut;
mod window;

pub use checker::Checker;
pub use faults::{AppendFault, Faults, FaultsOptions};
pub use layer::{ZoneLayer, ZoneOperation};
pub use read_only::ReadOnly;
pub use recorder::Recorder;
pub use throttle::{Throttle, ThrottleOptions};
pub use until_cut::UntilCut;
pub use window::ZoneWindow;
