//! The records of the file system, and the failures to inject.
use crate::journal::{Journal, Kind, RequestNo};
use fuser::Errno;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tantalum_base::Rng;

/// Longest extra delay of a write or sync, so that several are in flight at once.
const DELAY_MAX_US: u64 = 400;

/// The requests that fail instead of being done.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    pub of: Failing,
    /// Number of them that are done before the first failure.
    pub after: u64,
    pub error: Errno,
}

/// The kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// One read.
    Read,
    /// Every read from that point on.
    EveryRead,
    /// One write, of which a part is done.
    Write,
    /// One sync: the unsynced data are in doubt from then on.
    Sync,
    /// Every write from that point on, as on a full file system.
    EveryWrite,
}

/// The state that a mounted file system shares with the test.
#[derive(Default)]
pub struct Recorder {
    journal: Mutex<Journal>,
    failure: Mutex<Option<Failure>>,
    failures: AtomicU64,
}

impl Recorder {
    pub fn journal(&self) -> MutexGuard<'_, Journal> {
        locked(&self.journal)
    }

    pub fn position(&self) -> usize {
        self.journal().position()
    }

    /// Replaces an earlier failure; `None` for a healthy file system.
    pub fn fail(&self, failure: Option<Failure>) {
        *locked(&self.failure) = failure;
    }

    /// Number of requests that have failed.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// The error to inject into a request of one of these kinds, if it must fail.
    pub fn failing(&self, of: &[Failing]) -> Option<Errno> {
        let mut failure = locked(&self.failure);
        let planned = failure.as_mut()?;
        if !of.contains(&planned.of) {
            return None;
        }
        if planned.after > 0 {
            planned.after -= 1;
            return None;
        }
        let error = planned.error;
        if !matches!(planned.of, Failing::EveryRead | Failing::EveryWrite) {
            *failure = None;
        }
        self.failures.fetch_add(1, Ordering::Relaxed);
        Some(error)
    }

    fn end(&self, request: RequestNo, failed: bool) {
        let mut journal = self.journal();
        journal.requests[request].failed = failed;
        journal.end(request);
    }

    /// Records the beginning of a request, does it with `act`, and records its end; it is answered afterwards.
    pub fn record(&self, kind: Kind, act: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        let request = self.journal().begin(kind);
        let delay_us = Rng::new(request as u64).below(DELAY_MAX_US);
        let done = act();
        pause(Duration::from_micros(delay_us));
        self.end(request, done.is_err());
        done
    }
}

/// A panic elsewhere must not hide the records.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "stands for a disk that takes its time")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
