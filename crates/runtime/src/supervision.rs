//! Observation and interruption of long runs in virtual time: the amount of work done, and a request to stop.
//!
//! Both are global to the process, like a signal: runs start deep inside experiments, and no handle has to be passed
//! down to each. Neither changes the result of a run: an interrupted run has no result at all.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use tantalum_base::{Error, ErrorKind, Result};

static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
static EVENTS: AtomicU64 = AtomicU64::new(0);

/// The flag that stops all runs when set, for example by a signal handler. It cannot be undone.
pub fn stop_flag() -> Arc<AtomicBool> {
    Arc::clone(&STOP)
}

/// Whether runs were requested to stop.
pub fn is_stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Must be called occasionally by long computations.
///
/// # Errors
/// `Interrupted` if runs were requested to stop.
pub fn check_stop() -> Result<()> {
    match is_stopped() {
        true => Err(Error::new(ErrorKind::Interrupted, "interrupted")),
        false => Ok(()),
    }
}

/// Approximate number of steps that all runs in virtual time have taken so far. It grows while any of them is
/// running.
pub fn events() -> u64 {
    EVENTS.load(Ordering::Relaxed)
}

/// Adds steps of a run.
pub(crate) fn count_events(events: u64) {
    EVENTS.fetch_add(events, Ordering::Relaxed);
}
