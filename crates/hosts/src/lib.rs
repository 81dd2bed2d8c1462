//! Storage engines that use a device as the papers' databases did: what they read and write, in
//! which order, and how they recover. They keep no rows; a page's content is a stamp that says which
//! page it is and the how-many-th content of it, so that every read is checked.
//!
//! ```text
//! double_write  InnoDB's way: dirty pages reach their homes through a double-write area, without
//!               one, or by SHARE
//! ```
pub mod double_write;
