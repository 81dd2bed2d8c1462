//! Logical to physical: a page-mapping flash translation layer over append-only zones.
//!
//! ```text
//! write, read, share      the commands, over the parts below; check: checks every structure and page
//! ftl                     the parts put together
//!
//! log/          batches take versions and places in order, and go to the medium concurrently
//!   records       changes of the mapping alone, as pages of the log; live_records: those that no checkpoint covers
//!   watermark     the version up to which no change is missing; sync: syncs that callers share
//!   uncovered     which changes no checkpoint covers, by zone
//! map/          page → entry (version, place, checksum), slot → pages
//!   mapping       the tables, search: the next page of a kind; packed: an entry in ten bytes; encoding: entries as bytes on media
//!   references    slots of several pages; remapped: the origins that the slots of remapped pages name
//! space/        zones: free, open, full; live slots; wear
//!   admission     waits for free zones, keeps the reserve, resets; pins: zones that are read are not reset
//! relocation/   cleaning: empties zones that a policy chooses, between two watermarks; copies: live slots
//!   dead_versions lists of versions lost with a zone; wear: levels wear; rest: pauses cleaning at closing
//!   unreadable    pages that cannot be read now; retries: reads them again, by the clock of `timer`
//! checkpoints/  the mapping on media: pages, and write; anchors: where it is, and which zones to scan
//! dump/         only where there is energy for one: what is written at a power loss
//!   mapping_log   changes since the checkpoint, limited to what can be dumped; backup: delta pages
//!   energy        divides the stored energy; header, write, area: the dump
//! cache/        pages that have a home elsewhere: which of them cleaning may let go
//! recovery/     from media alone to an FTL: survey: where to begin; find_checkpoint, find_dump
//!               log_scan: the changes since, and whether all are there; merge: a dump's mapping
//!               limits: which numbers a medium may say
//! command_tasks           commands run to their end even if their caller drops the future
//! ```
//!
//! **The log rule.** Every change takes the next [`Version`](tantalum_base::Version) of one
//! sequence, and a batch's versions are contiguous. Recovery takes everything up to the highest
//! durable watermark that it finds written down, then goes on while no version is missing, and
//! stops at the last whole batch. So batches are atomic, a prefix survives, and an append needs
//! neither a commit record nor an order among appends in flight.
mod cache;
mod check;
mod checkpoints;
mod command_tasks;
mod dump;
pub mod fault_points;
mod ftl;
mod log;
mod map;
mod options;
mod parts;
mod read;
mod recovery;
mod relocation;
mod share;
mod space;
mod statistics;
mod timer;
mod write;

pub use cache::{CacheOptions, HomeState, Lacks};
pub use command_tasks::CommandTasks;
pub use dump::energy::DumpOptions;
pub use dump::write::DumpReport;
pub use ftl::Ftl;
pub use options::{FtlOptions, kept_pages_max, mapped_pages_max, pages_max};
pub use recovery::Rebuilt;
pub use recovery::report::RecoveryReport;
pub use space::census::Census;
pub use space::pins::{Pinned, ZonePins};
pub use statistics::FtlStatistics;
