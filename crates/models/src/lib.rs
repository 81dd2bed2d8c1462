//! Hardware and devices that exist in simulations alone: no live volume needs anything in here.
//!
//! ```text
//! nand           flash packages: geometry, timing, wear, faults
//! ├ nand_zones   zones as superblocks over them
//! disk           a disk: seeks, rotation, zones, an elevator, a write cache
//! metered        a device that somebody else runs, with an allowance: storage of a cloud
//! nvram          a region that survives a power cut
//! energy         capacitors: how much a device can write once the power is lost
//! HostQueue      a PageDevice over another: what the link to a host costs
//! profile        devices of the papers, and of today, as numbers, and how they are made over simulated media
//! rig            media whose power can be cut: simulated flash, or a file
//! tx_cache       TxCache: a device over the FTL whose cache in NVRAM carries transactions
//! baselines      TxFlash, atomic-write log, redo log: what TxCache was measured against;
//!                page_turns: their changes of the same pages keep their order
//! personality    older translation layers: block mapping, BAST, FAST, DFTL
//! ```
pub mod baselines;
pub mod disk;
mod energy;
pub mod fault_points;
mod host_queue;
mod issue_order;
pub mod metered;
pub mod nand;
pub mod nand_zones;
pub mod nvram;
mod page_turns;
pub mod personality;
pub mod profile;
pub mod rig;
pub mod tx_cache;

pub use energy::Capacitors;
pub use host_queue::{HostQueue, HostQueueOptions, Linked};
pub use nand::{Nand, NandOptions};
pub use nand_zones::{NandZones, NandZonesOptions};
pub use nvram::Nvram;
pub use profile::{DeviceConfig, DeviceSpec, Profile, Simulated, SimulatedDevice, SimulatedSsd};
pub use tx_cache::{TxCache, TxCacheKind, TxCacheOptions};
