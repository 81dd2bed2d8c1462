//! What whoever waits for a long run in virtual time may know of it, and ask of it: how much was done, and that
//! it ends now.
//!
//! Both are of the whole process, as a signal is: runs are begun deep inside experiments, which need not hand a
//! handle down to each. Neither changes what a run comes to: one that is asked to end comes to nothing at all.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use tantalum_base::{Error, ErrorKind, Result};

static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
static EVENTS: AtomicU64 = AtomicU64::new(0);

/// What asks all runs to end when it is set, as by a signal's handler. Nothing takes it back.
pub fn stop_flag() -> Arc<AtomicBool> {
    Arc::clone(&STOP)
}

/// Whether runs were asked to end.
pub fn is_stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// To be called now and then by what takes long.
///
/// # Errors
/// `Interrupted` where runs were asked to end.
pub fn check_stop() -> Result<()> {
    match is_stopped() {
        true => Err(Error::new(ErrorKind::Interrupted, "interrupted")),
        false => Ok(()),
    }
}

/// Steps that all runs in virtual time have taken so far, in about; it grows for as long as one of them goes on.
pub fn events() -> u64 {
    EVENTS.load(Ordering::Relaxed)
}

/// Counts steps of a run.
pub(crate) fn count_events(events: u64) {
    EVENTS.fetch_add(events, Ordering::Relaxed);
}
