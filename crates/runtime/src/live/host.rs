//! A thread with its own executor.
use super::signal_mask::spawn_without_signals;
use super::{Live, LiveOptions};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;
use tantalum_base::{Result, ResultExt};

/// A thread started by [`spawn_thread`].
pub struct LiveThread<T>(thread::JoinHandle<Result<T>>);

impl<T> LiveThread<T> {
    /// Waits for the end of the thread. A panic of that thread is propagated.
    ///
    /// # Errors
    /// If the executor could not be made.
    pub fn join(self) -> Result<T> {
        self.0.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Whether [`join`](Self::join) would return at once.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

/// Starts a thread, makes an executor on it and runs the future that `make` returns.
///
/// # Errors
/// `Io` if the thread cannot be started.
pub fn spawn_thread<T, M, F>(name: &str, options: LiveOptions, make: M) -> Result<LiveThread<T>>
where
    T: Send + 'static,
    M: FnOnce(Live) -> F + Send + 'static,
    F: Future<Output = T> + 'static,
{
    let body = move || {
        let live = Live::new(options)?;
        let ran = catch_unwind(AssertUnwindSafe(|| live.run(make(live.clone()))));
        // Also after a panic: tasks hold state for which other threads wait, and locked files.
        live.drop_tasks();
        ran.map(Ok).unwrap_or_else(|panic| resume_unwind(panic))
    };
    spawn_without_signals(name, body)
        .map(LiveThread)
        .context(|| format!("starting the thread {name}"))
}
