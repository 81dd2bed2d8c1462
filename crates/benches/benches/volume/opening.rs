//! Openings of volumes in files, their time and what they read: of an empty one that was made sparse,
//! of one with every page written after a clean close, and of that after a kill with ever more of a log; of a flash cache full
//! of clean pages, closed and killed.
//!
//! `scripts/bench volume/opening`; rounds by `OPENING_ROUNDS` (5), capacity of the
//! empty volume by `EMPTY_GIB` (1024), of the full one by `FULL_GIB` (4), share of its pages that is
//! written again at random before it is closed, in percent, by `REWRITTEN` (0), and sizes of the log
//! by `LOGS_MIB` ("0 64 512"), and of the cache by `CACHE_GIB` (4). The full volume takes an eighth more than its capacity on
//! the disk, the cache twice its size.
mod support;

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use support::config;
use tantalum_base::rng::Rng;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo};
use tantalum_media::block_store::{StoreCounters, StoreCounts};
use tantalum_runtime::live::{LiveOptions, spawn_thread};
use tantalum_runtime::{LifeCycle, Live};
use tantalum_testing::built::disk_folder as folder;
use tantalum_testing::programs::setting;
use tantalum_volume::{
    FlashVolume, OpenOptions, OpenReport, TieredVolume, VolumeConfig, VolumeStore, create_volume,
    open_flash, open_store, open_tiered, open_tiered_stores,
};

const MEDIA: &str = "type = \"file\"\npath = \"volume.data\"\nsparse = true";
/// Random pages in one commit.
const SCATTERED: u64 = 64;
const CLOSED: bool = true;
const KILLED: bool = false;

type Volume = FlashVolume<VolumeStore>;
type Cache = TieredVolume<Live, VolumeStore>;

/// What an opening took.
struct Opening {
    time: Duration,
    /// Of the volume's own thread.
    processor: Duration,
    store: StoreCounts,
    replayed: u64,
}

fn main() {
    if !support::wanted() {
        return;
    }
    let rounds = setting("OPENING_ROUNDS", 5);
    empty(u64::from(setting("EMPTY_GIB", 1024)), rounds);
    full(u64::from(setting("FULL_GIB", 4)), rounds);
    cache(u64::from(setting("CACHE_GIB", 4)), rounds);
}

fn empty(gib: u64, rounds: u32) {
    let (mut creations, mut openings) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let folder = folder();
        let config = config(folder.path(), MEDIA, gib << 30, "");
        creations.push(create(&config));
        openings.push(open(&config, CLOSED, async |_| ()));
    }
    creations.sort();
    let (median, most) = (creations[creations.len() / 2], creations[creations.len() - 1]);
    println!("empty, {gib} GiB, sparse: created in {} (at most {})", ms(median), ms(most));
    tell(&format!("empty, {gib} GiB, sparse"), openings);
}

fn full(gib: u64, rounds: u32) {
    let folder = folder();
    let config = config(folder.path(), MEDIA, gib << 30, "");
    create(&config);
    open(&config, CLOSED, fill);
    let openings = (0..rounds).map(|_| open(&config, CLOSED, async |_| ())).collect();
    tell(&format!("full, {gib} GiB, closed"), openings);
    let logs = std::env::var("LOGS_MIB").unwrap_or_else(|_| "0 64 512".into());
    for log_mib in logs.split_whitespace().map(|mib| mib.parse().expect("MiB as a number")) {
        // The first opening follows upon something else.
        let opening =
            |_| open(&config, KILLED, async move |volume: &Volume| log(volume, log_mib).await);
        let openings = (0..=rounds).map(opening).skip(1).collect();
        tell(&format!("full, {gib} GiB, killed after {log_mib} MiB of writes"), openings);
    }
}

/// Fills a flash cache over a home on the same disk with pages at random, which have all gone home.
fn cache(gib: u64, rounds: u32) {
    let folder = folder();
    let config = cache_config(folder.path(), gib);
    create(&config);
    open_cache(&config, CLOSED, fill_cache);
    let openings = (0..rounds).map(|_| open_cache(&config, CLOSED, async |_| ())).collect();
    tell(&format!("cache, {gib} GiB of flash, closed"), openings);
    let openings = (0..=rounds).map(|_| open_cache(&config, KILLED, async |_| ())).skip(1);
    tell(&format!("cache, {gib} GiB of flash, killed"), openings.collect());
}

/// The home is as small as the flash: as one file with a million extents it would take minutes to remove.
fn cache_config(folder: &Path, gib: u64) -> VolumeConfig {
    let text = format!(
        "kind = \"tiered\"\n[media]\ntype = \"file\"\npath = \"flash\"\nsize = \"{gib}GiB\"\nsparse = true\n\
         [home]\npath = \"home\"\n[device]\ncapacity = \"{gib}GiB\"\n"
    );
    VolumeConfig::parse(&text, &folder.join("volume.toml")).expect("a sound configuration")
}

