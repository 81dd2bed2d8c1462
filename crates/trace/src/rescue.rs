//! Traces that were cut off, as where whoever wrote them was killed: the last line has no end, the last record is a
//! part of one, or the compressed data ends in the middle.
//!
//! Unless it is to be rescued such a trace is an error, behind all events that are whole: nobody takes a part for the
//! whole of it.
use std::sync::{Arc, Mutex, PoisonError};

/// What to do about it, for errors.
pub(crate) const HOW: &str = "`tantalum trace convert --rescue` takes what is before it";

/// Asks to read a trace up to where it was cut off, if it was, and hears where that is.
#[derive(Clone, Debug, Default)]
pub struct Rescue(Arc<Mutex<Vec<String>>>);

impl Rescue {
    /// Where traces that were read turned out to be cut off, in words, each once.
    pub fn told(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A trace of volumes, and parts of traces, are read twice.
    pub(crate) fn tell(&self, place: String) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.contains(&place) {
            told.push(place);
        }
    }
}
