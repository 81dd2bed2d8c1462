//! The client of a command: its turns among all clients, and whether it is still there.
use std::cell::Cell;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::rounds::{Seat, Step, scan_cost};
use tantalum_runtime::sync::WaitQueue;

/// A client, as long commands see it.
pub(crate) struct Client {
    /// Takes turns with the seats of other clients.
    pub(crate) seat: Seat,
    gone: Cell<bool>,
    left: WaitQueue,
}

impl Client {
    pub(crate) fn new(seat: Seat) -> Self {
        Client { seat, gone: Cell::new(false), left: WaitQueue::new("the end of a client") }
    }

    /// Notes that the client has gone: its replies are not needed any more.
    pub(crate) fn leave(&self) {
        self.gone.set(true);
        self.left.wake_all();
    }

    /// Whether the client has gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.get()
    }

    /// Completes when the client has gone.
    pub(crate) async fn until_gone(&self) {
        self.left.until(|| self.gone.get().then_some(())).await;
    }

    /// Waits for a turn to move `pages` pages at the device. A command ends between two steps if its client has gone,
    /// never within one: nothing is half done then.
    ///
    /// # Errors
    /// `Closed` if the client has gone.
    pub(crate) async fn step(&self, pages: u64) -> Result<Step<'_>> {
        self.check()?;
        let step = self.seat.step(pages).await;
        self.check()?;
        Ok(step)
    }

    /// Waits for a turn to examine `pages` pages.
    ///
    /// # Errors
    /// `Closed` if the client has gone.
    pub(crate) async fn scan(&self, pages: u64) -> Result<()> {
        self.seat.turn(scan_cost(pages)).await;
        self.check()
    }

    fn check(&self) -> Result<()> {
        match self.is_gone() {
            true => Err(Error::new(ErrorKind::Closed, "the client has gone")),
            false => Ok(()),
        }
    }
}
