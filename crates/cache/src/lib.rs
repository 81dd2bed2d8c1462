//! The middle tier: flash as a cache over a slower home.
//!
//! ```text
//! tiered       Tiered: the device, composed of a flash device, a home, and a journal beside the home
//!   reads        from flash or home; pages read from the home are admitted to the flash
//!   writes       to flash, once dirty pages have room and the present epoch has the old content
//!   large        transactions that outgrow their memory
//!   opening      at an opening: finds the pages of the flash that are newer than on the home
//!   options, statistics
//! destage/     destages pages in the background: in epochs, or the fullest tracks first
//!   pace         how fast hosts may write meanwhile
//!   dirty        the pages that differ from the home, and those being destaged
//! home_reads   reads from the home in flight, and changes of their pages meanwhile
//! home_waits   waits for a home that may not answer, and their end
//! image        Image: the home, an image in a file or on a block device
//! claim/       the claim on the home while it has a cache, so that nobody mounts it by mistake
//! streams      sequential requests, which may bypass the cache
//! load         estimates whether flash or home serves a read sooner
//! wear         a budget of bytes written to the flash
//! mode         Mode: write-back, write-through, read-cache, off; can be changed at run time
//! journal/     Journal: pages about to be written in place, so that the home is always consistent
//! page_set     PageSet: sorted page numbers, dense or sparse, such as the dirty pages
//! refusals     the refusals of a home, a journal or a mode
//! fault_points protections that a test can switch off
//! ```
pub mod claim;
mod destage;
mod dirty;
pub mod fault_points;
mod home_reads;
mod home_waits;
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
