//! Reopening a read-only volume for writing.
use crate::counters::Told;
use crate::link::Link;
use crate::shared::{Open, Shared};
use crate::volume::Volume;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use tantalum_base::{Error, ErrorKind, Result};

impl Shared {
    /// Closes the device, and opens it with `to_write`; if that fails, with `to_read`.
    pub(crate) fn reopen(
        &self,
        to_write: impl FnOnce() -> Result<Volume>,
        to_read: impl FnOnce() -> Result<Volume>,
    ) -> Result<()> {
        self.with_link(|link| match link {
            Link::Socket(_) => Err(Error::new(
                ErrorKind::Unsupported,
                "a server has the volume open, and a client cannot reopen it",
            )),
            _ => Ok(()),
        })?;
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        // The file stays locked until the device is closed.
        drop(open.take());
        match to_write().and_then(into_own) {
            Ok((opened, read_only, told)) => {
                *open = Some(opened);
                self.read_only.store(read_only, Ordering::Release);
                drop(open);
                self.counters.start(told);
                Ok(())
            }
            Err(error) => {
                *open = to_read().and_then(into_own).ok().map(|(opened, ..)| opened);
                Err(error)
            }
        }
    }
}

/// Takes the device out of a handle that has no clones, if this process opened the volume itself.
fn into_own(mut volume: Volume) -> Result<(Open, bool, Option<Told>)> {
    let read_only = volume.is_read_only();
    let told = volume.0.counters.stop();
    let shared = Arc::get_mut(&mut volume.0);
    let open = shared
        .and_then(|shared| shared.open.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    match open {
        Some(Open { link: Link::Socket(_), .. }) | None => {
            let context = "another process serves the volume now";
            Err(Error::new(ErrorKind::Locked, context))
        }
        Some(open) => Ok((open, read_only, told)),
    }
}
