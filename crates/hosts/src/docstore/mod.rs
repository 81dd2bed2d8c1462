//! Couchbase's storage engine (SHARE, sections 2.2, 3.3 and 4.3): documents in an append-only file, found by a copy-on-write B+tree.
//!
//! ```text
//! store       set, get, delete, scan; waits for commits           options     modes and sizes
//! commit      how a batch is written, in each mode                statistics
//! compaction  a new file without the stale content                block       the stored bytes
//! tree        search, and the nodes that a batch rewrites         walk        documents in order
//! files       two files, their directory, the last commit of one  batch       updates that wait
//! barrier     the waits for durability, and the reasons           catch_up    changes during a compaction
//! as_key_value  a store as a target of workloads
//! ```
//!
//! A file is changed only at its end, so a cut leaves the last commit intact. The price is the wandering tree: a replaced document
//! gets a new place, and so does every node up to the root. By SHARE its old place gets the new content, and no node changes; a
//! compaction remaps documents instead of copying them.
mod as_key_value;
mod barrier;
mod batch;
mod block;
mod catch_up;
mod commit;
mod compaction;
mod files;
mod options;
mod statistics;
mod store;
mod tree;
mod walk;

pub use crate::values::{ByteValue, Key, Value, ValueStamp};
pub use block::{Block, Directory, Document, Entry, Header, Node};
pub use options::{DocStoreOptions, KEY_BYTES_MAX, Mode, VALUE_BYTES_MAX};
pub use statistics::{CommitCounts, DocStoreStatistics};
pub use store::DocStore;
