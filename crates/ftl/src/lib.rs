//! Tantalum ftl.
