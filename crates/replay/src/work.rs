//! The progress of a set of runs: runs report it from their threads, and a display reads it at any time.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Number of requests of a run between two reports.
pub(crate) const TOLD_EVERY: usize = 1 << 12;

/// The work done so far, and the total.
#[derive(Debug, Default)]
pub struct Work {
    doing: Mutex<&'static str>,
    runs: AtomicU64,
    runs_in_all: AtomicU64,
    requests: AtomicU64,
    requests_in_all: AtomicU64,
}

/// A [`Work`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The present kind of work.
    pub doing: &'static str,
    /// Number of finished runs.
    pub runs: u64,
    /// Total number of runs; 0 if it is not known.
    pub runs_in_all: u64,
    /// Requests that all runs have served, except some that are not reported yet.
    pub requests: u64,
    /// Total number of requests of all runs.
    pub requests_in_all: u64,
}

impl Work {
    /// Starts work called `doing`: `runs` runs of `requests` requests each.
    pub fn begin(&self, doing: &'static str, runs: usize, requests: usize) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = doing;
        let in_all = runs as u64 * requests as u64;
        for (counter, value) in [
            (&self.runs, 0),
            (&self.runs_in_all, runs as u64),
            (&self.requests, 0),
            (&self.requests_in_all, in_all),
        ] {
            counter.store(value, Ordering::Relaxed);
        }
    }

    /// This many more requests were served.
    pub(crate) fn add_requests(&self, requests: usize) {
        self.requests.fetch_add(requests as u64, Ordering::Relaxed);
    }

    /// A run starts the request at index `at` of its trace.
    #[inline]
    pub(crate) fn takes(&self, at: usize) {
        if at.is_multiple_of(TOLD_EVERY) && at > 0 {
            self.add_requests(TOLD_EVERY);
        }
    }

    /// A run ended.
    pub fn end_run(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    /// The present progress.
    pub fn done(&self) -> Done {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Done {
            doing: *self.doing.lock().unwrap_or_else(PoisonError::into_inner),
            runs: count(&self.runs),
            runs_in_all: count(&self.runs_in_all),
            requests: count(&self.requests),
            requests_in_all: count(&self.requests_in_all),
        }
    }
}
