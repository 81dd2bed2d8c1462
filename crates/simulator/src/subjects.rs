//! The devices under test, each small enough to be cut everywhere.
use tantalum_base::{Error, ErrorKind, Limits, Result, Spec};
use tantalum_buffer::BufferedKind;
use tantalum_cache::{Destage, Mode, TieredOptions};
use tantalum_ftl::{CacheOptions, DumpOptions, FtlOptions, kept_pages_max};
use tantalum_media::ZoneGeometry;
use tantalum_models::baselines::{
    Clustering, ShadowKind, ShadowOptions, WalCommit, WalKind, WalOptions,
};
use tantalum_models::nand::NandGeometry;
use tantalum_models::personality::{PersonalityKind, PersonalitySpec};
use tantalum_models::{DeviceConfig, DeviceSpec, HostQueueOptions, Linked};
use tantalum_models::{TxCacheKind, TxCacheOptions};
use tantalum_policy::{Policy, PolicySpec, Workload};
use tantalum_ssd::{CacheKind, SsdKind, SsdOptions};

use super::rig::{ArrayShape, SMALL, SMALL_ZONES};
use super::subject::{Damaged, FailedProgram, Medium, Promises, Subject, WithoutMedium};
use super::tiered::TieredKind;

/// Pages of the write cache: so few that it fills.
const CACHE_PAGES: u32 = 24;

/// Zones of the dump area and delta pages on the lab's media.
const DUMP_ZONES: u32 = 7;

/// Few, so that clients reach the limit.
const TRANSACTIONS_MAX: u32 = 2;

/// Checkpoints are frequent enough that a small load crosses several.
fn ftl_options(pages: u64) -> FtlOptions {
    FtlOptions { checkpoint_interval_slots: 64, ..FtlOptions::new(pages) }
}

/// An SSD with one kind of write cache. A durable one has the minimum energy for its dump, so that changed mapping entries
/// are backed up all the time.
pub fn ssd(cache: CacheKind) -> Subject<SsdKind> {
    let name = match cache {
        CacheKind::Durable => "durable",
        CacheKind::WriteThrough => "through",
        CacheKind::Ordered => "ordered",
        CacheKind::Volatile => "volatile",
    };
    let is_durable = cache == CacheKind::Durable;
    let mut ssd = SsdOptions::new(cache, CACHE_PAGES);
    ssd.write_back_start_pages = 8;
    ssd.write_backs_in_flight = 2;
    ssd.recharge_ns = 1_000_000;
    Subject::new(&format!("ssd:cache={name}"), move |geometry, pages| {
        let dump = is_durable.then(|| DumpOptions::least(geometry, pages, CACHE_PAGES));
        SsdKind { ftl: FtlOptions { dump, ..ftl_options(pages) }, ssd }
    })
    .more_zones(if is_durable { DUMP_ZONES } else { 0 })
    .promises(Promises { acknowledges_early: is_durable, ..Promises::USUAL })
}

/// That SSD, with cleaning in step with the hosts' appends, as on volumes.
pub fn paced(cache: CacheKind) -> Subject<SsdKind> {
    let ssd = ssd(cache);
    let text = format!("{},cleaning=paced", ssd.text);
    ssd.wrapped(&text, |below| SsdKind {
        ftl: FtlOptions { paces_cleaning: true, ..below.ftl },
        ..below
    })
}

/// Pages of a staged transaction that stay in memory: so few that most transactions exceed them.
const STAGED_MEMORY_PAGES: u32 = 3;

/// Zones for as many pages again as hosts see.
const STAGING_ZONES: u32 = 12;

/// That SSD, with transactions of any size.
pub fn staged(cache: CacheKind) -> Subject<SsdKind> {
    let ssd = ssd(cache);
    let text = format!("{},transactions=staged", ssd.text);
    ssd.wrapped(&text, |below| {
        let pages = below.ftl.pages;
        let ftl = FtlOptions { pages: 2 * pages, mapped_pages_max: Some(2 * pages), ..below.ftl };
        let ssd = SsdOptions {
            transaction_pages_max: STAGED_MEMORY_PAGES,
            staging_pages: pages,
            ..below.ssd
        };
        SsdKind { ftl, ssd }
    })
    .more_zones(STAGING_ZONES)
}

/// Pages of the buffer: fewer than the device has, so that pages are evicted.
const BUFFER_PAGES: u32 = 16;

