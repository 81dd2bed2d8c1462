//! The media on which the flash translation layer (FTL) stores its pages.
//!
//! ```text
//! zone           ZoneMedia: append-only zones, the contract the FTL builds on
//! └ file_zones   zones as extents of a flat store                (block_store: file, memory, crash wrapper)
//! erased         any zones behind one type, over which simulations compile the engine once
//! cut            power cuts at a chosen operation, and the fate of that operation
//! episodes       transient I/O errors, of zones and stores
//! wrappers       wrappers over any zones: faults, recording, throttling, checking
//! fault_points   protections that a test can switch off
//! conformance    tests of the contract of ZoneMedia             (feature `testing`)
//! ```
pub mod block_store;
#[cfg(feature = "testing")]
pub mod conformance;
pub mod cut;
pub mod episodes;
pub mod erased;
pub mod fault_points;
pub mod file_zones;
pub mod wrappers;
pub mod zone;

pub use block_store::{BlockStore, IoBuf, StoreLayer};
pub use cut::{CutPlan, Fate, PowerCut};
pub use episodes::{Episode, Episodes, IoClass, Reach};
pub use erased::ErasedZones;
pub use file_zones::{FileZones, FileZonesOptions};
pub use wrappers::{ZoneLayer, ZoneOperation};
pub use zone::{
    AnchorCopies, AppendHeader, Body, InspectedZone, ScannedAppend, SlotKind, Spare, ZoneGeometry,
    ZoneMedia,
};
