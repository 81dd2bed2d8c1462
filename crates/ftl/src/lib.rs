//! Logical to physical: a page-mapping flash translation layer over append-only zones.
//!
//! ```text
//! write    batches → host stream, versions assigned in order     (records: trims and shares, as versioned records)
//! room     free zones: the reserve, waiting, resetting
//! read     mapping → media, every content checked; readers: their zones stay
//! share    pages take other pages' contents by a change of the mapping alone
//! map      page → (version, place, checksum); slot → page, or several (sharers)
//! zones    free, open, full; live slots; reserve
//! cleaning victims by policy, between a low and a high watermark; moving: their copies
//! logged   which changes no checkpoint covers, by zone; account: lists of those that cleaning drops
//! wear     static wear levelling: cold zones give way
//! sync     syncs that callers share; waiting for the watermark
//! durable  the watermark below which no change is missing
//! checkpoint              the mapping on media; anchor: where it is, and which zones to look at
//! recovery                survey: where to begin; log_scan: what zones say since, and is all of it there
//! entries  the map's entries as bytes
//! deltas / backup         changes since the checkpoint, kept small enough to be dumped
//! dump / restore          what is written on stored energy at a power loss; taking it back
//! command_tasks           commands go on when their caller gives them up
//! ```
//!
//! **The log rule.** Every change takes the next [`Version`](tantalum_base::Version) of one
//! sequence, and a batch's versions are contiguous. Recovery takes everything up to the highest
//! durable watermark that it finds written down, then goes on while no version is missing, and
//! stops at the last whole batch. So batches are atomic, a prefix survives, and an append needs
//! neither a commit record nor an order among appends in flight.
mod account;
mod anchor;
mod backup;
mod check;
mod checkpoint;
mod cleaner_rest;
mod cleaning;
mod command_tasks;
mod deltas;
mod dump;
mod durable;
mod entries;
mod era;
pub mod fault_points;
mod find_checkpoint;
mod find_dump;
mod ftl;
mod live_records;
mod log_scan;
mod logged;
mod map;
mod moving;
mod options;
mod places;
mod read;
mod readers;
mod records;
mod recovery;
mod recovery_report;
mod restore;
mod room;
mod share;
mod sharers;
mod statistics;
mod survey;
mod sync;
mod taken;
mod wear;
mod write;
mod zones;

pub use command_tasks::CommandTasks;
pub use dump::{DumpOptions, DumpReport};
pub use ftl::Ftl;
pub use options::{FtlOptions, pages_max};
pub use readers::{Reading, ZoneReaders};
pub use recovery_report::RecoveryReport;
pub use statistics::FtlStatistics;
