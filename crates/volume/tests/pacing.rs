//! The latency of writes while zones are cleaned, on a volume with three quarters in use, on a modelled disk in
//! virtual time.
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use tantalum_base::fault_points::plant;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, Result, Rng};
use tantalum_ftl::FtlStatistics;
use tantalum_ftl::fault_points::Fault;
use tantalum_media::BlockStore;
use tantalum_media::block_store::{IoBuf, MemoryStore, StoreLayer};
use tantalum_runtime::Runtime;
use tantalum_runtime::virtual_time::{Schedule, Virtual};
use tantalum_volume::{OpenOptions, VolumeConfig, config, create_flash, open_flash};

const OPERATION_NS: u64 = 50_000;
const DURABLE_NS: u64 = 150_000;
const BYTES_PER_SECOND: u64 = 400_000_000;
/// A durable append of one page and its header, on an otherwise idle disk.
const APPEND_NS: u64 = operation_ns(2 * PAGE_BYTES) + DURABLE_NS;

/// A single write may wait for a short copy of cleaning, which is a read and an append.
const APPENDS_MAX: f64 = 9.0;

const CAPACITY_MIB: u64 = 256;
const SECONDS: u64 = 2;
/// The window for counting writes.
const WINDOW_NS: u64 = 100_000_000;

const fn operation_ns(bytes: usize) -> u64 {
    OPERATION_NS + bytes as u64 * 1_000_000_000 / BYTES_PER_SECOND
}

/// A disk that performs one operation at a time, in the order of requests.
#[derive(Clone)]
struct ModelDisk {
    runtime: Virtual,
    inner: MemoryStore,
    busy_until_ns: Rc<Cell<u64>>,
}

impl ModelDisk {
    async fn takes(&self, ns: u64) {
        let end_ns = self.busy_until_ns.get().max(self.runtime.now_ns()) + ns;
        self.busy_until_ns.set(end_ns);
        self.runtime.sleep_until(end_ns).await;
    }
}

impl StoreLayer for ModelDisk {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    async fn read(&self, offset: u64, buf: IoBuf) -> Result<IoBuf> {
        self.takes(operation_ns(buf.len())).await;
        self.inner.read(offset, buf).await
    }

    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf> {
        self.takes(operation_ns(buf.len()) + if durable { DURABLE_NS } else { 0 }).await;
        self.inner.write(offset, buf, durable).await
    }

    async fn sync(&self) -> Result<()> {
        self.takes(OPERATION_NS + DURABLE_NS).await;
        self.inner.sync().await
    }
}

/// Acknowledgements to writers.
struct Answered {
    /// The latency of each write, sorted in ascending order.
    waits_ns: Vec<u64>,
    /// Number of acknowledgements in each window.
    windows: Vec<u64>,
    before: FtlStatistics,
    after: FtlStatistics,
}

impl Answered {
    /// The 99.9th percentile of the latency, in appends.
    fn appends_waited(&self) -> f64 {
        self.waits_ns[self.waits_ns.len() * 999 / 1000] as f64 / APPEND_NS as f64
    }

    /// The fewest writes in a window, as a share of the mean.
    fn worst_window(&self) -> f64 {
        let (worst, all) = (self.windows.iter().min().unwrap(), self.windows.iter().sum::<u64>());
        *worst as f64 * self.windows.len() as f64 / all as f64
    }

    fn tell(&self, of: &str) {
        println!(
            "{of}: {} writes, {:.1} appends at the longest but for one in a thousand, worst window {:.2} of the mean, \
             {} pages copied from {} zones",
            self.waits_ns.len(),
            self.appends_waited(),
            self.worst_window(),
            self.after.pages_moved - self.before.pages_moved,
            self.after.zones_cleaned - self.before.zones_cleaned,
        );
    }
}

fn page(fill: u8) -> PageBuf {
    PageBuf::copy_from(&[fill; PAGE_BYTES])
}

