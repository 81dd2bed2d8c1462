//! The tests of the cache over a home, in one program: each of them compiles it for its media and payloads, and they share that.

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
