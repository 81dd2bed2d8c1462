//! LinkBench over InnoDB's tables on an OpenSSD, with the redo log on a drive of its own (sections 5.1 and 5.3.1).
//!
//! One database for each form of writing pages and each page size: loaded, grown and aged by the load itself, then measured with one
//! buffer after the other.
use std::rc::Rc;
use tantalum_base::{PageDevice, Result, Stamp};
use tantalum_hosts::double_write::{
    DoubleWrite, DoubleWriteOptions, Drives, Form, HostStatistics, PageOptions,
};
use tantalum_hosts::records::Remembered;
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::{Tree, ValueStamp};
use tantalum_hosts::workload::link_bench::{LinkBench, TREES, Table};
use tantalum_hosts::workload::{LoopOptions, UndoLog, run_closed_loop};
use tantalum_models::{DeviceConfig, SimulatedSsd};
use tantalum_runtime::{LifeCycle, Virtual};

use super::super::Scale;

type Device = SimulatedSsd<Virtual, Stamp>;
type Codec = Remembered<Block<ValueStamp>>;
type Store = Rc<DoubleWrite<Virtual, Device, ValueStamp, Codec>>;

/// Section 5.3.1.
pub(super) const CLIENTS: u32 = 16;
/// Number of nodes: a million occupy a gigabyte when they are loaded, and the 1.5 GB of section 5.3.1 by the time the drive is aged,
/// because full leaves are split.
const NODES: u64 = 1_000_000;
/// Pages of the 4 GB drive, pages per megabyte, and pages of ext4's journal on such a drive; 4 KiB each.
pub(super) const DRIVE_PAGES: u64 = 976_562;
pub(super) const MEGABYTE_PAGES: f64 = 244.14;
const JOURNAL_PAGES: u64 = 16_384;
/// MySQL's two log files of 48 MB, the default of its version 5.7.
const LOG_PAGES: u64 = 23_438;
/// The tree of the undo log, and the number of old rows that it keeps: InnoDB's purge follows closely. The number is chosen.
const UNDO: Tree = Tree(TREES);
const UNDO_ROWS_MAX: u64 = 1_000;
/// Maximum share of the drive for the database.
const DATABASE_SHARE_MAX: f64 = 0.75;
/// Device pages of file-system metadata for each page of the database that is flushed. Set so that SHARE saves 45 % of the page writes
/// (figure 6a): 1 / (2 + rate) = 0.45.
const METADATA_PER_PAGE: f64 = 0.222;
/// Number of operations between two checks of the ageing.
const AGEING_STEP: u64 = 1_000;

/// The sizes of a run. Drive, database, journal, log and buffer are a fraction of the paper's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// The fraction's denominator.
    scale_down: u64,
    /// Number of pages that are flushed together: 120 are InnoDB's batch for the double write.
    batch_pages: u32,
    /// The load runs on the drive until it wrote the drive's capacity this many times.
    aged_fills: f64,
    /// Number of operations with a new buffer before the measurement, and of measured operations.
    warm_up: u64,
    operations: u64,
}

impl Size {
    pub(super) fn of(scale: Scale) -> Size {
        match scale {
            Scale::Small => Size {
                scale_down: 64,
                batch_pages: 60,
                aged_fills: 2.5,
                warm_up: 1_000,
                operations: 10_000,
            },
            Scale::Full | Scale::Paper => Size {
                scale_down: 16,
                batch_pages: 120,
                aged_fills: 2.5,
                warm_up: 5_000,
                operations: 40_000,
            },
        }
    }
}

impl Size {
    /// Number of pages of `page_units` device pages in a buffer of this many of the paper's megabytes.
    fn pool_pages(&self, megabytes: u32, page_units: u32) -> u32 {
        let units = f64::from(megabytes) * MEGABYTE_PAGES / self.scale_down as f64;
        units as u32 / page_units
    }

    /// Number of pages of a batch: a small pool cannot flush more at once.
    fn batch_pages(&self, smallest_megabytes: u32, page_units: u32) -> u32 {
        self.batch_pages.min(self.pool_pages(smallest_megabytes, page_units) / 4)
    }
}

/// A case of the comparison: a buffer of this many of the paper's megabytes, and pages of this many KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) buffer_megabytes: u32,
    /// 4, 8 or 16.
    pub(super) page_kib: u32,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} MB buffer, {} KiB pages", self.buffer_megabytes, self.page_kib)
    }
}

/// The result of a run. Counts are of the measured operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outcome {
    /// The engine's counters.
    pub host: HostStatistics,
    /// Number of zones that the drive cleaned.
    pub cleanings: u64,
    /// Number of pages that cleaning copied.
    pub copied_pages: u64,
    /// Number of pages that were written again because they could not be shared.
    pub share_copied_pages: u64,
    /// Device pages with content at the end, in percent of the drive.
    pub live_percent: f64,
    /// Transactions per second.
    pub throughput: f64,
}

impl Outcome {
    /// Mean latency of a transaction, in milliseconds: each client always has one in progress.
    pub(super) fn mean_latency_ms(&self) -> f64 {
        1e3 * f64::from(CLIENTS) / self.throughput
    }
}

/// The counters of the drive.
#[derive(Clone, Copy)]
struct Counters {
    cleanings: u64,
    copied_pages: u64,
    share_copied_pages: u64,
}

/// A database with its drives.
struct Machine {
    runtime: Virtual,
    device: Rc<Device>,
    log: Rc<Device>,
    drives: Drives<Device, Codec>,
    bench: Rc<LinkBench>,
    undo: Rc<UndoLog>,
    options: DoubleWriteOptions,
    size: Size,
}

