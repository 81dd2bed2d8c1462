//! Tantalum report.
