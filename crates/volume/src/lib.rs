//! Volumes: creating, opening, growing and checking them.
//!
//! ```text
//! config      VOLUME.toml, every default documented; writing a new one (new_config)
//! sizes       sizes as text, converted to pages
//! folder      makes the names of files durable
//! superblock  format version, identity, sizes; two copies, and the choice between them (copies)
//! create      creates a volume, and refuses to overwrite anything
//! refusals    reasons not to create, open or give up a volume
//! no_room     errors about lack of room, as a user reads them
//! space       the space that a new tiered volume needs on each file system, and the check that it is free
//! places      checks that each store is available: a file of its own, on permanent storage, not in use
//! claim       the claim on a home: refused if there is one, put on the home of a new volume, taken off a home without a cache
//! unfinished  an attach that was interrupted; a creation (unfinished_creation)
//! members     homes that are members of an array or a pool
//! content     recognizes the content of a volume or a home by its first bytes
//! layout      capacity and over-provisioning → zones
//! resize      grows a volume
//! flash       kind "flash": a buffer over an SSD over zones in a file or in memory
//! tiered      kind "tiered": the same as a cache of a home; rescue, if the flash is lost
//! own_home    compares home and flash to test whether a home is the volume's own; finds a claim that it cannot show (unseen_claim)
//! home_config the home in a configuration; a home that ends within a page (home_end)
//! store       file or memory, as configured; a missing flash (lost_flash)
//! open_options  read-write or read-only
//! check       reports every problem and its place; changes nothing
//! open        opens a volume on the executor of this thread
//! origin      the file from which a volume was opened
//! stat        the figures of an open volume, and the kind of its content (holds)
//! asking      asks the server of a volume
//! on_ack      makes every change durable before its acknowledgement, over a volume that is durable on flush
//! recorded    writes requests to a page trace, and refuses writes if there is no room (room)
//! ```
pub mod asking;
mod check;
mod claim;
pub mod config;
pub mod content;
mod copies;
mod create;
pub mod fault_points;
mod flash;
mod folder;
mod holds;
mod home_config;
mod home_end;
pub mod layout;
mod lost_flash;
mod members;
mod new_config;
mod no_room;
mod on_ack;
mod open;
mod open_options;
mod origin;
mod own_home;
mod permissions;
mod places;
mod recorded;
pub mod refusals;
mod resize;
mod room;
mod sizes;
mod space;
mod stat;
mod store;
pub mod superblock;
mod tiered;
mod unfinished;
mod unfinished_creation;
mod unseen_claim;

pub use check::{CheckReport, check_volume};
pub use claim::{claim_of, needs_no_claim, open_home_to_look, unclaim_home, undo_path};
pub use config::VolumeConfig;
pub use copies::{Copies, superblock_at};
pub use create::{attach_volume, check_attach, create_volume};
pub use flash::{FlashVolume, OpenReport, create_flash, open_flash, read_superblock};
pub use home_config::{AdmitConfig, ClaimConfig, DestageConfig, HomeConfig};
pub use lost_flash::is_detached;
pub use on_ack::OnAck;
pub use open::{open_tiered_volume, open_volume};
pub use open_options::OpenOptions;
pub use origin::Origin;
pub use own_home::Ends;
pub use permissions::new_file_mode;
pub use places::journal_in_memory;
pub use recorded::{Recorded, Recording};
pub use resize::{Resized, plan_growth, resize_volume, settle, write_growth};
pub use sizes::RoundedSize;
pub use space::{Holder, StoreSpace, dirty_bytes_max, holder_of, refuse_without_space, spaces};
pub use stat::Stat;
pub use store::{VolumeStore, forget_volume, open_store, open_tiered_stores, rescue_volume};
pub use tiered::{
    RescueReport, TieredDevice, TieredStores, TieredVolume, format_tiered, is_ordered, open_tiered,
    rescue,
};
pub use unfinished::finish_attach;
pub use unfinished_creation::is_creation_unfinished;
