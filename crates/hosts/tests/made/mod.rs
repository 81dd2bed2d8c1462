//! Values for tests.
use std::rc::Rc;
use tantalum_base::Rng;
use tantalum_hosts::values::{Value, ValueStamp};

/// A value that differs from all others of its length.
pub trait Made: Value {
    fn made(count: u64, bytes: usize) -> Self;
}

impl Made for Rc<[u8]> {
    fn made(count: u64, bytes: usize) -> Self {
        let mut value = vec![0; bytes];
        Rng::new(count).fill(&mut value);
        value.into()
    }
}

impl Made for ValueStamp {
    fn made(count: u64, bytes: usize) -> Self {
        ValueStamp { bytes: bytes as u32, count }
    }
}
