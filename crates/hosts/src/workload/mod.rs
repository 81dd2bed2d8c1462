//! Loads that storage engines are put under, in virtual time and live.
//!
//! ```text
//! store  what a load needs of an engine
//! ycsb   YCSB's core workloads
//! ```
mod store;
pub mod ycsb;

pub use store::{KeyValueStore, LoadValue};
