//! Operations of LinkBench that are simulated in a second of one core's time: a storage engine, its buffer pool, thousands of clients,
//! and the device below.
use rustix::time::{ClockId, clock_gettime};
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_hosts::double_write::{DoubleWrite, DoubleWriteOptions, Form, PageOptions};
use tantalum_hosts::records::Remembered;
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::ValueStamp;
use tantalum_hosts::workload::LoopOptions;
use tantalum_hosts::workload::link_bench::{LinkBench, TREES};
use tantalum_models::DeviceSpec;
use tantalum_runtime::Virtual;

const CLIENTS: u32 = 2_000;
const OPERATIONS: u64 = 500_000;

/// Pages of 4 KiB; the database that is loaded takes about 24 for 100 nodes.
const DATABASE_PAGES: u64 = 50_000;

/// Nodes of the graph, and pages of the pool. Smaller graphs fit the processor's caches better: they tell what memory costs.
const CASES: [(u64, &str, u32); 4] = [
    (100_000, "a tenth of it", 2_500),
    (100_000, "all of it", 60_000),
    (10_000, "all of it", 60_000),
    (2_000, "all of it", 60_000),
];

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Stamps = Remembered<Block<ValueStamp>>;

async fn bench(runtime: &Virtual, (nodes, what, pool_pages): (u64, &str, u32)) -> Result<()> {
    let device = DeviceSpec::parse("durassd:capacity=1GiB")?.build(runtime, 1).await?.device;
    let codec = Rc::new(Stamps::default());
    let pages = PageOptions {
        form: Form::Off,
        database_pages: DATABASE_PAGES,
        device_pages_per_page: 1,
        pool_pages,
        batch_pages: 120,
        metadata_per_page: 0.0,
        metadata_pages: 0,
    };
    let options = DoubleWriteOptions { pages, log_pages: 16_384, trees: TREES };
    let store = DoubleWrite::create(runtime, &device, &codec, options).await?;
    let bench = LinkBench::new(nodes)?;
    let start = cpu_seconds();
    bench.load(&store).await?;
    let loading = cpu_seconds() - start;
    let options = LoopOptions { clients: CLIENTS, warm_up: OPERATIONS / 5, operations: OPERATIONS };
    let start = cpu_seconds();
    let report = bench.run(runtime, &store, options, 1).await?;
    let rate = (options.warm_up + report.operations()) as f64 / (cpu_seconds() - start);
    println!(
        "{nodes} nodes, {CLIENTS} clients, a pool of {what}: {rate:9.0} operations/s simulated; in virtual time {:.0}/s; {:.0} % of \
         page requests hit; loaded in {loading:.1} s",
        report.throughput(),
        100.0 * store.pool_statistics().hits as f64 / store.pool_statistics().requests as f64,
    );
    Ok(())
}

/// Time that this process has had of a core.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() -> Result<()> {
    for case in CASES {
        Virtual::alone("LinkBench", move |runtime| async move { bench(&runtime, case).await })?;
    }
    Ok(())
}
