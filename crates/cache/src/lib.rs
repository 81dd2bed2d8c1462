//! The middle tier: flash as a cache over a slower home.
//!
//! ```text
//! tiered       Tiered: the device, put together from a flash device, a home, and a journal beside it
//!   reads        from flash or home; what was read from home comes in
//!   writes       to flash, when there is room for more dirty pages, and when home has what it needs of a page
//!   large        transactions that outgrow their memory
//!   opening      what flash and home have of each other when it is opened
//!   options, statistics
//! destage/     pages go home in the background: in epochs, or the fullest tracks first
//!   pace         how fast hosts may write meanwhile
//!   dirty        what home does not have as it is, and what of that is on its way
//! home_reads   reads from home in flight: what changes meanwhile
//! image        Image: the home, an image in a file or on a block device
//! claim/       what lies on the home while it has a cache, so that nothing mounts it by mistake
//! streams      sequential requests, which may pass by
//! load         which of flash and home serves a read sooner
//! wear         a budget of what is written to the flash
//! mode         Mode: write-back, write-through, read-cache, off, changed while it runs
//! journal/     Journal: what is about to be written home, so that the home is always consistent
//! page_set     PageSet: sorted page numbers, dense or sparse, such as what is dirty
//! refusals     why a home or a journal is not taken
//! fault_points protections that a test can switch off
//! ```
pub mod claim;
mod destage;
mod dirty;
pub mod fault_points;
mod home_reads;
pub mod image;
pub mod journal;
mod large;
mod load;
mod mode;
mod opening;
mod options;
mod pace;
pub mod page_set;
mod reads;
pub mod refusals;
mod statistics;
mod streams;
mod tiered;
mod wear;
mod writes;

pub use image::Image;
pub use journal::Journal;
pub use mode::Mode;
pub use opening::recover_flash;
pub use options::{Destage, TieredOptions};
pub use page_set::PageSet;
pub use statistics::TieredStatistics;
pub use tiered::{OpenJournal, Tiered, TieredParts};
