//! Operations of YCSB that are simulated in a second of one core's time: a document store, thousands of clients, and the device below.
use rustix::time::{ClockId, clock_gettime};
use std::rc::Rc;
use tantalum_base::{PageDevice, Result};
use tantalum_hosts::docstore::{Block, DocStore, DocStoreOptions, Mode, ValueStamp};
use tantalum_hosts::records::Remembered;
use tantalum_hosts::workload::ycsb::{RecordOptions, Workload, Ycsb, YcsbOptions};
use tantalum_models::DeviceSpec;
use tantalum_runtime::Virtual;

const RECORDS: u64 = 100_000;
const CLIENTS: u32 = 2_000;
const OPERATIONS: u64 = 100_000;

type Stamps = Remembered<Block<ValueStamp>>;

async fn bench(runtime: &Virtual, mode: Mode) -> Result<()> {
    let device = DeviceSpec::parse("durassd:capacity=2GiB")?.build(runtime, 1).await?.device;
    println!(
        "{}: {RECORDS} records, {CLIENTS} clients, {} pages",
        mode.name(),
        device.limits().pages
    );
    let codec = Rc::new(Stamps::default());
    let options = DocStoreOptions { batch_updates: 8_192, ..DocStoreOptions::new(mode) };
    let store = DocStore::create(runtime, &device, &codec, options).await?;
    let ycsb = Ycsb::new::<ValueStamp>(RecordOptions::new(RECORDS))?;
    ycsb.load(&store).await?;
    store.close().await?;
    let options = DocStoreOptions { batch_updates: 1, ..options };
    let store = DocStore::open(runtime, &device, &codec, options).await?;
    for workload in Workload::ALL {
        let operations = if workload == Workload::E { OPERATIONS / 20 } else { OPERATIONS };
        let options = YcsbOptions { clients: CLIENTS, ..YcsbOptions::new(workload, operations, 1) };
        let start = cpu_seconds();
        let report = ycsb.run(runtime, &store, options).await?;
        let rate = report.operations() as f64 / (cpu_seconds() - start);
        println!(
            "  {workload:?}: {rate:9.0} operations/s simulated; in virtual time {:.0}/s",
            report.throughput()
        );
    }
    Ok(())
}

/// Time that this process has had of a core.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() -> Result<()> {
    for mode in Mode::ALL {
        Virtual::alone(mode.name(), |runtime| async move { bench(&runtime, mode).await })?;
    }
    Ok(())
}
