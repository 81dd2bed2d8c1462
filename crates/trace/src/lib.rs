//! Tantalum trace.
