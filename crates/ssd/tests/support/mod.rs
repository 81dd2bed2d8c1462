//! Common parts of the tests.
pub mod power;
pub mod share;
