//! Limits the memory that a connection's requests hold until their replies are sent.
//!
//! Each connection has a small budget of its own, so that greedy clients never keep it from small
//! requests; larger requests take from one budget of the server, first come, first served.
use crate::statistics::Gauge;
use std::cell::Cell;
use std::rc::Rc;
use tantalum_runtime::sync::{Permit, Semaphore};

/// Bytes in each connection's own budget.
const OWN_BYTES: u64 = 1 << 20;

/// The budget of one connection.
pub(crate) struct Budget {
    // Left of `in_flight_bytes_max`.
    free_bytes: Cell<u64>,
    own_free_bytes: Cell<u64>,
    shared: Semaphore,
    held: Rc<Gauge>,
}

/// The part of a budget that requests hold, until [`Budget::give_back`].
#[derive(Default)]
pub(crate) struct Held {
    // Counted against the connection's limit; the part of it in memory; the part of that from its own budget.
    bytes: u64,
    memory_bytes: u64,
    own_bytes: u64,
    permits: Vec<Permit>,
}

impl Held {
    /// Merges `other` into this.
    pub(crate) fn absorb(&mut self, other: &mut Held) {
        self.bytes += std::mem::take(&mut other.bytes);
        self.memory_bytes += std::mem::take(&mut other.memory_bytes);
        self.own_bytes += std::mem::take(&mut other.own_bytes);
        self.permits.append(&mut other.permits);
    }
}

impl Budget {
    /// A connection's budget of `bytes_max`, with memory of its own and from `shared`.
    pub(crate) fn new(bytes_max: u64, shared: Semaphore, held: Rc<Gauge>) -> Self {
        Budget {
            free_bytes: Cell::new(bytes_max),
            own_free_bytes: Cell::new(OWN_BYTES),
            shared,
            held,
        }
    }

    /// Takes `bytes` of the connection's limit; `None` if earlier requests must be answered first.
    pub(crate) fn try_take(&self, bytes: u64) -> Option<Held> {
        self.free_bytes.set(self.free_bytes.get().checked_sub(bytes)?);
        Some(Held { bytes, ..Held::default() })
    }

    /// Waits until there is memory for `held`.
    pub(crate) async fn fill(&self, held: &mut Held) {
        match self.own_free_bytes.get().checked_sub(held.bytes) {
            Some(left) => {
                self.own_free_bytes.set(left);
                held.own_bytes = held.bytes;
            }
            None => held.permits.push(self.shared.acquire(held.bytes).await),
        }
        held.memory_bytes = held.bytes;
        self.held.add(held.memory_bytes);
    }

    /// Gives all of `held` back and empties it.
    pub(crate) fn give_back(&self, held: &mut Held) {
        self.held.subtract(std::mem::take(&mut held.memory_bytes));
        self.free_bytes.set(self.free_bytes.get() + std::mem::take(&mut held.bytes));
        self.own_free_bytes.set(self.own_free_bytes.get() + std::mem::take(&mut held.own_bytes));
        held.permits.clear();
    }
}
