//! What the FTL's pages are stored on.
//!
//! ```text
//! zone           ZoneMedia: append-only zones, the contract the FTL builds on
//! └ file_zones   zones as extents of a flat store                (block_store: file, memory, crash wrapper)
//! cut            power cuts at a chosen operation, and its fate
//! episodes       I/O errors that pass, of zones and stores
//! wrappers       over any zones: faults, recording, throttling, checking
//! fault_points   protections that a test can switch off
//! conformance    what every ZoneMedia must do, as tests         (feature `testing`)
//! ```
pub mod block_store;
#[cfg(feature = "testing")]
pub mod conformance;
pub mod cut;
pub mod episodes;
pub mod fault_points;
pub mod file_zones;
pub mod wrappers;
pub mod zone;

pub use block_store::{BlockStore, IoBuf, StoreLayer};
pub use cut::{CutPlan, Fate, PowerCut};
pub use episodes::{Episode, Episodes, IoClass, Reach};
pub use file_zones::{FileZones, FileZonesOptions};
pub use wrappers::{ZoneLayer, ZoneOperation};
pub use zone::{
    AnchorCopies, AppendHeader, Body, InspectedZone, ScannedAppend, SlotKind, Spare, ZoneGeometry,
    ZoneMedia,
};
