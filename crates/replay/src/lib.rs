//! Replay of traces: through caches alone, on simulated devices, and through a buffer above devices.
//!
//! ```text
//! cache_replay  policies times cache sizes over a trace in memory: misses and write-backs
//! buffer_replay the same through the engine's buffer pool over a simulated device, in virtual time
//! device_replay a trace on a simulated device in virtual time, every read checked
//! tier_replay   through a buffer pool and a flash cache over a slow home, counted or on simulated devices
//! miss_ratio_curve  LRU at all sizes in one pass, exact or sampled
//! advise        recommends a policy and size for a trace on a device, with the evidence
//! in_memory     traces in memory, as far as there is some
//! side_by_side  independent runs on all cores     work  their progress
//! cache_bench   speed of policies
//! tier_bench    speed of middle tiers
//! device_bench  speed of the simulation of a whole device
//! device_memory memory of that simulation
//! ```
pub mod advise;
pub mod buffer_replay;
pub mod cache_bench;
pub mod cache_replay;
pub mod device_bench;
pub mod device_memory;
pub mod device_replay;
mod in_memory;
pub mod miss_ratio_curve;
pub mod side_by_side;
pub mod tier_bench;
pub mod tier_replay;
pub mod work;
