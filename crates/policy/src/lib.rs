//! Replacement policies: pure deciders that do no I/O and have no clock.
//!
//! A [`Policy`] receives each request and returns whether it hit and which pages must leave or be written. The
//! engine's buffer pool and the simulator drive the same objects. On its own a policy serves tens of millions of
//! requests a second: everything is an index into flat arrays, and nothing is allocated after the cache is full.
//!
//! ```text
//! policy       the trait; Request, Effect, Tally        registry, flash_spec   "clock:bits=2" -> Box<dyn Policy>
//!
//!              one policy per file or folder
//! for all      lru fifo clock second_chance sieve lfu slru lru_k two_q arc lirs s3_fifo w_tinylfu
//!              lecar cacheus                                       two experts, by regret
//!              opt
//! for flash    cflru lru_wsr ccflru ad_lru lirs_wsr watt            fewer writes
//!              fab ref_                                             writes block by block
//!              casa sawc                                            weigh the costs of reads and writes
//! over others  cfdc: writes in clusters     ace: writes in batches
//!
//!              their parts
//! page_table   page -> frame: an array or a hash table
//! frame_lists  frames in lists, in the order of use     frame_ring   in a ring, in the order of arrival
//! frames       frames without an order                  frame_heap   frames by rank
//! ghost_lists  lists that remember evicted pages        answers      methods that only delegate
//! use_order    frames by number of uses                 expert_weights  weights of two experts
//! frequency_sketch  approximate request counts          cost_detection  cost of a read compared with a write
//!
//! cost_bound   lower bounds on the cost of any policy
//! cleaning     the zone that a translation layer cleans next: greedy cost_benefit fifo d_choices
//! tier         the pages that a flash cache over a slow home keeps: write cache, LOC, GLB, BL, LPD, NFA
//! ```
pub mod ace;
pub mod ad_lru;
mod answers;
pub mod arc;
pub mod cacheus;
pub mod casa;
pub mod ccflru;
pub mod cfdc;
pub mod cflru;
pub mod cleaning;
pub mod clock;
pub mod cost_bound;
pub mod cost_detection;
mod expert_weights;
pub mod fab;
pub mod fifo;
mod flash_spec;
mod frame_heap;
mod frame_lists;
mod frame_ring;
mod frames;
mod frequency_sketch;
mod ghost_lists;
pub mod lecar;
pub mod lfu;
pub mod lirs;
pub mod lirs_wsr;
pub mod lru;
pub mod lru_k;
pub mod lru_wsr;
#[cfg(test)]
mod model_tests;
pub mod opt;
pub mod page_table;
pub mod policy;
pub mod ref_;
pub mod registry;
pub mod s3_fifo;
pub mod sawc;
pub mod second_chance;
pub mod sieve;
pub mod slru;
pub mod tier;
pub mod two_q;
mod use_order;
pub mod w_tinylfu;
pub mod watt;

pub use cleaning::{Cleaning, CleaningSpec};
pub use policy::{Effect, Gauge, Physical, Policy, Request, Tally};
pub use registry::{PolicySpec, Workload};
