//! What the file system writes down, and what of it is to fail.
use crate::journal::{Journal, Kind, RequestNo};
use fuser::Errno;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tantalum_base::Rng;

/// The longest that a write or sync takes beyond what it takes, so that some are in flight together.
const DELAY_MAX_US: u64 = 400;

/// Requests that fail instead of being done.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    pub of: Failing,
    /// How many of them are done before the first fails.
    pub after: u64,
    pub error: Errno,
}

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// One read.
    Read,
    /// Every read from there on.
    EveryRead,
    /// One write: a part of it is done.
    Write,
    /// One sync: of what was unsynced nothing is sure any more.
    Sync,
    /// Every write from there on, as on a file system without room.
    EveryWrite,
}

/// What a mounted file system shows of itself.
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

    /// Takes the place of an earlier failure; `None` for a healthy file system.
    pub fn fail(&self, failure: Option<Failure>) {
        *locked(&self.failure) = failure;
    }

    /// Requests that have failed.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// The error of a request that is to fail, of one of these kinds.
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

    /// A request begins, is done by `act`, and ends; it is answered after that.
    pub fn record(&self, kind: Kind, act: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        let request = self.journal().begin(kind);
        let delay_us = Rng::new(request as u64).below(DELAY_MAX_US);
        let done = act();
        pause(Duration::from_micros(delay_us));
        self.end(request, done.is_err());
        done
    }
}

/// A panic elsewhere must not hide what was written down.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "stands for a disk that takes its time")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
