//! Couchbase's storage engine (SHARE, sections 2.2, 3.3 and 4.3): documents in an append-only file, found by a copy-on-write B+tree.
//!
//! ```text
//! store       set, get, delete, scan; who waits for which commit      options     modes and sizes
//! commit      how a batch reaches the device, in each mode            statistics
//! compaction  a new file of what is not stale                         block       what is stored, in bytes
//! tree        finding, and what nodes a batch makes anew              walk        documents in order
//! files       two files, their directory, the last commit of one      batch       updates that wait
//! barrier     where it waits for durability, and why                  catch_up    what commits changed during a compaction
//! as_key_value  as loads see it
//! ```
//!
//! A file is never changed but at its end, so that a cut leaves the last commit as it was. The price is the wandering tree: a
//! document that is replaced gets a new place, and with it every node up to the root. By SHARE its old place takes the new
//! content, and no node changes; and a compaction remaps documents where it copied them.
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
