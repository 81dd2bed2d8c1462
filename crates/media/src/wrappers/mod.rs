//! Wrappers over any [`ZoneMedia`](crate::ZoneMedia); they can be stacked.
//!
//! ```text
//! Faults     makes chosen operations fail, corrupts pages silently
//! Flaky      fails operations for a while
//! Recorder   keeps the last operations, and a running hash of all
//! Throttle   adds latency and limits bandwidth
//! Checker    asserts that its caller keeps the contract
//! ReadOnly   refuses every operation that writes
//! ZoneWindow some of a medium's zones as a medium of their own
//! UntilCut   stops everything at a power cut
//! layer      how they are made: a ZoneLayer forwards whatever it does not change
//! ```
mod checker;
mod faults;
mod flaky;
mod layer;
mod read_only;
mod recorder;
mod throttle;
mod until_cut;
mod window;

pub use checker::Checker;
pub use faults::{AppendFault, Faults, FaultsOptions};
pub use flaky::Flaky;
pub use layer::{ZoneLayer, ZoneOperation};
pub use read_only::ReadOnly;
pub use recorder::Recorder;
pub use throttle::{Throttle, ThrottleOptions};
pub use until_cut::UntilCut;
pub use window::ZoneWindow;
