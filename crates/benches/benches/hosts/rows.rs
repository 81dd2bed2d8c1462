//! Random updates of rows, by each engine in each of its forms: pages that a transaction writes, transactions a second in virtual time
//! over DuraSSD, and how many of them are simulated in a second of one core's time.
use rustix::time::{ClockId, clock_gettime};
use std::rc::Rc;
use tantalum_base::{Result, Rng};
use tantalum_hosts::database::{Database, DatabaseOptions, PageOptions, Way};
use tantalum_hosts::double_write::Form;
use tantalum_hosts::records::Remembered;
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::{Tree, ValueStamp};
use tantalum_hosts::wal_engine::WalForm;
use tantalum_models::DeviceSpec;
use tantalum_runtime::{Runtime, Virtual};

const ROWS: u64 = 100_000;
const ROW_BYTES: u32 = 200;
const CLIENTS: u64 = 64;
const TRANSACTIONS: u64 = 500;

type Stamps = Remembered<Block<ValueStamp>>;

/// Device pages of the log: 8 MiB, of which a checkpoint is due often, and 64 MiB.
const LOGS: [u64; 2] = [2_048, 16_384];

/// Pages of 8 KiB as PostgreSQL has them, a third of them in memory.
fn options<W: Way>(form: W, log_pages: u64) -> DatabaseOptions<W> {
    let pages = PageOptions {
        form,
        database_pages: 8_000,
        device_pages_per_page: 2,
        pool_pages: 1_000,
        batch_pages: 64,
        metadata_per_page: 0.0,
        metadata_pages: 0,
    };
    let log_pages = if form.has_log() { log_pages } else { 0 };
    DatabaseOptions { pages, log_pages, trees: 1 }
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

async fn bench<W: Way>(runtime: &Virtual, engine: &str, form: W, log_pages: u64) -> Result<()> {
    let device = DeviceSpec::parse("durassd:capacity=1GiB")?.build(runtime, 1).await?.device;
    let codec = Rc::new(Stamps::default());
    let database = Database::create(runtime, &device, &codec, options(form, log_pages)).await?;
    for first in (0..ROWS).step_by(20) {
        let mut transaction = database.begin();
        for number in first..first + 20 {
            let value = ValueStamp { bytes: ROW_BYTES, count: 0 };
            transaction.put(Tree(0), &key(number), value).await?;
        }
        transaction.commit().await?;
    }
    database.checkpoint().await?;
    let (before, start_ns, start) = (database.statistics(), runtime.now_ns(), cpu_seconds());
    let clients = (0..CLIENTS).map(|client| {
        let (database, mut rng) = (Rc::clone(&database), Rng::split(1, &format!("{client}")));
        runtime.spawn("client", async move {
            for count in 1..=TRANSACTIONS {
                let row = CLIENTS * rng.below(ROWS / CLIENTS) + client;
                let mut transaction = database.begin();
                let value = ValueStamp { bytes: ROW_BYTES, count };
                transaction.put(Tree(0), &key(row), value).await?;
                transaction.commit().await?;
            }
            Ok::<_, tantalum_base::Error>(())
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await?;
    }
    let (seconds, cpu) = ((runtime.now_ns() - start_ns) as f64 / 1e9, cpu_seconds() - start);
    let counts = database.statistics();
    let commits = (counts.commits - before.commits) as f64;
    let pages = counts.pages.since(&before.pages);
    let log = counts.log_pages - before.log_pages;
    println!(
        "{engine:12} {:12} log of {:2} MiB: {:5.2} pages written a transaction (log {:.2}, area {:.2}, homes {:.2}), {:3} checkpoints; {:6.0} transactions/s in virtual time, {:6.0}/s simulated",
        form.name(),
        log_pages >> 8,
        (log + pages.pages_written()) as f64 / commits,
        log as f64 / commits,
        pages.area_pages as f64 / commits,
        pages.home_pages as f64 / commits,
        counts.checkpoints - before.checkpoints,
        commits / seconds,
        commits / cpu,
    );
    Ok(())
}

/// Time that this process has had of a core.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn bench_all<W: Way>(engine: &'static str) -> Result<()> {
    for log_pages in LOGS {
        for form in W::WAYS.iter().copied().filter(|form| form.has_log() || log_pages == LOGS[0]) {
            let run = |rt| async move { bench(&rt, engine, form, log_pages).await };
            Virtual::alone(engine, run)?;
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    bench_all::<Form>("double_write")?;
    bench_all::<WalForm>("wal_engine")
}
