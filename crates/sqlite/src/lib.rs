//! Tantalum sqlite.
