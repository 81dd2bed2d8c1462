//! Pages that a transaction of another client of the device holds: who changes one waits, as a disk makes its users wait. NBD has no
//! error for it that file systems would try again after.
use std::cell::Cell;
use std::ops::AsyncFnMut;
use tantalum_base::{Error, ErrorKind, PageDevice, PageRange, Result};
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{First, first};

/// Who waits, and whether anybody may.
pub(crate) struct Holds {
    no_longer: Cell<bool>,
    ended: WaitQueue,
}

impl Holds {
    pub(crate) fn new() -> Self {
        let ended = WaitQueue::new("a page that a transaction holds, or the end of the server");
        Holds { no_longer: Cell::new(false), ended }
    }

    /// Those who wait are refused from now on.
    pub(crate) fn wait_no_longer(&self) {
        self.no_longer.set(true);
        self.ended.wake_all();
    }

    /// Does `change`, of pages in `range`; again, from its beginning, when those that a transaction held have been released.
    ///
    /// # Errors
    /// Those of the change; `Closed` where it is not waited for any longer.
    pub(crate) async fn when_released(
        &self,
        device: &impl PageDevice,
        range: PageRange,
        mut change: impl AsyncFnMut() -> Result<()>,
    ) -> Result<()> {
        loop {
            let refused = match change().await {
                Err(error) if error.kind() == ErrorKind::Conflict => error,
                done => return done,
            };
            let ended = self.ended.until(|| self.no_longer.get().then_some(()));
            if let First::One(()) = first(ended, device.until_released(range)).await {
                let context = "the server stops, and does not wait for a transaction any longer";
                return Err(Error::with_source(ErrorKind::Closed, context, refused));
            }
        }
    }
}
