//! Types that all crates share; no I/O.
//!
//! ```text
//! ids       PageNo, ZoneNo, SlotNo, TxId, Version, PageRange
//! payload   Payload: real bytes (PageBuf) or a Stamp that stands for them
//! device    PageDevice, the interface of every device; extent: a run of pages stored in the same way
//! device_layer  a device that wraps another one and overrides some of its calls
//! error     one Error: a matchable kind, the context, the source
//! plain     makes text from outside safe to print on a terminal
//! file_kind words for the kinds of files: a file, a folder, a pipe
//! refusal   refusals that the user can act on, identified by their fixed words
//! size      "64MiB", "4k", "10%" as text      rng     seeded randomness by label
//! checksum  CRC-32C                           fast    maps with a fixed hash
//! nearest   the name that was probably meant
//! spec      "name:key=value,..." as text        fault_points  protections that tests switch off
//! ```
pub mod checksum;
pub mod device;
pub mod device_layer;
pub mod error;
pub mod extent;
pub mod fast;
pub mod fault_points;
pub mod file_kind;
pub mod ids;
mod nearest;
pub mod payload;
pub mod plain;
pub mod refusal;
pub mod rng;
pub mod size;
pub mod spec;

pub use device::{Durability, Limits, PageDevice};
pub use device_layer::DeviceLayer;
pub use error::{Error, ErrorKind, Result, ResultExt};
pub use extent::Extent;
pub use fast::{FastMap, FastSet};
pub use ids::{PageNo, PageRange, SlotNo, TxId, Version, ZoneNo};
pub use payload::{PAGE_BYTES, PageBuf, Payload, Stamp};
pub use plain::plain;
pub use refusal::Refusal;
pub use rng::Rng;
pub use spec::Spec;
