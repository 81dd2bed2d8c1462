//! What the requests of a connection may hold in memory until their reply is sent.
//!
//! A little of it is the connection's own, so that greedy clients never keep it from taking small
//! requests; all that is more comes out of one budget of the server, first come, first served.
use crate::statistics::Gauge;
use std::cell::Cell;
use std::rc::Rc;
use tantalum_runtime::sync::{Permit, Semaphore};

/// Bytes that each connection has for itself.
const OWN_BYTES: u64 = 1 << 20;

/// Requests of one connection.
pub(crate) struct Budget {
    // Of `in_flight_bytes_max`.
    free_bytes: Cell<u64>,
    own_free_bytes: Cell<u64>,
    shared: Semaphore,
    held: Rc<Gauge>,
}

/// What requests hold; goes back by [`Budget::give_back`].
#[derive(Default)]
pub(crate) struct Held {
    // Of what the connection may hold; of that in memory; of that its own.
    bytes: u64,
    memory_bytes: u64,
    own_bytes: u64,
    permits: Vec<Permit>,
}

impl Held {
    /// Joins `other` to this.
    pub(crate) fn absorb(&mut self, other: &mut Held) {
        self.bytes += std::mem::take(&mut other.bytes);
        self.memory_bytes += std::mem::take(&mut other.memory_bytes);
        self.own_bytes += std::mem::take(&mut other.own_bytes);
        self.permits.append(&mut other.permits);
    }
}

impl Budget {
    /// Of a connection that may hold `bytes_max`, out of its own and out of `shared`.
    pub(crate) fn new(bytes_max: u64, shared: Semaphore, held: Rc<Gauge>) -> Self {
        Budget {
            free_bytes: Cell::new(bytes_max),
            own_free_bytes: Cell::new(OWN_BYTES),
            shared,
            held,
        }
    }

    /// Takes `bytes` of what the connection may hold; `None` where others of its requests must be
    /// answered first.
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

    /// Gives all of `held` back, which is empty then.
    pub(crate) fn give_back(&self, held: &mut Held) {
        self.held.subtract(std::mem::take(&mut held.memory_bytes));
        self.free_bytes.set(self.free_bytes.get() + std::mem::take(&mut held.bytes));
        self.own_free_bytes.set(self.own_free_bytes.get() + std::mem::take(&mut held.own_bytes));
        held.permits.clear();
    }
}
