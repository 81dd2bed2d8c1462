//! The tiers put together: a volume as a user creates, opens, serves and checks it.
//!
//! ```text
//! config      VOLUME.toml, every default documented; a new one (new_config)
//! sizes       sizes as people write them, in pages
//! folder      makes names of files durable
//! superblock  format version, identity, sizes; two copies, and which of them counts (copies)
//! create      making a new one, and refusing to overwrite
//! refusals    why a volume is not made, opened or given up
//! space       what a new tiered one takes of which file system, and whether that is free
//! places      whether each store can be had: a file of its own that stays and that nobody uses
//! claim       the claim on a home: refused where there is one, put on a new volume's, taken off a home that is alone
//! unfinished  an attach that was cut short
//! members     homes that are a part of something else
//! content     the content of a volume or a home, by its first bytes
//! layout      capacity and over-provisioning → zones
//! resize      making one larger
//! flash       kind "flash": a buffer over an SSD over zones in a file or in memory
//! tiered      kind "tiered": the same as a cache of a home; rescue, where the flash is lost
//! home_config the home in a configuration; one that ends within a page (home_end)
//! store       file or memory, as configured; a flash that is not there (lost_flash)
//! open_options  to read and write, or to be read only
//! check       everything that can be wrong, where; changes nothing
//! host        a volume for synchronous callers, on their thread or on one of its own
//! client      the blocking handle
//! counters    what a program did that opened it itself, for `stat` and `top`
//! origin      which file it was opened from
//! on_ack      keeps what it acknowledges, over a volume that keeps what is flushed
//! served      the same where another process may have it open, and serve it
//! recorded    writes what is asked of it to a page trace, and refuses what there is no room for (room)
//! ```
mod check;
mod claim;
pub mod client;
pub mod config;
pub mod content;
mod copies;
mod counters;
mod create;
pub mod fault_points;
mod flash;
mod folder;
mod home_config;
mod home_end;
mod host;
pub mod layout;
mod lost_flash;
mod members;
mod new_config;
mod on_ack;
mod open_options;
mod origin;
mod places;
mod recorded;
pub mod refusals;
mod resize;
mod room;
mod served;
mod sizes;
mod space;
mod store;
pub mod superblock;
mod tiered;
mod unfinished;

pub use check::{CheckReport, check_volume};
pub use claim::{claim_of, needs_no_claim, open_home_to_look, unclaim_home, undo_path};
pub use client::Client;
pub use config::VolumeConfig;
pub use copies::{Copies, superblock_at};
pub use counters::{ToldCounters, counters_of};
pub use create::{attach_volume, check_attach, create_volume};
pub use flash::{FlashVolume, OpenReport, create_flash, open_flash, read_superblock};
pub use home_config::{AdmitConfig, ClaimConfig, DestageConfig, HomeConfig};
pub use host::{
    HostOptions, Placement, VolumeHost, open_tiered_volume, open_volume, open_volume_with,
};
pub use lost_flash::is_detached;
pub use on_ack::OnAck;
pub use open_options::OpenOptions;
pub use places::journal_in_memory;
pub use recorded::{Recorded, Recording};
pub use resize::{Resized, plan_growth, resize_volume, settle, write_growth};
pub use served::{
    connect, open_client, open_client_hosted, open_client_with, open_reader, volume_file,
};
pub use sizes::RoundedSize;
pub use space::{Holder, StoreSpace, dirty_bytes_max, holder_of, refuse_without_space, spaces};
pub use store::{VolumeStore, forget_volume, open_store, open_tiered_stores, rescue_volume};
pub use tantalum_local::Level;
pub use tiered::{
    RescueReport, TieredDevice, TieredStores, TieredVolume, format_tiered, is_ordered, open_tiered,
    rescue,
};
pub use unfinished::finish_attach;
