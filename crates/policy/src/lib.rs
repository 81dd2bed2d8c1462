//! Replacement policies: pure deciders that do no I/O and know no time.
//!
//! A [`Policy`] is told each request and says whether it hit and which pages must go or be written. The engine's
//! buffer pool and the simulator drive the same objects; alone they run at tens of millions of
//! requests a second, for which everything is an index into flat arrays and nothing is allocated
//! after the cache is full.
//!
//! ```text
//! registry   "clock:bits=2" -> Box<dyn Policy>        the only list of all policies
//! flash_spec                                          its part for some of those made for flash
//! lru, fifo, clock, second_chance, sieve, opt,        one file a policy
//! lru_k, two_q, arc, lirs, s3_fifo, w_tinylfu
//! cflru, lru_wsr, ccflru, ad_lru, lirs_wsr, watt      made for flash: fewer writes
//! fab, ref_                                           made for flash: writes block by block
//! casa, sawc, cfdc (over any other)                   made for flash: by cost; in clusters
//! ace (over any other)                                write-backs in batches
//! policy     the trait, Request, Effect, Tally       page_table  page -> frame: array or hash
//! cost_detection                                      what a read costs beside a write
//! cost_bound                                          what no policy can pay less than
//! cleaning   which zone a translation layer empties: greedy, cost_benefit, fifo, d_choices
//! list, ring u32-index linked lists and ring over frames; lists: several lists over the same frames
//! linked     nodes in several lists at once
//! frames     frames without an order                 recency    lists in which items keep their age
//! frame_heap, frequency_sketch                        frames by rank; how often pages were asked for
//! ```
pub mod ace;
pub mod ad_lru;
pub mod arc;
pub mod casa;
pub mod ccflru;
pub mod cfdc;
pub mod cflru;
pub mod cleaning;
pub mod clock;
pub mod cost_bound;
pub mod cost_detection;
pub mod fab;
pub mod fifo;
mod flash_spec;
mod frame_heap;
mod frames;
mod frequency_sketch;
mod linked;
pub mod lirs;
pub mod lirs_wsr;
mod list;
mod lists;
pub mod lru;
pub mod lru_k;
pub mod lru_wsr;
#[cfg(test)]
mod model_tests;
pub mod opt;
pub mod page_table;
pub mod policy;
mod recency;
pub mod ref_;
pub mod registry;
mod ring;
pub mod s3_fifo;
pub mod sawc;
pub mod second_chance;
pub mod sieve;
pub mod two_q;
pub mod w_tinylfu;
pub mod watt;

pub use cleaning::{Cleaning, CleaningSpec};
pub use policy::{Effect, Gauge, Physical, Policy, Request, Tally};
pub use registry::{PolicySpec, Workload};
