//! The devices of a database.
use std::rc::Rc;
use tantalum_base::{Limits, PageDevice, Result};

use super::layout::LogPlace;
use crate::records::{Codec, RecordDevice};

/// The device of a database, or the two of them where its log has one of its own. Each comes with the codec of what is on it: one
/// codec belongs to one device.
pub struct Drives<D, C> {
    data: RecordDevice<D, C>,
    log: Option<LogApart<D, C>>,
}

/// A log's own device.
struct LogApart<D, C> {
    records: RecordDevice<D, C>,
    database: u64,
}

impl<D: PageDevice, C: Codec<Page = D::Page>> Drives<D, C> {
    /// Everything on one device.
    pub fn new(device: &Rc<D>, codec: &Rc<C>) -> Self {
        Drives { data: RecordDevice::new(device, codec), log: None }
    }

    /// The same with the log on another device, as databases have it on another drive. Checkpoints stay beside the pages.
    /// `database` is a number that no other database has, drawn at random when it is made, say: it is kept on both devices, so that no
    /// other database's log is taken for this one's.
    #[must_use]
    pub fn with_log_on(self, device: &Rc<D>, codec: &Rc<C>, database: u64) -> Self {
        let records = RecordDevice::new(device, codec);
        Drives { log: Some(LogApart { records, database }), ..self }
    }

    /// What has the checkpoints and the pages, counted apart.
    pub(super) fn data(&self) -> RecordDevice<D, C> {
        self.data.counted_apart()
    }

    /// What has the log, counted apart.
    pub(super) fn log(&self) -> RecordDevice<D, C> {
        self.log_apart().unwrap_or(&self.data).counted_apart()
    }

    /// The log's own device, if it has one.
    pub(super) fn log_apart(&self) -> Option<&RecordDevice<D, C>> {
        self.log.as_ref().map(|log| &log.records)
    }

    /// The number of the database whose log has a device of its own.
    pub(super) fn database(&self) -> Option<u64> {
        self.log.as_ref().map(|log| log.database)
    }

    /// Where a log of so many device pages lies.
    pub(super) fn log_place(&self, log_pages: u64) -> LogPlace {
        match self.log {
            Some(_) => LogPlace::Apart(log_pages),
            None => LogPlace::Here(log_pages),
        }
    }

    pub(super) fn limits(&self) -> (&Limits, Option<&Limits>) {
        (self.data.limits(), self.log_apart().map(RecordDevice::limits))
    }

    /// All devices.
    pub(super) fn each(&self) -> impl Iterator<Item = &RecordDevice<D, C>> {
        std::iter::once(&self.data).chain(self.log_apart())
    }

    /// Makes durable what was written to any of them.
    ///
    /// # Errors
    /// A device's.
    pub(super) async fn flush(&self) -> Result<()> {
        for device in self.each() {
            device.flush().await?;
        }
        Ok(())
    }
}
