//! The devices under test, one file each.
mod ssd;

pub use ssd::SsdSubject;
