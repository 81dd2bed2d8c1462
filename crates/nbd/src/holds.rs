//! Waits for pages that a transaction of another client of the device holds: a change of such a page is delayed, as by
//! a slow disk. NBD has no error after which file systems would try again.
use crate::client::Client;
use std::cell::Cell;
use std::ops::AsyncFnMut;
use tantalum_base::{Error, ErrorKind, PageDevice, PageRange, Result};
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{First, first};

/// The waiting changes, and whether waiting is still allowed.
pub(crate) struct Holds {
    no_longer: Cell<bool>,
    ended: WaitQueue,
}

impl Holds {
    pub(crate) fn new() -> Self {
        let ended = WaitQueue::new("a page that a transaction holds, or the end of the server");
        Holds { no_longer: Cell::new(false), ended }
    }

    /// From now on, waiting changes are refused.
    pub(crate) fn wait_no_longer(&self) {
        self.no_longer.set(true);
        self.ended.wake_all();
    }

    /// Does `change` to pages in `range`; if a transaction holds some of them, waits for their release and does it
    /// again from its beginning. A client that has gone waits no longer.
    ///
    /// # Errors
    /// The errors of the change; `Closed` if waiting is no longer allowed, or the client has gone.
    pub(crate) async fn when_released(
        &self,
        device: &impl PageDevice,
        client: &Client,
        range: PageRange,
        mut change: impl AsyncFnMut() -> Result<()>,
    ) -> Result<()> {
        loop {
            let refused = match change().await {
                Err(error) if error.kind() == ErrorKind::Conflict => error,
                done => return done,
            };
            let ended = self.ended.until(|| self.no_longer.get().then_some(()));
            let ended = first(ended, client.until_gone());
            if let First::One(_) = first(ended, device.until_released(range)).await {
                let context = "the server is stopping and no longer waits for a transaction";
                return Err(Error::with_source(ErrorKind::Closed, context, refused));
            }
        }
    }
}