fn tell(what: &str, mut openings: Vec<Opening>) {
    openings.sort_by_key(|opening| opening.time);
    let (median, slowest) = (&openings[openings.len() / 2], &openings[openings.len() - 1]);
    println!(
        "{what}: opened in {} (processor {}, at most {}), {:.1} MB read in {} reads, \
         {:.1} MB written, {} changes replayed",
        ms(median.time),
        ms(median.processor),
        ms(slowest.time),
        median.store.bytes_read as f64 / 1e6,
        median.store.reads,
        median.store.bytes_written as f64 / 1e6,
        median.replayed,
    );
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Runs `work` on an executor of its own.
fn on_thread<T: Send + 'static, F: Future<Output = T> + 'static>(
    work: impl FnOnce(Live) -> F + Send + 'static,
) -> T {
    let thread = spawn_thread("volume", LiveOptions::default(), work);
    thread.and_then(|thread| thread.join()).expect("an executor")
}

#[expect(clippy::disallowed_methods, reason = "measures on the real clock")]
fn create(config: &VolumeConfig) -> Duration {
    let config = config.clone();
    on_thread(async move |live| {
        let start = Instant::now();
        create_volume(&live, &config, true).await.expect("a new volume");
        start.elapsed()
    })
}

/// Opens the volume, does `work` with it, and closes it, or leaves it as a kill would: what was
/// acknowledged is in the file, and nothing says that this was all.
fn open(
    config: &VolumeConfig,
    closed: bool,
    work: impl AsyncFnOnce(&Volume) + Send + 'static,
) -> Opening {
    let config = config.clone();
    let options = OpenOptions::default();
    on_thread(async move |live| {
        let opened = async |counters: StoreCounters| {
            let store = open_store(&live, &config, options, &counters).await;
            let store = store.expect("the volume's file");
            open_flash(&live, store, &config, options).await.expect("the volume opens")
        };
        measured(opened, closed, work).await
    })
}

/// The same for a cache.
fn open_cache(
    config: &VolumeConfig,
    closed: bool,
    work: impl AsyncFnOnce(&Cache) + Send + 'static,
) -> Opening {
    let config = config.clone();
    let options = OpenOptions::default();
    on_thread(async move |live| {
        let opened = async |counters: StoreCounters| {
            let stores = open_tiered_stores(&live, &config, options, &counters).await;
            let stores = stores.expect("the cache's files");
            open_tiered(&live, stores, &config, options, || 0).await.expect("the cache opens")
        };
        measured(opened, closed, work).await
    })
}

/// What `opened` takes, which opens a volume whose stores count.
#[expect(clippy::disallowed_methods, reason = "measures on the real clock")]
async fn measured<V: LifeCycle>(
    opened: impl AsyncFnOnce(StoreCounters) -> (Rc<V>, OpenReport),
    closed: bool,
    work: impl AsyncFnOnce(&V),
) -> Opening {
    let counters = StoreCounters::default();
    let (start, processor) = (Instant::now(), processor_time());
    let (volume, report) = opened(counters.clone()).await;
    let opening = Opening {
        time: start.elapsed(),
        processor: processor_time() - processor,
        store: counters.snapshot(),
        replayed: report.recovery.replayed,
    };
    work(&volume).await;
    if closed {
        volume.close().await.expect("the volume closes");
    }
    opening
}

/// Writes as many pages as the cache keeps, in a random order, and has them brought home.
async fn fill_cache(cache: &Cache) {
    let (mut rng, content) = (Rng::split(2, "cache"), content(1));
    let tiered = cache.device().device();
    let ftl = tiered.drive().ftl();
    let kept = ftl.options().cache.expect("a cache").kept_pages_max;
    let mut pages: Vec<u64> = (0..cache.limits().pages).collect();
    for at in 0..kept as usize {
        let other = rng.below((pages.len() - at) as u64) as usize;
        pages.swap(at, at + other);
    }
    pages.truncate(kept as usize);
    for part in pages.chunks_mut(SCATTERED as usize) {
        part.sort_unstable();
        let part = part.iter().map(|page| (PageNo(*page), content[0].clone()));
        cache.write_scattered(part.collect(), || ()).await.expect("a write");
    }
    tiered.write_home().await.expect("home takes them");
    let (clean, dirty) = (ftl.statistics().pages_clean, tiered.statistics().dirty_pages);
    println!("the cache has {clean} clean pages, {dirty} dirty");
}

/// Processor time of this thread so far.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Writes every page in order, and as many again at random as asked for.
async fn fill(volume: &Volume) {
    let (pages, content) = (volume.limits().pages, content(256));
    let mut first = 0;
    while first < pages {
        let count = (pages - first).min(content.len() as u64);
        write(volume, first, &content[..count as usize]).await;
        first += count;
    }
    let mut rng = Rng::split(1, "rewritten");
    for _ in 0..pages * u64::from(setting("REWRITTEN", 0)) / 100 / SCATTERED {
        write_scattered(volume, &mut rng, &content[0]).await;
    }
}

/// Writes `mib` MiB of single pages at random.
async fn log(volume: &Volume, mib: u64) {
    let (mut rng, content) = (Rng::split(mib, "log"), content(1));
    for _ in 0..mib * (1 << 20) / PAGE_BYTES as u64 / SCATTERED {
        write_scattered(volume, &mut rng, &content[0]).await;
    }
}

fn content(pages: usize) -> Vec<PageBuf> {
    let mut bytes = vec![0; PAGE_BYTES];
    Rng::new(7).fill(&mut bytes);
    vec![PageBuf::copy_from(&bytes); pages]
}

async fn write(volume: &Volume, first: u64, content: &[PageBuf]) {
    let device = &volume;
    let most = device.limits().atomic_write_pages_max as usize;
    for (index, part) in content.chunks(most).enumerate() {
        let page = PageNo(first + (index * most) as u64);
        device.write(page, part, None).await.expect("a write");
    }
}

/// Commits `SCATTERED` pages at random, as one append.
async fn write_scattered(volume: &Volume, rng: &mut Rng, content: &PageBuf) {
    let device = &volume;
    let tx = device.begin().await.expect("a transaction");
    for _ in 0..SCATTERED {
        let page = PageNo(rng.below(device.limits().pages));
        device.write(page, std::slice::from_ref(content), Some(tx)).await.expect("a write");
    }
    device.commit(tx).await.expect("a commit");
}
