//! The paper's machine, with MySQL and LinkBench on it: two drives, a file system on each, processors, and 128 clients.
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, Result};
use tantalum_hosts::double_write::{DoubleWrite, DoubleWriteOptions, Drives, Form, PageOptions};
use tantalum_hosts::records::Remembered;
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::ValueStamp;
use tantalum_hosts::workload::link_bench::{LinkBench, LinkBenchReport, TREES};
use tantalum_hosts::workload::{ClosedLoad, LoopOptions, run_closed_loop};
use tantalum_models::DeviceSpec;
use tantalum_replay::device_replay::Device;
use tantalum_runtime::sync::Semaphore;
use tantalum_runtime::{Runtime, Virtual};

use super::super::Scale;
use super::super::load::XFS;
use super::super::mounted::Mounted;

/// Four processors of eight cores each (section 4.2).
const CORES: u64 = 32;

/// Time of a core per transaction, including the client's part. Set by table 3, ON/ON with 16 KiB: a quarter of `Count_Link`, whose pages
/// are in the buffer, have at most 0.6 ms.
pub(super) const COMPUTING_NS: u64 = 600_000;

/// Section 4.3.1.
pub(super) const CLIENTS: u32 = 128;

/// Bytes per node with its links: the size when it is loaded, and the same again for growth.
const NODE_BYTES: u64 = 2_048;

type Codec = Remembered<Block<ValueStamp>>;
type Drive = Mounted<Device>;
type Store = Rc<DoubleWrite<Virtual, Drive, ValueStamp, Codec>>;

/// The sizes of a run. The paper's are 100 million nodes (100 GB) and 6.4 million transactions, after 600 seconds of warm-up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) nodes: u64,
    data: &'static str,
    log: &'static str,
    /// Device pages of the log: about an eighth of the database, as with the paper's three files of 4 GB.
    log_pages: u64,
    /// Number of pages of a batch. Chosen: InnoDB's double-write area has 120, which is negligible in a buffer of 10 GB but most of a
    /// scaled-down one.
    batch_pages: u32,
    warm_up: u64,
    operations: u64,
}

impl Size {
    pub(super) fn of(scale: Scale) -> Size {
        match scale {
            Scale::Small => Size {
                nodes: 40_000,
                data: "256MiB",
                log: "256MiB",
                log_pages: 1_024,
                batch_pages: 8,
                warm_up: 4_000,
                operations: 8_000,
            },
            Scale::Full | Scale::Paper => Size {
                nodes: 64_000,
                data: "512MiB",
                log: "256MiB",
                log_pages: 4_096,
                batch_pages: 16,
                warm_up: 15_000,
                operations: 30_000,
            },
        }
    }
}

/// Which file systems are mounted with write barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Barriers {
    /// Those of both drives.
    On,
    /// None.
    Off,
    /// Only that of the log's drive. The paper does not say whether its barriers are off there, too.
    OfTheLog,
}

impl Barriers {
    /// On the drive of the data, and on that of the log.
    fn by_drive(self) -> [bool; 2] {
        match self {
            Barriers::On => [true, true],
            Barriers::Off => [false, false],
            Barriers::OfTheLog => [false, true],
        }
    }
}

/// A measurement on a database.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) barriers: Barriers,
    /// The buffer, in percent of the database after loading.
    pub(super) buffer_percent: u32,
}

/// The result of a measurement.
pub(super) struct Outcome {
    pub(super) report: LinkBenchReport,
    /// Requests for pages that were not in the buffer, in percent.
    pub(super) miss_percent: f64,
}

/// A database with its drives.
struct Machine {
    runtime: Virtual,
    drives: Drives<Drive, Codec>,
    files: [Rc<Drive>; 2],
    bench: Rc<LinkBench>,
    options: DoubleWriteOptions,
    /// Number of pages in use.
    loaded_pages: u64,
}

/// Loads a database with pages of `device_pages` device pages, and measures one cell after the other on it.
pub(super) fn measure(
    form: Form,
    page_pages: u32,
    (size, cells): (Size, Vec<Cell>),
    seed: u64,
) -> Result<Vec<Outcome>> {
    let what = format!("LinkBench, {}, pages of {page_pages}", form.name());
    Virtual::alone(what, move |runtime| async move {
        let machine = Machine::load(&runtime, form, page_pages, size, seed).await?;
        let mut outcomes = Vec::new();
        for (cell, number) in cells.into_iter().zip(1..) {
            outcomes.push(machine.measure(cell, size, seed.wrapping_add(number << 32)).await?);
        }
        Ok(outcomes)
    })
}

