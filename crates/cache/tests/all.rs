//! The tests of the cache over a home, in one program: each test compiles the cache for its media
//! and payloads, and one program shares that work.

mod claim;
mod crash;
mod journal;
mod journal_cuts;
mod journal_model;
mod large;
mod old_journal;
mod passing;
mod planted_faults;
mod staying;
mod trims;

mod support;
