//! The tiers put together: a volume as a user creates, opens, serves and checks it.
//!
//! ```text
//! config      VOLUME.toml, every default documented
//! superblock  format version, identity, sizes; two copies
//! create      making a new one, and refusing to overwrite
//! layout      capacity and over-provisioning → zones
//! flash       kind "flash": a buffer over an SSD over zones in a file or in memory
//! store       file or memory, as configured
//! host        a volume for synchronous callers, on their thread or on one of its own
//! client      the blocking handle
//! origin      which file it was opened from
//! ```
pub mod client;
pub mod config;
mod create;
mod flash;
mod host;
pub mod layout;
mod origin;
mod store;
pub mod superblock;

pub use config::VolumeConfig;
pub use create::create_volume;
pub use flash::{FlashVolume, OpenReport, geometry, read_superblock};
pub use host::{HostOptions, Placement, VolumeHost, open_client, open_volume};
pub use store::VolumeStore;
