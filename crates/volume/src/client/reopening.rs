//! A volume that was opened to be read only, and is opened to be written after all.
use super::{Client, Link, Open};
use crate::counters::Told;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use tantalum_base::{Error, ErrorKind, Result};

impl Client {
    /// Closes the device, which was opened to be read only, and opens it by `to_write`; where that fails, by `to_read` as
    /// before. Locks of this process stay; what others did to the volume in between is for the caller to see. Calls that
    /// come meanwhile wait.
    ///
    /// # Errors
    /// Those of `to_write`, and `Locked` where a server has it by then. Where `to_read` fails as well, the client has gone.
    pub fn reopen(
        &self,
        to_write: impl FnOnce() -> Result<Client>,
        to_read: impl FnOnce() -> Result<Client>,
    ) -> Result<()> {
        self.with_link(|link| match link {
            Link::Socket(_) => Err(Error::new(ErrorKind::Unsupported, "it is a server's to open")),
            _ => Ok(()),
        })?;
        let mut open = self.0.open.write().unwrap_or_else(PoisonError::into_inner);
        // The file is locked until it is closed.
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

    /// What a client that nobody else has leads to, where this process opened it.
    fn into_own(mut self) -> Result<(Open, bool, Option<Told>)> {
        let read_only = self.is_read_only();
        let told = self.0.counters.stop();
        let shared = Arc::get_mut(&mut self.0);
        let open = shared.and_then(|shared| {
            shared.open.get_mut().unwrap_or_else(PoisonError::into_inner).take()
        });
        match open {
            Some(Open { link: Link::Socket(_), .. }) | None => {
                let context = "another process serves the volume by now";
                Err(Error::new(ErrorKind::Locked, context))
            }
            Some(open) => Ok((open, read_only, told)),
        }
    }
}
