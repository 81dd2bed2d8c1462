//! Refusals of changes: after a failure, or if the device is open read-only.
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_media::ZoneMedia;

use crate::ssd::Drive;

impl<M: ZoneMedia> Drive<M> {
    /// Whether it was opened read-only ([`FtlOptions::read_only`]). Commands that change something,
    /// including `begin`, then fail with [`ErrorKind::ReadOnly`]; a flush does nothing.
    ///
    /// [`FtlOptions::read_only`]: tantalum_ftl::FtlOptions::read_only
    pub fn is_read_only(&self) -> bool {
        self.ftl.options().read_only
    }

    /// Fails if the device must not be changed: it is read-only, or has failed.
    ///
    /// # Errors
    /// `ReadOnly`, or `Latched` with the first failure as its source.
    pub fn check_failed(&self) -> Result<()> {
        match &*self.failed.borrow() {
            None => self.ftl.latched().map_or(Ok(()), |error| Err(latched(&error))),
            Some(error) => Err(latched(error)),
        }
    }

    /// Fails if nothing can be written back at present.
    pub(crate) fn check_stalled(&self) -> Result<()> {
        self.stalled.borrow().clone().map_or(Ok(()), Err)
    }
}

/// The error of every change after `first`, the failure that latched the device.
pub(crate) fn latched(first: &Error) -> Error {
    if first.kind() == ErrorKind::ReadOnly {
        return first.clone();
    }
    Error::with_source(
        ErrorKind::Latched,
        "the device refuses writes until it is opened again, after an earlier failure",
        first.clone(),
    )
}
