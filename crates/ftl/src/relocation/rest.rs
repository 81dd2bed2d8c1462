//! Pauses the cleaner while a device is closed, so that nothing is appended after the checkpoint
//! with which the next opening begins.
use std::cell::Cell;
use tantalum_runtime::sync::WaitQueue;

/// Whether the cleaner should rest, and whether it does.
pub(crate) struct CleanerRest {
    wanted: Cell<bool>,
    at_work: Cell<bool>,
    rests: WaitQueue,
}

/// While this lives, the cleaner is at work.
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
    /// Whether the cleaner should start nothing now.
    pub(crate) fn is_due(&self) -> bool {
        self.wanted.get()
    }

    /// Marks the cleaner as at work until the result is dropped.
    pub(crate) fn work(&self) -> AtWork<'_> {
        self.at_work.set(true);
        AtWork(self)
    }

    /// Tells the cleaner to rest, until [`end`](Self::end).
    pub(crate) fn begin(&self) {
        self.wanted.set(true);
    }

    /// Waits until the cleaner is not at work.
    pub(crate) async fn begun(&self) {
        self.rests.until(|| (!self.at_work.get()).then_some(())).await;
    }

    /// Ends the rest, as there may be something to clean; returns whether the cleaner was to rest.
    pub(crate) fn end(&self) -> bool {
        self.wanted.replace(false)
    }
}
