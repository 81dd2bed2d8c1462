//! A page-mapping flash translation layer (FTL) over append-only zones: maps logical pages to physical slots.
//!
//! ```text
//! write, read, share      the commands, over the parts below; check: checks every structure and page
//! ftl                     the parts put together
//!
//! log/          batches get versions and places in order, and are written to the medium concurrently
//!   records       changes of the mapping alone, as pages of the log; live_records: those that no checkpoint covers
//!   watermark     the version up to which every change is durable; sync: syncs that callers share
//!   uncovered     the changes in each zone that no checkpoint covers
//! map/          page → entry (version, place, checksum), slot → pages
//!   mapping       the tables; search: the next page of a kind; packed: an entry in ten bytes
//!                 encoding: entries as bytes on media
//!   references    slots that several pages share; remapped: the origins that the slots of remapped pages name
//! space/        zones: free, open, full; live slots; wear
//!   admission     waits for free zones, keeps the reserve, resets zones; pins: zones being read are not reset
//! relocation/   cleaning: empties victim zones that a policy chooses, between two watermarks
//!   copies        relocates live slots
//!   dead_versions lists of versions lost with a zone; wear: levels wear; rest: pauses cleaning during a close
//!   unreadable    pages that cannot be read now; retries: reads them again, by the clock of `timer`
//! checkpoints/  the mapping on media: pages, and write; anchors: where the checkpoint is, and which zones to scan
//! dump/         only with stored energy for one: the pages written at a power loss
//!   mapping_log   changes since the checkpoint, at most as many as a dump can hold; backup: delta pages
//!   energy        divides the stored energy; header, write, area: the dump
//! cache/        pages that have a home elsewhere: which of them cleaning may evict
//! recovery/     rebuilds an FTL from the media alone: survey: where to begin; find_checkpoint, find_dump
//!               log_scan: the changes since, and whether any is missing; merge: a dump's mapping
//!               limits: the numbers that are accepted from a medium
//! command_tasks           commands run to their end even if their caller drops the future
//! ```
//!
//! **The log rule.** Every change gets the next [`Version`](tantalum_base::Version) of one
//! sequence, and a batch's versions are contiguous. Recovery accepts everything up to the highest
//! durable watermark that it finds written down, then continues while no version is missing, and
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
