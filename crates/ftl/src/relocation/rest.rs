//! The cleaner's rest: while a device is closed, so that nothing is appended behind the checkpoint with
//! which the next opening is to begin.
use std::cell::Cell;
use tantalum_runtime::sync::WaitQueue;

/// Whether the cleaner is to rest, and whether it does.
pub(crate) struct CleanerRest {
    wanted: Cell<bool>,
    at_work: Cell<bool>,
    rests: WaitQueue,
}

/// The cleaner works as long as this lives.
pub(crate) struct AtWork<'a>(&'a CleanerRest);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.at_work.set(false);
        self.0.rests.wake_all();
    }
}

impl Default for CleanerRest {
    fn default() -> Self {
        CleanerRest {
            wanted: Cell::new(false),
            at_work: Cell::new(false),
            rests: WaitQueue::new("the cleaner's rest"),
        }
    }
}

impl CleanerRest {
    /// Whether the cleaner should begin nothing now.
    pub(crate) fn is_due(&self) -> bool {
        self.wanted.get()
    }

    /// The cleaner works, until what is returned is dropped.
    pub(crate) fn work(&self) -> AtWork<'_> {
        self.at_work.set(true);
        AtWork(self)
    }

    /// Asks the cleaner to rest, until [`end`](Self::end).
    pub(crate) fn begin(&self) {
        self.wanted.set(true);
    }

    /// Waits until the cleaner is not at work.
    pub(crate) async fn begun(&self) {
        self.rests.until(|| (!self.at_work.get()).then_some(())).await;
    }

    /// There is something to clean for again. Tells whether the cleaner was to rest.
    pub(crate) fn end(&self) -> bool {
        self.wanted.replace(false)
    }
}
