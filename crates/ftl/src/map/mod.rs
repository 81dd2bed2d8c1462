//! The mapping: where each page is, and which pages each slot holds.
pub(crate) mod encoding;
pub(crate) mod entry;
pub(crate) mod mapping;
pub(crate) mod packed;
pub(crate) mod references;
pub(crate) mod remapped;
mod search;

pub(crate) use entry::{MapEntry, Place};
pub(crate) use mapping::{Change, Mapping, Occupant};
