//! What the tests have in common.
pub mod power;
pub mod share;
