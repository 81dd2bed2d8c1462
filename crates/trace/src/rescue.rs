//! Traces that were cut off, for example because their writer was killed: the last line has no end, the last record is
//! incomplete, or the compressed data ends in the middle.
//!
//! Unless it is to be rescued, such a trace gives an error after all whole events, so that nobody mistakes a part for
//! the whole.
use std::sync::{Arc, Mutex, PoisonError};

/// Advice for error messages.
pub(crate) const HOW: &str = "`tantalum trace convert --rescue` takes the trace before it";

/// Requests that a trace that was cut off be read up to that point, and receives the position.
#[derive(Clone, Debug, Default)]
pub struct Rescue(Arc<Mutex<Vec<String>>>);

impl Rescue {
    /// The positions at which traces were cut off, as text, each once.
    pub fn told(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes a position once: a trace of volumes, and parts of traces, are read twice.
    pub(crate) fn tell(&self, place: String) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.contains(&place) {
            told.push(place);
        }
    }
}
