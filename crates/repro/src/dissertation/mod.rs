//! "Caching for flash-based databases and flash-based caching for databases" (Ou, 2012): chapter 3
//! (CFDC), chapter 4 (energy), chapter 5 (CASA and SAWC).
//!
//! ```text
//! workload  the traces: the synthetic ones of 3.3, and stand-ins for those of appendix B
//! bank      the order of the bank's trace, which is public, with updates
//! runs      policies times sizes over a device, on all cores; each run is made once and remembered
//! counts    the same without a device, and formula 5.1
//! cfdc      figures 3.5 to 3.8      energy      figures 4.2 to 4.4
//! casa      figures 5.2 to 5.8      cost_ratios table 5.2 and figure 5.4
//! gains     gains of policies over others on any device
//! tried     numbers for causes of chapter 4's misses that they may rule out
//! live      the cost ratio of a real device
//! shapes    statements of the text about the figures, besides their numbers
//! small     those that are not met at the small scale
//! ```
//!
//! The database's pages have 8 KiB, two of a device's pages; a cluster has 16. There is one client and
//! a classic buffer manager, which writes a victim before it continues and is empty at the start.
mod bank;
mod casa;
mod cfdc;
mod cost_ratios;
mod counts;
mod energy;
mod gains;
pub mod live;
mod remembered;
mod runs;
mod shapes;
mod small;
#[cfg(test)]
mod tests;
mod tried;
mod workload;

pub(super) use casa::casa;
pub(super) use cfdc::cfdc;
pub(super) use energy::energy;
pub(super) use gains::{Gains, gains_on};
pub(super) use runs::CPU_NS;
pub(super) use shapes::{CASA, CFDC, ENERGY};
pub(super) use small::{CASA_NOT_MET, CFDC_NOT_MET, ENERGY_NOT_MET};
pub(super) use workload::{bank, capture, first, generated};