/// `writers` writers write single pages at random, each one after the other.
fn answered(durability: &str, writers: u64) -> Answered {
    let text = config::template(&format!("{CAPACITY_MIB}MiB"));
    let said = format!("durability = \"{durability}\"");
    let text = text.replace("# durability = \"on_ack\"", &said);
    let config = VolumeConfig::parse(&text, Path::new("v.toml")).unwrap();
    let runtime = Virtual::new(Schedule::Fifo);
    let done = runtime.run(write_for_a_while(runtime.clone(), config, writers)).unwrap();
    runtime.drop_tasks();
    done
}

async fn write_for_a_while(runtime: Virtual, config: VolumeConfig, writers: u64) -> Answered {
    let inner = MemoryStore::new((CAPACITY_MIB * 3 / 2) << 20);
    let store = ModelDisk { runtime: runtime.clone(), inner, busy_until_ns: Rc::default() };
    create_flash(store.clone(), &config, 1).await.unwrap();
    let (volume, _) = open_flash(&runtime, store, &config, OpenOptions::default()).await.unwrap();
    let pages = (CAPACITY_MIB << 20) / PAGE_BYTES as u64 * 3 / 4;
    for first in (0..pages).step_by(64) {
        volume.write(PageNo(first), &vec![page(1); 64], None).await.unwrap();
    }
    let mut rng = Rng::new(1);
    // Scattered, so that zones have different shares of garbage.
    for _ in 0..pages / 32 {
        let first = rng.below(pages / 16) * 16;
        volume.write(PageNo(first), &vec![page(2); 16], None).await.unwrap();
    }
    volume.flush().await.unwrap();
    let before = volume.device().statistics().ftl;
    let from_ns = runtime.now_ns();
    let end_ns = from_ns + SECONDS * 1_000_000_000;
    let waits = Rc::new(RefCell::new(Vec::new()));
    let windows = Rc::new(RefCell::new(vec![0; ((end_ns - from_ns) / WINDOW_NS) as usize]));
    let write = |writer| {
        let (volume, runtime) = (Rc::clone(&volume), runtime.clone());
        let (waits, windows) = (Rc::clone(&waits), Rc::clone(&windows));
        async move {
            let mut rng = Rng::split(2, &format!("writer {writer}"));
            while runtime.now_ns() < end_ns {
                let asked_ns = runtime.now_ns();
                volume.write(PageNo(rng.below(pages)), &[page(3)], None).await.unwrap();
                waits.borrow_mut().push(runtime.now_ns() - asked_ns);
                let window = (runtime.now_ns() - from_ns) / WINDOW_NS;
                if let Some(window) = windows.borrow_mut().get_mut(window as usize) {
                    *window += 1;
                }
            }
        }
    };
    let tasks: Vec<_> = (0..writers).map(|writer| runtime.spawn("writer", write(writer))).collect();
    for task in tasks {
        task.await;
    }
    let mut waits_ns = waits.take();
    waits_ns.sort_unstable();
    Answered { waits_ns, windows: windows.take(), before, after: volume.device().statistics().ftl }
}

#[test]
fn a_write_waits_for_a_few_appends_at_most_while_zones_are_cleaned() {
    for (writers, appends_max) in [(1, APPENDS_MAX), (8, 12.0)] {
        let answered = answered("on_ack", writers);
        answered.tell(&format!("{writers} writers"));
        assert!(answered.after.zones_cleaned > answered.before.zones_cleaned + 20);
        assert!(answered.appends_waited() <= appends_max);
        assert!(answered.worst_window() > 0.5);
    }
}

#[test]
fn cleaning_that_takes_the_disk_for_itself_is_noticed() {
    let _planted = plant(Fault::CleaningUnpaced);
    let answered = answered("on_ack", 1);
    answered.tell("unpaced");
    assert!(answered.appends_waited() > APPENDS_MAX);
}

/// Write-backs of a whole cache need several zones at once: cleaning must not wait for hosts then.
#[test]
fn writes_that_outrun_cleaning_go_on() {
    let answered = answered("on_flush", 32);
    answered.tell("on_flush, 32 writers");
    assert!(answered.after.zones_cleaned > answered.before.zones_cleaned + 20);
    assert!(answered.windows.iter().all(|writes| *writes > 0));
}
