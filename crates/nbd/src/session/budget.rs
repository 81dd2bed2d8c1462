//! Limits the memory that a connection's requests hold until their replies are sent. Each connection has a budget of
//! its own, so none can take the memory of another. A client that does not receive its replies delays only itself.
use crate::statistics::Gauge;
use std::cell::Cell;
use std::rc::Rc;

/// The budget of one connection.
pub(crate) struct Budget {
    free_bytes: Cell<u64>,
    held: Rc<Gauge>,
}

/// The part of a budget that requests hold, until [`Budget::give_back`].
#[derive(Default)]
pub(crate) struct Held {
    bytes: u64,
}

impl Held {
    /// Merges `other` into this.
    pub(crate) fn absorb(&mut self, other: &mut Held) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Budget {
    /// A connection's budget of `bytes_max`.
    pub(crate) fn new(bytes_max: u64, held: Rc<Gauge>) -> Self {
        Budget { free_bytes: Cell::new(bytes_max), held }
    }

    /// Takes `bytes`; `None` if earlier requests must be answered first.
    pub(crate) fn try_take(&self, bytes: u64) -> Option<Held> {
        self.free_bytes.set(self.free_bytes.get().checked_sub(bytes)?);
        self.held.add(bytes);
        Some(Held { bytes })
    }

    /// Gives all of `held` back and empties it.
    pub(crate) fn give_back(&self, held: &mut Held) {
        let bytes = std::mem::take(&mut held.bytes);
        self.held.subtract(bytes);
        self.free_bytes.set(self.free_bytes.get() + bytes);
    }
}
