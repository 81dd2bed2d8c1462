//! Tantalum ssd.
