//! The tiers put together: a volume as a user creates, opens, serves and checks it.
//!
//! ```text
//! config      VOLUME.toml, every default documented
//! superblock  format version, identity, sizes; two copies
//! layout      capacity and over-provisioning → zones
//! flash       kind "flash": an SSD over zones in a file or in memory
//! host        a volume on a thread of its own, and blocking clients of it
//! ```
pub mod client;
pub mod config;
mod flash;
mod host;
pub mod layout;
pub mod superblock;

pub use config::VolumeConfig;
pub use flash::{FlashVolume, OpenReport};
pub use host::{HostOptions, VolumeHost, open_client};
