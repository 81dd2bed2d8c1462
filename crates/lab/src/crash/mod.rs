//! The crash lab: a workload, a power cut at a chosen media operation, recovery (cut again where
//! asked), and a check of every promise.
//!
//! ```text
//! rig        a medium that can be cut: simulated NAND, or a file store that keeps unsynced writes apart
//! workload   random commands from a seed, and what they should leave
//! run        one scenario: load, cut, recover, verify, go on, verify
//! verify     what the device's promise allows it to hold
//! ```
mod rig;
mod run;
mod verify;
mod workload;

pub use rig::{FATES, Fate, FileRig, NandRig, Rig};
pub use run::{CrashOutcome, Cut, Scenario, dry_run, run};
pub use workload::{Shape, Violation};