/// That SSD behind a buffer.
pub fn buffered(cache: CacheKind) -> Subject<BufferedKind<SsdKind>> {
    let ssd = ssd(cache);
    let text = ssd.text.replacen("ssd", "buffered", 1);
    ssd.wrapped(&text, |below| BufferedKind::new(below, small_lru))
}

fn small_lru(limits: &Limits) -> Result<Option<Box<dyn Policy>>> {
    let workload = Workload { pages_end: limits.pages, future: &[] };
    PolicySpec::parse("lru")?.build(BUFFER_PAGES, workload).map(Some)
}

/// A cache over a home, which soon writes its pages home, and then evicts them; with transactions of any size if they are
/// `staged`.
pub fn tiered(destage: Destage, mode: Mode, staged: bool) -> Subject<TieredKind> {
    let text = match destage {
        Destage::Ordered => "tiered:destage=ordered",
        Destage::Dense => "tiered:destage=dense",
    };
    let text = match mode {
        Mode::WriteThrough => format!("{text},mode=write-through"),
        _ => text.to_owned(),
    };
    let text = if staged { format!("{text},transactions=staged") } else { text };
    let without_medium = match (destage, mode) {
        (Destage::Dense, _) => WithoutMedium::Nothing,
        (Destage::Ordered, Mode::WriteThrough) => WithoutMedium::Everything,
        (Destage::Ordered, _) => WithoutMedium::OneMoment,
    };
    let damaged = match destage {
        Destage::Ordered => Damaged::IsError,
        // Then nothing records how much of the end the home has.
        Destage::Dense => Damaged::IsErrorOrEndRefused,
    };
    let kind = move |geometry: &ZoneGeometry, pages| {
        let staging_pages = if staged { TIERED_STAGING_PAGES } else { 0 };
        tiered_kind(geometry, pages, staging_pages, destage, mode)
    };
    let promises =
        Promises { without_medium, damaged, transactions_may_fill: staged, ..Promises::USUAL };
    Subject::new(&text, kind).more_zones(if staged { STAGING_ZONES } else { 0 }).promises(promises)
}

fn tiered_kind(
    geometry: &ZoneGeometry,
    pages: u64,
    staging_pages: u64,
    destage: Destage,
    mode: Mode,
) -> TieredKind {
    let transaction_pages_max =
        if staging_pages > 0 { STAGED_MEMORY_PAGES } else { TIERED_WRITE_PAGES_MAX };
    let ssd = SsdOptions {
        transactions_max: TRANSACTIONS_MAX,
        transaction_pages_max,
        staging_pages,
        write_pages_max: TIERED_WRITE_PAGES_MAX,
        ..SsdOptions::new(CacheKind::WriteThrough, TIERED_CACHE_PAGES)
    };
    let dirty_pages_min = 2 * u64::from(TIERED_WRITE_PAGES_MAX) + u64::from(TIERED_CACHE_PAGES);
    let wanted = pages * 3 / 4 + staging_pages;
    let kept_pages_max = kept_pages_max(geometry, 2).min(wanted).max(dirty_pages_min);
    let dirty_pages_max = (kept_pages_max * 2 / 3).max(dirty_pages_min);
    let cache = CacheOptions { dirty_pages_max, kept_pages_max, staging_pages };
    let dirty_hard_pages = dirty_pages_max - u64::from(TIERED_CACHE_PAGES);
    let tiered = TieredOptions {
        mode,
        destage_after_ns: 1_000_000,
        home_writes_max: 4,
        journal_batch_pages: 4,
        slice_pages: 8,
        track_pages: 8,
        admission_queue_pages: 16,
        retry_after_ns: 1_000_000,
        ..TieredOptions::new(destage, dirty_hard_pages).staged(TIERED_WRITE_PAGES_MAX)
    };
    let ftl = FtlOptions { cache: Some(cache), ..ftl_options(pages + staging_pages) };
    TieredKind { ftl, ssd, tiered }
}

/// Pages of the write cache before a cache over a home, and maximum pages of a write to it: few, so that a small number
/// of dirty pages suffices.
const TIERED_CACHE_PAGES: u32 = 8;
const TIERED_WRITE_PAGES_MAX: u32 = 6;
/// Pages in which its transactions are staged: so few that two large ones fill them.
const TIERED_STAGING_PAGES: u64 = 40;

/// Frames of the page cache, and pages of the extended cache: so few that three open transactions overflow the former, and
/// four fill the latter.
const TX_CACHE_PAGES: u32 = 14;
const EXTENDED_PAGES: u32 = 16;

/// Zones of the extended cache on the lab's media.
const EXTENDED_ZONES: u32 = 2;

