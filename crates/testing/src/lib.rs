//! What tests and benches need of the machine they run on, beside the engine.
//!
//! ```text
//! skip      a test that lacks something says so; under CI that is a failure, unless `.ci/may-lack` allows it
//! built     the program `tantalum` that tests run, and folders beside what was built
//! programs  other programs, their output, and what fio measured
//! documented  command lines in pages and helps
//! rig       volumes served, and their exports as files and block devices
//! postgres  a PostgreSQL on ext4 on a block device
//! ```
//!
//! It depends on no other crate of the workspace, so it brings no feature into what is measured.
pub mod built;
pub mod documented;
pub mod postgres;
pub mod programs;
pub mod rig;
pub mod skip;

pub use skip::{can_loop, found, installed, is_root, skip};
