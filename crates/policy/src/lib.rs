//! Tantalum policy.
