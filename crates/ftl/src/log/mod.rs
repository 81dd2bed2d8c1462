//! The log: batches get versions and places in order, and are written to the medium concurrently.
pub(crate) mod append;
pub(crate) mod buffer;
pub(crate) mod live_records;
pub(crate) mod own_page;
pub(crate) mod records;
pub(crate) mod shares;
pub(crate) mod sync;
pub(crate) mod uncovered;
pub(crate) mod watermark;

pub(crate) use buffer::AppendBuffer;
pub(crate) use own_page::OwnPage;

use tantalum_base::{Error, Version};
use tantalum_media::Spare;
use tantalum_runtime::sync::{Semaphore, WaitQueue};

use live_records::LiveRecords;
use shares::SharesInFlight;
use sync::SyncTurns;
use uncovered::UncoveredVersions;
use watermark::{BatchNumber, Watermark};

/// The state of the log: which versions are assigned, and which are durable.
pub(crate) struct Log {
    /// Up to which version the log is durable.
    pub watermark: Watermark,
    next_version: Version,
    /// The highest version whose batch has returned.
    returned: Version,
    /// The last version whose change is in the mapping alone, with nothing on the medium.
    unwritten: Version,
    /// Record pages that no checkpoint covers.
    pub records: LiveRecords,
    /// For each zone, the changes in it since the checkpoint in force.
    pub uncovered: UncoveredVersions,
    pub shares: SharesInFlight,
    /// The first failure of the log; writes are refused from then on.
    latched: Option<Error>,
}

/// A batch whose versions are assigned.
#[derive(Clone, Copy)]
pub(crate) struct Batch {
    number: BatchNumber,
    pub first: Version,
    pub last: Version,
}

impl Log {
    /// The log of a new device of `zones` zones.
    pub fn new(zones: u32) -> Self {
        Log {
            watermark: Watermark::new(Version::NEVER),
            next_version: Version(1),
            returned: Version::NEVER,
            unwritten: Version::NEVER,
            records: LiveRecords::default(),
            uncovered: UncoveredVersions::new(zones),
            shares: SharesInFlight::default(),
            latched: None,
        }
    }

    /// Continues after a recovery: versions up to `durable` are durable, those from `next` on
    /// unused.
    pub fn go_on(&mut self, durable: Version, next: Version) {
        self.watermark = Watermark::new(durable);
        self.next_version = next;
    }

    /// Skips all versions below `next`.
    pub fn skip_to(&mut self, next: Version) {
        self.next_version = next;
    }

    /// The version that the next change gets.
    pub fn next_version(&self) -> Version {
        self.next_version
    }

    /// The latest version that was assigned.
    pub fn last_version(&self) -> Version {
        Version(self.next_version.0 - 1)
    }

    /// The highest version whose batch has returned.
    pub fn returned(&self) -> Version {
        self.returned
    }

    /// Every change up to this version is durable.
    pub fn durable(&self) -> Version {
        self.watermark.version()
    }

    /// Whether every change so far is durable.
    pub fn is_durable(&self) -> bool {
        self.durable().next() == self.next_version
    }

    /// Begins a batch: assigns versions to its pages.
    pub fn begin_batch(&mut self, spares: &mut [Spare]) -> Batch {
        let batch = self.take_versions(spares.len() as u32);
        for (spare, version) in spares.iter_mut().zip(batch.first.0..) {
            spare.version = Version(version);
        }
        batch
    }

    /// Begins a batch of `versions` versions that is not written to the medium: it is in the mapping alone.
    pub fn begin_unwritten(&mut self, versions: u32) -> Batch {
        let batch = self.take_versions(versions);
        self.unwritten = batch.last;
        batch
    }

    fn take_versions(&mut self, versions: u32) -> Batch {
        let first = self.next_version;
        self.next_version = Version(first.0 + u64::from(versions));
        let last = self.last_version();
        Batch { number: self.watermark.start(last), first, last }
    }

    /// Notes that `batch` is on the medium and mapped; `durable`: it survives a power cut already.
    pub fn batch_returned(&mut self, batch: &Batch, durable: bool) {
        self.shares.batch_returned(batch.first, batch.last);
        self.watermark.returned(batch.number, durable);
        self.shares.durable_up_to(self.durable());
        self.returned = self.returned.max(batch.last);
    }

    /// Whether there are changes that are neither in an append nor in the checkpoint in force.
    pub fn has_unwritten(&self) -> bool {
        self.unwritten > self.uncovered.covered()
    }

    /// Whether the page content of `version` comes from a share that no checkpoint covers: a record page has
    /// that version.
    pub fn is_of_share(&self, version: Version) -> bool {
        version > self.uncovered.covered() && self.records.get(version).is_some()
    }

    /// Latches the log, which failed with `error` or is read-only; the first error counts.
    pub fn latch(&mut self, error: &Error) {
        self.latched.get_or_insert_with(|| error.clone());
    }

    /// The reason why writes are refused, if they are.
    pub fn latched(&self) -> Option<&Error> {
        self.latched.as_ref()
    }

    /// Panics if it is inconsistent. For tests.
    pub fn validate(&self) {
        let next = self.next_version;
        assert!(self.durable() < next, "version {} is durable and was never taken", self.durable());
        assert!(self.returned < next, "version {} returned and was never taken", self.returned);
        self.records.validate(next);
        self.uncovered.validate(next);
        self.shares.validate();
    }
}

/// Turns and wait queues of the log.
pub(crate) struct LogTurns {
    /// One batch at a time takes versions and places.
    pub turn: Semaphore,
    pub sync: SyncTurns,
    /// Woken when the durable watermark rises, or the FTL latches.
    pub durable_rose: WaitQueue,
}

impl Default for LogTurns {
    fn default() -> Self {
        LogTurns {
            turn: Semaphore::new("the log's turn", 1),
            sync: SyncTurns::default(),
            durable_rose: WaitQueue::new("durability"),
        }
    }
}
