//! Tantalum volume.
