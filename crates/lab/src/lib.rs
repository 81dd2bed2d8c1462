//! Tantalum lab.
