//! What the tests have in common.
pub mod baselines;
