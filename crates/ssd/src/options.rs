//! The settings of an SSD.
use tantalum_base::{Durability, Error, ErrorKind, Result};

/// The promise of the write cache, and how it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheKind {
    /// The cache survives power cuts (DuraSSD, section 3): a write is acknowledged when it is in
    /// the cache, which is dumped on stored energy at a power loss. With an FTL without a budget
    /// for the dump, the promise holds only while the power stays.
    Durable,
    /// A write is acknowledged when it is durable in the log; the writes of many clients share one
    /// append (group commit).
    WriteThrough,
    /// A volatile cache, written back in whole batches in the order of the writes: after a cut
    /// the device holds a prefix of them.
    Ordered,
    /// A volatile cache, written back page by page: an ordinary SSD.
    Volatile,
}

impl CacheKind {
    /// The durability that a host may rely on.
    pub fn durability(self) -> Durability {
        match self {
            CacheKind::Durable | CacheKind::WriteThrough => Durability::OnAck,
            CacheKind::Ordered => Durability::OnFlush,
            CacheKind::Volatile => Durability::Volatile,
        }
    }

    /// Whether write-back takes the whole cache as one atomic batch.
    pub(crate) fn whole_batches(self) -> bool {
        matches!(self, CacheKind::WriteThrough | CacheKind::Ordered)
    }
}

/// The meaning of a flush of a durable cache (DuraSSD paper, section 3.3). Neither meaning is
/// needed for durability: acknowledged writes survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushMeaning {
    /// A point in the order of commands: all commands before it are in the cache when it returns,
    /// and none after it overtakes them.
    Order,
    /// Also, all commands before it are written back to flash when it returns, so that they survive
    /// even if the stored energy fails.
    WriteBack,
}

/// Settings of an SSD. Sizes in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SsdOptions {
    /// The kind of the write cache.
    pub cache: CacheKind,
    /// Pages that the write cache holds.
    pub cache_pages: u32,
    /// Write-back starts when more pages than this are dirty (write-through: at once).
    pub write_back_start_pages: u32,
    /// Maximum pages of a batch, unless the cache is written back whole; an append of the medium
    /// may allow fewer.
    pub write_back_pages_max: u32,
    /// Batches in flight at the same time.
    pub write_backs_in_flight: u32,
    /// Transactions that may be open at once.
    pub transactions_max: u32,
    /// Pages that a transaction may write. If there are staging pages: pages that a transaction
    /// keeps in memory.
    pub transaction_pages_max: u32,
    /// Pages that a transaction may write if there are staging pages.
    pub staged_pages_max: u32,
    /// The last pages of the FTL, which hosts do not see. A transaction that outgrows its memory is
    /// staged there until its commit. The FTL needs a limit of mapped pages then.
    pub staging_pages: u64,
    /// Maximum pages of a single write.
    pub write_pages_max: u32,
    /// Frames that one command of the queue may take (DuraSSD paper, section 3.1.1): larger writes
    /// are refused. With a quota of `1 / depth` of the cache, a queue full of commands finds room
    /// in an empty cache at once. 0: no quota.
    pub command_quota_pages: u32,
    /// The meaning of a flush of a durable cache; other caches write back.
    pub flush: FlushMeaning,
    /// Time to charge the capacitors before a durable cache starts to work.
    pub recharge_ns: u64,
    /// A flush, and a write that is acknowledged when it is durable, also wait until changes of the
    /// mapping table are persisted ([`ZoneMedia::persist_mapping`]).
    ///
    /// [`ZoneMedia::persist_mapping`]: tantalum_media::ZoneMedia::persist_mapping
    pub persist_mapping: bool,
}

impl SsdOptions {
    /// Defaults for `cache` with room for `cache_pages`.
    pub fn new(cache: CacheKind, cache_pages: u32) -> Self {
        SsdOptions {
            cache,
            cache_pages,
            write_back_start_pages: cache_pages / 2,
            write_back_pages_max: u32::MAX,
            write_backs_in_flight: match cache {
                CacheKind::Durable | CacheKind::Volatile => 8,
                CacheKind::WriteThrough | CacheKind::Ordered => 2,
            },
            transactions_max: if cache == CacheKind::Volatile { 0 } else { 128 },
            transaction_pages_max: cache_pages / 2,
            staged_pages_max: u32::MAX,
            staging_pages: 0,
            write_pages_max: (cache_pages / 2).clamp(1, 256),
            command_quota_pages: 0,
            flush: FlushMeaning::Order,
            recharge_ns: 0,
            persist_mapping: false,
        }
    }

    /// Maximum pages of one write: the limit, within the quota.
    pub fn atomic_write_pages_max(&self) -> u32 {
        match self.command_quota_pages {
            0 => self.write_pages_max,
            quota => self.write_pages_max.min(quota),
        }
    }

    /// Checks that the settings agree with each other.
    pub fn check(&self) -> Result<()> {
        let problem = if self.cache_pages == 0
            || self.write_backs_in_flight == 0
            || self.write_back_pages_max == 0
        {
            "the write cache needs at least one page, and write-back needs at least one page and one batch in flight"
        } else if self.write_pages_max > self.cache_pages {
            "a write must fit into the write cache"
        } else if self.transaction_pages_max > self.cache_pages {
            "a transaction must fit into the write cache"
        } else if self.cache == CacheKind::Volatile && self.transactions_max > 0 {
            "a volatile cache cannot keep the promise of transactions"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidInput, problem))
    }
}
