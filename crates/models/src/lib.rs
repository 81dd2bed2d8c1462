//! Hardware and devices for simulations only: no live volume needs anything in this crate.
//!
//! ```text
//! nand           flash packages: geometry, timing, wear, faults
//! ├ nand_zones   zones as superblocks over them
//! disk           a disk: seeks, rotation, zones, an elevator, a write cache
//! metered        a device run by a provider, with rate limits: cloud storage
//! nvram          a memory region that survives a power cut
//! energy         capacitors: how much a device can write after the power is lost
//! HostQueue      wraps a PageDevice: the cost of the link to a host
//! profile        devices of the papers, and of today, as numbers, built over simulated media
//! rig            media whose power can be cut: simulated flash, or a file
//! tx_cache       TxCache: a device over the FTL whose NVRAM cache supports transactions
//! baselines      TxFlash, atomic-write log, redo log: the devices TxCache was compared with;
//!                page_turns: orders their changes of the same pages
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