impl Machine {
    async fn load(
        runtime: &Virtual,
        form: Form,
        page_pages: u32,
        size: Size,
        seed: u64,
    ) -> Result<Machine> {
        let database_pages = size.nodes * NODE_BYTES / (PAGE_BYTES as u64 * u64::from(page_pages));
        let pages = PageOptions {
            form,
            database_pages,
            device_pages_per_page: page_pages,
            pool_pages: database_pages as u32 / 4,
            batch_pages: size.batch_pages,
            metadata_per_page: 0.0,
            metadata_pages: 0,
        };
        let options = DoubleWriteOptions { pages, log_pages: size.log_pages, trees: TREES };
        let mut files = Vec::new();
        for capacity in [size.data, size.log] {
            let spec = DeviceSpec::parse(&format!("durassd:capacity={capacity},barrier=on"))?;
            let device: Rc<Device> = spec.build(runtime, seed).await?.device;
            files.push(Rc::new(Mounted::new(runtime, device, XFS)));
        }
        let files = [Rc::clone(&files[0]), Rc::clone(&files[1])];
        let codecs = [(); 2].map(|()| Rc::new(Codec::default()));
        let drives = Drives::new(&files[0], &codecs[0]).with_log_on(&files[1], &codecs[1], seed);
        // The time of loading does not matter.
        files.iter().for_each(|file| file.set_barriers(false));
        let store: Store = DoubleWrite::create_on(runtime, &drives, options).await?;
        let bench = LinkBench::new(size.nodes)?;
        bench.load(&store).await?;
        let loaded_pages = database_pages - store.free_pages().await?;
        store.close().await?;
        let runtime = runtime.clone();
        Ok(Machine { runtime, drives, files, bench, options, loaded_pages })
    }

    /// Runs the load on a buffer that is empty at the start.
    async fn measure(&self, cell: Cell, size: Size, seed: u64) -> Result<Outcome> {
        for (file, barriers) in self.files.iter().zip(cell.barriers.by_drive()) {
            file.set_barriers(barriers);
        }
        let pool_pages = (self.loaded_pages * u64::from(cell.buffer_percent) / 100) as u32;
        let pages = PageOptions { pool_pages, ..self.options.pages };
        let options = DoubleWriteOptions { pages, ..self.options };
        let (store, _): (Store, _) =
            DoubleWrite::open_on(&self.runtime, &self.drives, options).await?;
        let requests = self.bench.requests(&self.runtime, &store, seed)?;
        let computing = Rc::new(Computing {
            runtime: self.runtime.clone(),
            cores: Semaphore::new("a core", CORES),
            load: Rc::clone(&requests),
        });
        let warm_up = LoopOptions { clients: CLIENTS, warm_up: 0, operations: size.warm_up };
        run_closed_loop(&self.runtime, &computing, warm_up).await?;
        let before = store.pool_statistics();
        let measured = LoopOptions { operations: size.operations, ..warm_up };
        let report = run_closed_loop(&self.runtime, &computing, measured).await?;
        let after = store.pool_statistics();
        store.close().await?;
        // A page in a transit frame is in the buffer, too.
        let missed = (after.misses - after.rescues) - (before.misses - before.rescues);
        Ok(Outcome {
            report: LinkBenchReport::new(report, requests.conflicts()),
            miss_percent: 100.0 * missed as f64 / (after.requests - before.requests) as f64,
        })
    }
}

/// A load whose operations each use time of a core.
struct Computing<L> {
    runtime: Virtual,
    cores: Semaphore,
    load: Rc<L>,
}

impl<L: ClosedLoad> ClosedLoad for Computing<L> {
    type Operation = L::Operation;

    const KINDS: usize = L::KINDS;

    fn draw(&self, client: u32) -> (usize, L::Operation) {
        self.load.draw(client)
    }

    async fn perform(&self, operation: L::Operation) -> Result<u64> {
        let core = self.cores.acquire(1).await;
        self.runtime.sleep(COMPUTING_NS).await;
        drop(core);
        self.load.perform(operation).await
    }
}
