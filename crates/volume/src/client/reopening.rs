//! Reopening a read-only volume for writing.
use super::{Client, Link, Open};
use crate::counters::Told;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use tantalum_base::{Error, ErrorKind, Result};

impl Client {
    /// Closes the device, which was opened read-only, and opens it with `to_write`; if that fails, it opens it read-only
    /// again with `to_read`. This process keeps its locks. The caller must find out about changes that others made to the
    /// volume in between. Concurrent calls wait.
    ///
    /// # Errors
    /// Those of `to_write`, and `Locked` if a server has opened the volume by then. If `to_read` fails as well, the client
    /// is closed.
    pub fn reopen(
        &self,
        to_write: impl FnOnce() -> Result<Client>,
        to_read: impl FnOnce() -> Result<Client>,
    ) -> Result<()> {
        self.with_link(|link| match link {
            Link::Socket(_) => Err(Error::new(
                ErrorKind::Unsupported,
                "a server has the volume open, and a client cannot reopen it",
            )),
            _ => Ok(()),
        })?;
        let mut open = self.0.open.write().unwrap_or_else(PoisonError::into_inner);
        // The file stays locked until the device is closed.
        drop(open.take());
        match to_write().and_then(Client::into_own) {
            Ok((opened, read_only, told)) => {
                *open = Some(opened);
                self.0.read_only.store(read_only, Ordering::Release);
                drop(open);
                self.0.counters.start(told);
                Ok(())
            }
            Err(error) => {
                *open = to_read().and_then(Client::into_own).ok().map(|(opened, ..)| opened);
                Err(error)
            }
        }
    }

    /// Takes the link out of a client that has no clones, if this process opened the volume itself.
    fn into_own(mut self) -> Result<(Open, bool, Option<Told>)> {
        let read_only = self.is_read_only();
        let told = self.0.counters.stop();
        let shared = Arc::get_mut(&mut self.0);
        let open = shared.and_then(|shared| {
            shared.open.get_mut().unwrap_or_else(PoisonError::into_inner).take()
        });
        match open {
            Some(Open { link: Link::Socket(_), .. }) | None => {
                let context = "another process serves the volume now";
                Err(Error::new(ErrorKind::Locked, context))
            }
            Some(open) => Ok((open, read_only, told)),
        }
    }
}
