//! Options of a [`Wal`](super::Wal).
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_media::ZoneGeometry;

/// What makes a transaction in the log committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WalCommit {
    /// All its pages are in the log: each append records their number. One program.
    #[default]
    Pages,
    /// A record after the pages, programmed when they are durable. Two programs in a row.
    Record,
}

impl WalCommit {
    /// Number of commit records per transaction.
    pub(super) fn records(self) -> u32 {
        match self {
            WalCommit::Pages => 0,
            WalCommit::Record => 1,
        }
    }
}

/// Options of a [`Wal`](super::Wal). Sizes are in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalOptions {
    /// Size of the log. It gets as many whole zones as hold that many pages, plus one, so that the
    /// oldest can be copied home while the newest fills.
    pub log_pages: u32,
    /// Number of logged pages whose content stays in the controller's memory until it is home.
    /// Others are read back from the log.
    pub memory_pages: u32,
    /// Maximum number of open transactions.
    pub transactions_max: u32,
    /// How commits are logged from now on. Recovery recognises both forms.
    pub commit: WalCommit,
}

impl WalOptions {
    /// Defaults: a log of `log_pages`, all of it in memory too, 32 transactions, no commit records.
    pub fn new(log_pages: u32) -> Self {
        let commit = WalCommit::default();
        WalOptions { log_pages, memory_pages: log_pages, transactions_max: 32, commit }
    }

    /// Number of zones of `geometry` for the log.
    pub fn log_zones(&self, geometry: &ZoneGeometry) -> u32 {
        self.log_pages.div_ceil(geometry.slots_per_zone) + 1
    }

    /// Maximum number of log slots for `pages` pages and `records` commit records: each append may
    /// need a header and padding, and so may the rest of each zone.
    pub(super) fn slots_max(&self, geometry: &ZoneGeometry, pages: u64, records: u64) -> u64 {
        let waste = u64::from(geometry.append_overhead_slots + geometry.append_unit_slots - 1);
        let appends = pages.div_ceil(u64::from(geometry.append_pages_max));
        let zones = u64::from(self.log_zones(geometry));
        pages + (appends + 2 * zones) * waste + records * (1 + 2 * waste)
    }

    /// Maximum number of pages in a transaction: the capacity of all zones of the log except one,
    /// minus the commit records of all open transactions if there are any.
    pub fn transaction_pages_max(&self, geometry: &ZoneGeometry) -> u32 {
        let zones = u64::from(self.log_zones(geometry) - 1);
        let slots = zones * u64::from(geometry.slots_per_zone);
        let records = u64::from(self.commit.records()) * (u64::from(self.transactions_max) + 1);
        let fits = |pages: &u64| self.slots_max(geometry, *pages, records) <= slots;
        let most = slots.min(u64::from(u32::MAX));
        let (mut low, mut high) = (0, most + 1);
        while low + 1 < high {
            let middle = low.midpoint(high);
            if fits(&middle) { low = middle } else { high = middle }
        }
        low as u32
    }

    /// Checks the settings against each other and against `geometry`.
    ///
    /// # Errors
    /// `InvalidInput`.
    pub fn check(&self, geometry: &ZoneGeometry) -> Result<()> {
        if self.log_zones(geometry) >= geometry.zones || self.transaction_pages_max(geometry) == 0 {
            let context = format!("a log of {} pages on {geometry:?}: {self:?}", self.log_pages);
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        Ok(())
    }
}
