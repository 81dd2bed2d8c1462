//! Code shared by the tests.
pub mod baselines;
