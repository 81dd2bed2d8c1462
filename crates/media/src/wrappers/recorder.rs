//! Records the operations on a medium, for tests that compare decisions.
use super::{ZoneLayer, ZoneOperation};
use crate::zone::ZoneMedia;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_base::checksum::crc32c_append;

/// Forwards everything. Keeps the last operations as text, and a hash of all operations that includes their
/// arguments, headers and spares.
pub struct Recorder<M> {
    inner: Rc<M>,
    ring: RefCell<VecDeque<String>>,
    kept_max: usize,
    count: Cell<u64>,
    hash: Cell<u64>,
}

impl<M: ZoneMedia> Recorder<M> {
    /// Records the operations on `inner`, and keeps the last `kept_max` of them.
    pub fn new(inner: Rc<M>, kept_max: usize) -> Self {
        let ring = RefCell::new(VecDeque::new());
        Recorder { inner, ring, kept_max, count: Cell::new(0), hash: Cell::new(0) }
    }

    /// Number of operations so far.
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// Hash of all operations so far, in order.
    pub fn hash(&self) -> u64 {
        self.hash.get()
    }

    /// The last operations, oldest first; empties the ring.
    pub fn take(&self) -> Vec<String> {
        self.ring.borrow_mut().drain(..).collect()
    }

    fn note(&self, operation: ZoneOperation<'_>) {
        let text = format!("{operation:?}");
        self.count.set(self.count.get() + 1);
        // Two checksums over the same text; the upper one also covers the lower one.
        let hash = self.hash.get();
        let low = crc32c_append(hash as u32, text.as_bytes());
        let high = crc32c_append((hash >> 32) as u32 ^ 0x5bd1_e995, &u64::from(low).to_be_bytes());
        self.hash.set(u64::from(high) << 32 | u64::from(low));
        if self.kept_max > 0 {
            let mut ring = self.ring.borrow_mut();
            if ring.len() == self.kept_max {
                ring.pop_front();
            }
            ring.push_back(text);
        }
    }
}

impl<M: ZoneMedia> ZoneLayer for Recorder<M> {
    type Inner = M;

    fn inner(&self) -> &M {
        &self.inner
    }

    async fn around<T>(
        &self,
        operation: ZoneOperation<'_>,
        run: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.note(operation);
        run.await
    }
}
