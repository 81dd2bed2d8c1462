//! An executor and all that lives on it, lent from thread to thread as a whole.
//!
//! A synchronous caller that had to hand each request to another thread and to wait for the
//! answer would pay two switches of threads a request: about as
//! much as a durable write takes on a fast disk, and far more on a busy machine. Here the caller's own thread runs the executor until its
//! request is done. A lock lets one caller in at a time.
use super::{Live, LiveOptions};
use std::sync::Mutex;
use tantalum_base::{Error, ErrorKind, Result};

/// An executor with a value that lives on it, usable from any thread, by one at a time.
pub struct Confined<T>(Mutex<Inner<T>>);

struct Inner<T> {
    value: T,
    live: Live,
}

// SAFETY: what is not `Send` in here (reference counts, cells) is reachable only through `Inner`,
// as the contract of `Confined::new` demands, and the mutex lets one thread at a time touch it.
// No kernel operation is in flight while nobody holds the lock (`Live::settle`), so that the end
// of a thread ends none of them.
#[expect(unsafe_code, reason = "a whole executor moves between threads under a lock")]
unsafe impl<T> Send for Inner<T> {}

impl<T: 'static> Confined<T> {
    /// Makes an executor, and with it the value that is to live on it.
    ///
    /// # Safety
    /// Neither `make` nor any closure given to [`with`](Self::with) may put aside anything that
    /// is not `Send` and belongs to the executor or the value, as a thread-local could.
    ///
    /// # Errors
    /// As [`Live::new`] and `make`.
    #[expect(unsafe_code, reason = "the compiler cannot see what goes into thread-locals")]
    pub unsafe fn new(
        options: LiveOptions,
        make: impl FnOnce(&Live) -> Result<T> + Send,
    ) -> Result<Self> {
        let live = Live::for_any_thread(&options)?;
        let value = make(&live).inspect_err(|_| live.drop_tasks())?;
        live.settle();
        Ok(Confined(Mutex::new(Inner { value, live })))
    }

    /// Calls `job` on this thread, with the executor to run things on.
    ///
    /// # Errors
    /// `Closed` where an earlier caller panicked midway: nobody knows in what state things are.
    pub fn with<R: Send>(&self, job: impl FnOnce(&Live, &T) -> R + Send) -> Result<R> {
        let inner = self.0.lock().map_err(|_| {
            Error::new(ErrorKind::Closed, "an earlier caller panicked while it ran the executor")
        })?;
        let result = job(&inner.live, &inner.value);
        inner.live.settle();
        Ok(result)
    }
}

impl<T> Drop for Inner<T> {
    fn drop(&mut self) {
        // Tasks and executor hold each other.
        self.live.drop_tasks();
    }
}
