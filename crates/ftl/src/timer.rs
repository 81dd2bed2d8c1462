//! The clock of the runtime on which a device was started. Nearly all of an FTL waits for events; only retries wait for
//! time to pass.
use std::pin::Pin;
use std::rc::{Rc, Weak};
use tantalum_runtime::{Body, Runtime};

/// The handle and the clock that a device has for its tasks once it is started.
pub(crate) struct Started<D> {
    pub device: Weak<D>,
    pub timer: Rc<dyn Timer>,
}

/// Any [`Runtime`], as a trait object.
pub(crate) trait Timer {
    /// Nanoseconds since the executor started.
    fn now_ns(&self) -> u64;

    /// Completes after `delay_ns`.
    fn sleep(&self, delay_ns: u64) -> Pin<Box<dyn Future<Output = ()>>>;

    /// Runs `body` as a task of its own.
    fn detach(&self, name: &'static str, body: Body);
}

impl<R: Runtime> Timer for R {
    fn now_ns(&self) -> u64 {
        Runtime::now_ns(self)
    }

    fn sleep(&self, delay_ns: u64) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(Runtime::sleep(self, delay_ns))
    }

    fn detach(&self, name: &'static str, body: Body) {
        Runtime::detach(self, name, body);
    }
}
