//! Tantalum.
fn main() {}
