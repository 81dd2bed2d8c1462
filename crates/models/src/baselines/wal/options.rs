//! What a [`Wal`](super::Wal) is made with.
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_media::ZoneGeometry;

/// What makes a transaction in the log a committed one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WalCommit {
    /// That all its pages are there: each append says how many it has. One program.
    #[default]
    Pages,
    /// A record behind them, which is programmed when they are durable. Two programs in a row.
    Record,
}

impl WalCommit {
    /// Commit records of a transaction.
    pub(super) fn records(self) -> u32 {
        match self {
            WalCommit::Pages => 0,
            WalCommit::Record => 1,
        }
    }
}

/// Settings of a [`Wal`](super::Wal). Sizes in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalOptions {
    /// The log. It gets as many whole zones as hold that many pages, and one more, so that the
    /// oldest can be copied home while the newest fills.
    pub log_pages: u32,
    /// Logged pages whose content stays in the controller's memory until it is home. Others are
    /// read back from the log.
    pub memory_pages: u32,
    /// Transactions that may be open at once.
    pub transactions_max: u32,
    /// How commits are logged from now on: recovery takes either for what it is.
    pub commit: WalCommit,
}

impl WalOptions {
    /// Defaults: a log of `log_pages`, all of it in memory too, 32 transactions, no commit records.
    pub fn new(log_pages: u32) -> Self {
        let commit = WalCommit::default();
        WalOptions { log_pages, memory_pages: log_pages, transactions_max: 32, commit }
    }

    /// Zones of `geometry` that the log takes.
    pub fn log_zones(&self, geometry: &ZoneGeometry) -> u32 {
        self.log_pages.div_ceil(geometry.slots_per_zone) + 1
    }

    /// Slots of the log that `pages` pages take at the most, with `records` commit records behind
    /// them: each append may need a header and padding, and so may what is left of a zone.
    pub(super) fn slots_max(&self, geometry: &ZoneGeometry, pages: u64, records: u64) -> u64 {
        let waste = u64::from(geometry.append_overhead_slots + geometry.append_unit_slots - 1);
        let appends = pages.div_ceil(u64::from(geometry.append_pages_max));
        let zones = u64::from(self.log_zones(geometry));
        pages + (appends + 2 * zones) * waste + records * (1 + 2 * waste)
    }

    /// Pages that a transaction may have: what fits into the log's zones but one, beside the
    /// commit records of all open transactions where there are any.
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
