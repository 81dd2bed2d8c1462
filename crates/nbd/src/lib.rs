//! Tantalum nbd.