/// A TxCache, with transactions or as the paper's NVCache. NVRAM survives, and power is cut at its stores too.
pub fn tx_cache(transactions: bool) -> Subject<TxCacheKind> {
    let (text, options) = match transactions {
        true => ("txcache", TxCacheOptions::new(TX_CACHE_PAGES)),
        false => ("nvcache", TxCacheOptions::nv_cache(TX_CACHE_PAGES)),
    };
    let cache = TxCacheOptions {
        extended_pages: EXTENDED_PAGES,
        headers: options.headers.min(8),
        transactions_max: options.transactions_max.min(8),
        write_pages_max: 6,
        write_backs_in_flight: 2,
        ..options
    };
    let kind =
        move |pages| TxCacheKind { ftl: ftl_options(pages + u64::from(EXTENDED_PAGES)), cache };
    Subject::new(text, move |_, pages| kind(pages)).more_zones(EXTENDED_ZONES).promises(Promises {
        acknowledges_early: true,
        // Open transactions share the page cache and the extended cache; a write that finds both full is refused.
        transactions_may_fill: true,
        ..Promises::USUAL
    })
}

/// Zones of the log on the lab's media.
const LOG_ZONES: u32 = 4;

/// A redo log in flash.
pub fn wal(commit: WalCommit) -> Subject<WalKind> {
    let text = match commit {
        WalCommit::Pages => "wal",
        WalCommit::Record => "wal:commit=record",
    };
    // Less memory than log, so that contents are read back.
    let wal =
        WalOptions { log_pages: 64, memory_pages: 8, transactions_max: TRANSACTIONS_MAX, commit };
    let kind = move |pages| WalKind { ftl: ftl_options(pages), wal };
    Subject::new(text, move |_, pages| kind(pages)).more_zones(LOG_ZONES).promises(Promises {
        // After a failed program in the log the data is not written elsewhere.
        failed_program: FailedProgram::Latches,
        // The last transactions of its log look like a cut if they are damaged: nothing after them says that they were
        // durable.
        damaged: Damaged::IsNotTold,
        ..Promises::USUAL
    })
}

/// TxFlash or the atomic-write log.
pub fn shadow(clustering: Clustering) -> Subject<ShadowKind> {
    let text = match clustering {
        Clustering::Cycles => "tx-flash",
        Clustering::LogFlags => "atomic-log",
    };
    let shadow = ShadowOptions { clustering, transactions_max: TRANSACTIONS_MAX };
    Subject::new(text, move |_, pages| ShadowKind { ftl: ftl_options(pages), shadow })
}

/// Parameters with which a small load reaches merges and misses of the cached map.
pub const PERSONALITIES: [&str; 4] = ["block-map", "bast:logs=2", "fast:logs=2", "dftl:cmt=5"];

/// A translation layer of an earlier device, without a cache before it.
pub fn personality(spec: PersonalitySpec) -> Subject<PersonalityKind> {
    // A page occupies a whole flash page, half of which is unused.
    let more_zones = match spec {
        PersonalitySpec::BlockMap | PersonalitySpec::Bast { .. } => 0,
        PersonalitySpec::Fast { .. } => 1,
        PersonalitySpec::Dftl { .. } => 3,
    };
    Subject::new(&spec.to_string(), move |_, pages| PersonalityKind { spec, pages })
        .more_zones(more_zones)
        .promises(Promises {
            // A trim writes or erases page by page.
            trims_are_atomic: false,
            // It has no log that could continue elsewhere.
            failed_program: FailedProgram::Latches,
            damaged: Damaged::IsNotTold,
            ..Promises::USUAL
        })
}

/// SSDs of the papers that [`profile`] accepts.
pub const SSD_PROFILES: [&str; 5] = ["durassd", "ssd-a", "ssd-b", "openssd", "x25-m"];

/// Maximum number of pages of a device whose size was given: every page is read in every power-on period.
const PAGES_MAX: u64 = 1 << 20;

