//! Clustered B+trees: rows lie in the leaves, in the order of their keys. What an engine has of them, whatever its way to the device.
//!
//! ```text
//! page     a page's content, and its layout in bytes
//! change   what a redo log says of a page: applied by whoever changes it, and again by recovery
//! find     from the root to a leaf, beside others who change the tree
//! plan     changes of a transaction, worked out before they are made: splits, empty pages, free pages
//! planned  a page of a plan: changed in place if that can be, or as a copy
//! ```
//!
//! A tree is named by its root, which never moves: where it is full, its content goes to two new children. Nodes have no links to
//! their neighbours, so that a split concerns the node, the new one and the parent, and a page that became empty its parent alone.
//!
//! A plan is worked out while nothing else changes the pages, and takes effect in one step. Whoever finds a row holds no latch
//! while it waits for a page; if a split came in between it begins again at the root.
mod change;
mod find;
mod page;
mod plan;
mod planned;

pub use change::{Change, PageChanges};
pub(crate) use find::{TreePages, find, free_pages, scan_leaf};
pub use page::{Content, Entries, Lsn, Space, TreePage};
pub(crate) use plan::Plan;

/// Longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 250;

/// The page that says which others are free.
pub(crate) const SPACE_PAGE: tantalum_base::PageNo = tantalum_base::PageNo(0);
