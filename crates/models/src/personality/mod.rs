//! Translation layers as they were before page mapping fitted into memory: block mapping, hybrid
//! logs, a cached map. Each is a device of its own, over zones that stand for single erase blocks.
//!
//! ```text
//! device     PageDevice: one request at a time          spec, config  from text, over simulated NAND
//! writes     those that wait for their turn
//! block_map  pages at their offsets                     bast, fast    log blocks; merge: what they share
//! dftl       pages anywhere, the map on flash           blocks        erase blocks and spare areas
//! survey     which blocks hold what is in force, after a power cut
//! ```
//!
//! **Promises.** A write of one page is whole or not there at any power cut, and durable when it is
//! acknowledged; so is each page of a trim. Recovery reads all spare areas: the highest version of a
//! page is in force, wherever it lies. A program that fails latches the device. There are no
//! transactions, and pages cannot be shared.
mod bast;
mod block_map;
mod blocks;
mod config;
mod device;
mod dftl;
mod fast;
mod merge;
mod spec;
mod statistics;
mod survey;
mod writes;

pub use config::{PersonalityConfig, SimulatedPersonality};
pub use device::{Personality, PersonalityKind};
pub use spec::PersonalitySpec;
pub use statistics::PersonalityStatistics;
