//! The crash lab: a workload, a power cut at a chosen media operation, recovery (cut again where
//! asked), and a check of every promise.
//!
//! ```text
//! subject    what is under test: formatted once, opened again after each cut
//! subjects   one file a kind of device
//! powered    stops everything when the medium loses power
//! rig        a medium that can be cut: simulated NAND, or a file store that keeps unsynced writes apart
//! workload   random commands from a seed, and what they should leave
//! run        one scenario: load, cut, recover, verify, go on, verify
//! verify     what the device's promise allows it to hold
//! ```
mod powered;
mod rig;
mod run;
mod subject;
pub mod subjects;
mod verify;
mod workload;

pub use powered::Powered;
pub use rig::{FileRig, NandRig, Rig};
pub use run::{CrashOutcome, Cut, Scenario, dry_run, run};
pub use subject::{Coverage, Opening, Subject};
pub use workload::{Shape, Violation};
