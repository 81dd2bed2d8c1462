//! The devices of a database.
use std::rc::Rc;
use tantalum_base::{Limits, PageDevice, Result};

use super::layout::LogPlace;
use crate::records::{Codec, RecordDevice};

/// The device of a database, or two devices if the log has its own. Each has a codec for its content: one codec belongs to one device.
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
    /// The database and its log on one device.
    pub fn new(device: &Rc<D>, codec: &Rc<C>) -> Self {
        Drives { data: RecordDevice::new(device, codec), log: None }
    }

    /// The same with the log on another device, as databases keep it on another drive. Checkpoints stay beside the pages. `database`
    /// is a unique number of this database, for example drawn at random when it is made. It is stored on both devices, so that the log
    /// of another database is not mistaken for this one's.
    #[must_use]
    pub fn with_log_on(self, device: &Rc<D>, codec: &Rc<C>, database: u64) -> Self {
        let records = RecordDevice::new(device, codec);
        Drives { log: Some(LogApart { records, database }), ..self }
    }

    /// The device with the checkpoints and the pages, with its own counters.
    pub(super) fn data(&self) -> RecordDevice<D, C> {
        self.data.counted_apart()
    }

    /// The device with the log, with its own counters.
    pub(super) fn log(&self) -> RecordDevice<D, C> {
        self.log_apart().unwrap_or(&self.data).counted_apart()
    }

    /// The log's own device, if it has one.
    pub(super) fn log_apart(&self) -> Option<&RecordDevice<D, C>> {
        self.log.as_ref().map(|log| &log.records)
    }

    /// The number of the database, if the log has a device of its own.
    pub(super) fn database(&self) -> Option<u64> {
        self.log.as_ref().map(|log| log.database)
    }

    /// The place of a log of this many device pages.
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

    /// Makes all earlier writes to any of the devices durable.
    ///
    /// # Errors
    /// Those of a device.
    pub(super) async fn flush(&self) -> Result<()> {
        for device in self.each() {
            device.flush().await?;
        }
        Ok(())
    }
}
