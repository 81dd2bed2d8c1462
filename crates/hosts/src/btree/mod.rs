//! Clustered B+trees: rows are stored in the leaves, in the order of their keys. All engines use them, whatever their way to the
//! device.
//!
//! ```text
//! page     a page's content, and its layout in bytes
//! change   changes of a page, as in a redo log: applied by the transaction that makes them, and again by recovery
//! find     search from the root to a leaf, concurrent with changes of the tree
//! plan     the changes of a transaction, computed before they are applied: splits, empty pages, free pages
//! planned  a page of a plan: changed in place if possible, otherwise as a copy
//! ```
//!
//! A tree is identified by its root, which never moves: when the root is full, its content goes to two new children. Nodes have no
//! links to their neighbours. So a split concerns only the node, the new node and the parent; the removal of an empty page concerns
//! only its parent.
//!
//! A plan is computed while nothing else changes the pages, and takes effect in one step. A search holds no latch while it waits for
//! a page; if a split happens meanwhile, it restarts at the root.
mod change;
mod find;
mod page;
mod plan;
mod planned;

pub use change::{Change, PageChanges};
pub(crate) use find::{TreePages, find, free_pages, leaf_page, scan_leaf};
pub use page::{Content, Entries, Lsn, Space, TreePage};
pub(crate) use plan::Plan;

/// Longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 250;

/// The page that records the free pages.
pub(crate) const SPACE_PAGE: tantalum_base::PageNo = tantalum_base::PageNo(0);
