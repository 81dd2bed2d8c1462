//! Translation layers from the time before page mapping fitted into memory: block mapping, hybrid
//! logs, a cached map. Each is a device of its own, on zones that represent single erase blocks.
//!
//! ```text
//! device     PageDevice: one request at a time          spec, config  from text, over simulated NAND
//! writes     writes that wait for their turn
//! block_map  pages at their offsets                     bast, fast    log blocks; merge: shared functions
//! dftl       pages anywhere, the map on flash           blocks        erase blocks and spare areas
//! survey     finds the blocks with current pages after a power cut
//! ```
//!
//! **Guarantees.** A write of one page is atomic at any power cut, and durable when it is
//! acknowledged; so is the trim of each page. Recovery reads all spare areas: the highest version of
//! a page is the current one, wherever it lies. A failed program latches the device. There are no
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