/// The SSD of a profile that `text` names, behind its link. If neither `pages` nor `capacity` is given, its array, cache
/// and energy are scaled down to the lab's. It keeps the rest: kind of cache, meaning of a flush, quota, sharers,
/// cleaning, durations.
///
/// # Errors
/// `InvalidInput`, which lists the accepted values; also if flushes do not reach a cache that needs them: such a device
/// promises nothing that could be checked.
pub fn profile(text: &str) -> Result<Subject<Linked<SsdKind>>> {
    let refuse =
        |problem: &str| Err(Error::new(ErrorKind::InvalidInput, format!("{text}: {problem}")));
    let spec = DeviceSpec::parse(text)?;
    if spec.drops_flushes() {
        return refuse("no flush reaches the device, so that it promises nothing to check");
    }
    let DeviceSpec::Ssd(config) = spec else { return refuse("no SSD of a profile") };
    let mut given = Spec::parse(text)?;
    let sizes = [given.text("pages", ""), given.text("capacity", "")];
    let is_scaled = sizes.iter().all(Option::is_none);
    if !is_scaled && config.ftl.pages > PAGES_MAX {
        return refuse("too large to read all of it at every power-on; at most 1048576 pages");
    }
    let acknowledges_early = config.ssd.cache == CacheKind::Durable;
    let pages = (!is_scaled).then_some(config.ftl.pages);
    let sized = move |pages| match is_scaled {
        true => scaled(&config, pages),
        false => Ok(config.clone()),
    };
    let of_pages = sized.clone();
    let name = text.to_owned();
    let medium = move |asked: u64| {
        if pages.is_some_and(|pages| pages != asked) {
            let context = format!("{name} has {} pages, not {asked}", pages.unwrap_or(0));
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let DeviceConfig { nand, zones, .. } = of_pages(asked)?;
        Ok(Medium::Array(ArrayShape { nand, zones }))
    };
    let kind = move |pages| {
        let config = sized(pages).unwrap_or_else(|error| panic!("its medium was made: {error}"));
        let below = SsdKind { ftl: config.ftl, ssd: config.ssd };
        Linked { below, link: config.link }
    };
    let promises = Promises { acknowledges_early, ..Promises::USUAL };
    let mut subject = Subject::new(text, move |_, pages| kind(pages)).on(medium).promises(promises);
    subject.pages = pages;
    Ok(subject)
}

/// The SSD of a profile, scaled down.
fn scaled(whole: &DeviceConfig, pages: u64) -> Result<DeviceConfig> {
    let mut config = whole.clone();
    config.ftl.dump = None;
    config = config.with_cache_pages(CACHE_PAGES);
    config.nand.geometry = SMALL;
    config.zones = SMALL_ZONES;
    config.ftl.pages = pages;
    config.ftl.checkpoint_interval_slots = ftl_options(pages).checkpoint_interval_slots;
    config.ssd.write_back_start_pages = config.ssd.write_back_start_pages.min(8);
    config.ssd.write_back_pages_max = 16;
    config.ssd.recharge_ns = config.ssd.recharge_ns.min(1_000_000);
    if whole.ftl.dump.is_some() {
        let geometry = config.geometry();
        config.ftl.dump = Some(DumpOptions::least(&geometry, pages, CACHE_PAGES));
        let blocks_per_plane = SMALL.blocks_per_plane + config.ftl.dump_zones(&geometry)?;
        config.nand.geometry = NandGeometry { blocks_per_plane, ..SMALL };
    }
    Ok(config)
}

/// A TxSSD: its link before the lab's TxCache. It has no parameters here.
///
/// # Errors
/// `InvalidInput` if some are given.
pub fn tx_ssd(text: &str) -> Result<Subject<Linked<TxCacheKind>>> {
    match DeviceSpec::parse(plain(text)?)? {
        DeviceSpec::TxSsd(config) => Ok(linked(text, tx_cache(true), config.link)),
        other => Err(refused(other.name())),
    }
}

/// An MTRON: its link before BAST with as few logs as the lab's. It has no parameters here.
///
/// # Errors
/// `InvalidInput` if some are given.
pub fn mtron(text: &str) -> Result<Subject<Linked<PersonalityKind>>> {
    match DeviceSpec::parse(plain(text)?)? {
        DeviceSpec::Hybrid(config) => {
            let bast = personality(PersonalitySpec::parse("bast:logs=2")?);
            Ok(linked(text, bast, config.link))
        }
        other => Err(refused(other.name())),
    }
}

fn linked<K: 'static>(text: &str, below: Subject<K>, link: HostQueueOptions) -> Subject<Linked<K>> {
    below.wrapped(text, move |below| Linked { below, link })
}

/// `text`, which must be a name alone.
fn plain(text: &str) -> Result<&str> {
    if text.contains(':') { Err(refused(text)) } else { Ok(text) }
}

fn refused(text: &str) -> Error {
    let context = format!("{text}: this device has no parameters in the crash lab");
    Error::new(ErrorKind::InvalidInput, context)
}
