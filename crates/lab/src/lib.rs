//! The laboratory: the engine's own code, run in virtual time, watched and broken on purpose.
//!
//! ```text
//! crash    cuts power at every media operation and checks the promises of docs/durability.md
//! ```
pub mod crash;
