//! Tests' and benches' access to the machine that they run on, beside the engine.
//!
//! ```text
//! skip      a test that lacks something reports it; under CI that is a failure, unless `.ci/may-lack` allows it
//! built     the program `tantalum` that tests run, and folders of the build
//! programs  other programs, their output, and fio's results
//! certificates  of servers and clients, for TLS
//! documented  command lines in pages and help texts
//! rig       served volumes, and their exports as files and block devices
//! postgres  a PostgreSQL on ext4 on a block device
//! resident  the share of a file that is in the system's page cache
//! ```
//!
//! It depends on no other crate of the workspace, so it brings no feature into what is measured.
pub mod built;
pub mod certificates;
pub mod documented;
pub mod postgres;
pub mod programs;
pub mod resident;
pub mod rig;
pub mod skip;

pub use skip::{can_loop, found, installed, is_root, skip};
