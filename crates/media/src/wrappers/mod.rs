//! Wrappers over any [`ZoneMedia`](crate::ZoneMedia); they can be stacked.
//!
//! ```text
//! Faults     makes chosen operations fail, corrupts pages silently
//! Flaky      fails operations for a while
//! Recorder   keeps the last operations as text, and a running hash of all
//! Throttle   adds latency and limits bandwidth
//! Checker    asserts that its caller obeys the contract
//! ReadOnly   refuses every operation that writes
//! ZoneWindow a range of a medium's zones as a medium of its own
//! UntilCut   stops everything at a power cut
//! layer      base of wrappers: a ZoneLayer forwards every call that it does not override
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