/// Runs pages of `page_kib` in `form` with each buffer, the smallest first.
pub(super) fn measure(
    form: Form,
    page_kib: u32,
    (buffers_megabytes, size): (Vec<u32>, Size),
    seed: u64,
) -> Result<Vec<Outcome>> {
    let what = format!("{}, {page_kib} KiB pages", form.name());
    Virtual::alone(what, move |runtime| async move {
        let smallest = buffers_megabytes[0];
        let machine = Machine::load(&runtime, form, page_kib, (smallest, size), seed).await?;
        machine.age(seed).await?;
        let mut outcomes = Vec::new();
        for (buffer, number) in buffers_megabytes.into_iter().zip(1..) {
            let seed = seed.wrapping_add(number << 32);
            outcomes.push(machine.measure(machine.with_buffer(buffer), seed).await?);
        }
        machine.device.close().await?;
        machine.log.close().await?;
        Ok(outcomes)
    })
}

impl Machine {
    async fn load(
        runtime: &Virtual,
        form: Form,
        page_kib: u32,
        (buffer_megabytes, size): (u32, Size),
        seed: u64,
    ) -> Result<Machine> {
        let drive_pages = DRIVE_PAGES / size.scale_down;
        let page_units = page_kib / 4;
        let database_pages = drive_pages as f64 * DATABASE_SHARE_MAX / f64::from(page_units);
        let pages = PageOptions {
            form,
            database_pages: database_pages as u64,
            device_pages_per_page: page_units,
            pool_pages: size.pool_pages(buffer_megabytes, page_units),
            batch_pages: size.batch_pages(buffer_megabytes, page_units),
            metadata_per_page: METADATA_PER_PAGE,
            metadata_pages: (JOURNAL_PAGES / size.scale_down) as u32,
        };
        let log_pages = LOG_PAGES / size.scale_down;
        let options = DoubleWriteOptions { pages, log_pages, trees: TREES + 1 };
        let build = async |text: &str| -> Result<Rc<Device>> {
            DeviceConfig::parse(text)?.build(runtime, seed).await
        };
        let device = build(&format!("openssd:pages={drive_pages}")).await?;
        // Section 5.1 has the log on a server drive.
        let log = build(&format!("durassd:pages={}", 4 * log_pages)).await?;
        let codecs = [(); 2].map(|()| Rc::new(Codec::default()));
        let drives = Drives::new(&device, &codecs[0]).with_log_on(&log, &codecs[1], seed);
        let store: Store = DoubleWrite::create_on(runtime, &drives, options).await?;
        let bench = LinkBench::new(NODES / size.scale_down)?;
        bench.load(&store).await?;
        store.close().await?;
        let runtime = runtime.clone();
        let rows = [Table::Node, Table::Link, Table::Count].map(Table::tree);
        let undo = UndoLog::new(UNDO, &rows, UNDO_ROWS_MAX);
        Ok(Machine { runtime, device, log, drives, bench, undo, options, size })
    }

    fn with_buffer(&self, megabytes: u32) -> DoubleWriteOptions {
        let pages = self.options.pages;
        let pool_pages = self.size.pool_pages(megabytes, pages.device_pages_per_page);
        DoubleWriteOptions { pages: PageOptions { pool_pages, ..pages }, ..self.options }
    }

    async fn open(&self, options: DoubleWriteOptions) -> Result<Store> {
        Ok(DoubleWrite::open_on(&self.runtime, &self.drives, options).await?.0)
    }

    /// Runs the load until the drive is aged as [`Size`] requires.
    async fn age(&self, seed: u64) -> Result<()> {
        let store = self.open(self.options).await?;
        let requests = self.bench.requests(&self.runtime, &self.undo.over(&store), seed)?;
        let step = LoopOptions { clients: CLIENTS, warm_up: 0, operations: AGEING_STEP };
        let pages = self.device.limits().pages as f64 * self.size.aged_fills;
        while (store.statistics().pages.pages_written() as f64) < pages {
            run_closed_loop(&self.runtime, &requests, step).await?;
        }
        store.close().await
    }

    /// Runs the load on a buffer that is empty at the start.
    async fn measure(&self, options: DoubleWriteOptions, seed: u64) -> Result<Outcome> {
        let store = self.open(options).await?;
        let requests = self.bench.requests(&self.runtime, &self.undo.over(&store), seed)?;
        let warm_up = LoopOptions { clients: CLIENTS, warm_up: 0, operations: self.size.warm_up };
        run_closed_loop(&self.runtime, &requests, warm_up).await?;
        let (host, drive) = (store.statistics().pages, self.counters());
        let measured = LoopOptions { operations: self.size.operations, ..warm_up };
        let report = run_closed_loop(&self.runtime, &requests, measured).await?;
        let (host, end) = (store.statistics().pages.since(&host), self.counters());
        store.close().await?;
        let live = self.device.device().ftl().statistics().pages_mapped as f64;
        Ok(Outcome {
            host,
            cleanings: end.cleanings - drive.cleanings,
            copied_pages: end.copied_pages - drive.copied_pages,
            share_copied_pages: end.share_copied_pages - drive.share_copied_pages,
            live_percent: 100.0 * live / self.device.limits().pages as f64,
            throughput: report.throughput(),
        })
    }

    fn counters(&self) -> Counters {
        let ftl = self.device.device().ftl().statistics();
        Counters {
            cleanings: ftl.zones_cleaned,
            copied_pages: ftl.pages_moved,
            share_copied_pages: ftl.pages_share_copied,
        }
    }
}
