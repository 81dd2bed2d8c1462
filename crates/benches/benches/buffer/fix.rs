//! Fixes per second, live and in virtual time: of pages that are in the pool, and of pages that are
//! not, over a device that takes no time and stores nothing. 10,000 fixes per iteration.
use criterion::{Criterion, Throughput};
use std::rc::Rc;
use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PageDevice, PageNo, PageRange, Result, Stamp, TxId,
};
use tantalum_buffer::{Buffered, Intent, Pool, PoolOptions};
use tantalum_policy::{Policy, PolicySpec, Workload};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Live, Runtime, Virtual};

const PAGES: u64 = 1 << 20;
const FRAMES: u32 = 10_000;
const FIXES: u64 = 10_000;

/// A device that answers at once.
struct Null(Limits);

impl Null {
    fn new() -> Rc<Null> {
        Rc::new(Null(Limits {
            page_bytes: 4096,
            pages: PAGES,
            atomic_write_pages_max: 256,
            transaction_pages_max: 0,
            transactions_max: 0,
            share_pairs_max: 0,
            durability: Durability::OnAck,
        }))
    }
}

fn unsupported<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, "nothing but reads and writes"))
}

impl PageDevice for Null {
    type Page = Stamp;

    fn limits(&self) -> &Limits {
        &self.0
    }

    async fn read(&self, first: PageNo, out: &mut [Stamp], _tx: Option<TxId>) -> Result<()> {
        (first.0..).map(PageNo).zip(out).for_each(|(page, out)| *out = Stamp::new(page, 0));
        Ok(())
    }

    async fn write(&self, _first: PageNo, _pages: &[Stamp], _tx: Option<TxId>) -> Result<()> {
        Ok(())
    }

    async fn flush(&self) -> Result<()> {
        Ok(())
    }

    async fn trim(&self, _range: PageRange) -> Result<()> {
        unsupported()
    }

    async fn share(&self, _pairs: &[(PageNo, PageNo)]) -> Result<()> {
        unsupported()
    }
}

fn policy(text: &str) -> Box<dyn Policy> {
    let spec = PolicySpec::parse(text).expect("a name of the registry");
    let workload = Workload { pages_end: PAGES, future: &[] };
    spec.build(FRAMES, workload).expect("a policy of a sound size")
}

/// Fixes pages among the first `pages`, with a stride, continuing after the last call: with more
/// pages than frames, each page was evicted before it comes again.
async fn fixes<R: Runtime>(pool: Rc<Pool<Null, R>>, pages: u64, intent: Intent) {
    let before = pool.statistics().requests;
    for number in before..before + FIXES {
        let page = PageNo(number.wrapping_mul(7919) % pages);
        let mut guard = pool.fix(page, intent).await.expect("the device never fails");
        if intent.is_write() {
            *guard.page_mut() = Stamp::new(page, number);
        }
    }
}

fn bench<R: Runtime>(
    criterion: &mut Criterion,
    name: &str,
    runtime: &R,
    run: impl Fn(&R, Rc<Pool<Null, R>>, u64, Intent),
) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(FIXES)).sample_size(20);
    let cases = [
        ("read hits", u64::from(FRAMES), Intent::Read),
        ("update hits", u64::from(FRAMES), Intent::Update),
        ("read misses", PAGES, Intent::Read),
        ("update misses", PAGES, Intent::Update),
    ];
    for (case, pages, intent) in cases {
        let options = PoolOptions::default();
        let pool = Pool::new(Null::new(), runtime.clone(), policy("lru"), options);
        let pool = pool.expect("sound options");
        pool.start();
        run(runtime, Rc::clone(&pool), u64::from(FRAMES), Intent::Read);
        group.bench_function(case, |bencher| {
            bencher.iter(|| run(runtime, Rc::clone(&pool), pages, intent));
        });
        let seen = pool.statistics();
        let case = format!("{case}: {:.1} % hits", 100.0 * seen.hit_ratio());
        println!("{case}, {} written, {} waits", seen.physical_writes, seen.free_frame_waits);
    }
    group.finish();
}

fn bench_buffered(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("buffered");
    group.throughput(Throughput::Elements(FIXES)).sample_size(20);
    let buffered = Rc::new(Buffered::new(Null::new(), Some(policy("lru"))));
    let runtime = Virtual::new(Schedule::Fifo);
    group.bench_function("read hits", |bencher| {
        bencher.iter(|| {
            let buffered = Rc::clone(&buffered);
            let reads = async move {
                let mut out = [Stamp::default()];
                for number in 0..FIXES {
                    let page = PageNo(number.wrapping_mul(7919) % u64::from(FRAMES));
                    buffered.read(page, &mut out, None).await.expect("the device never fails");
                }
            };
            runtime.run(reads).expect("nothing to wait for");
        });
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let runtime = Virtual::new(Schedule::Fifo);
    bench(&mut criterion, "virtual", &runtime, |runtime, pool, pages, intent| {
        runtime.run(fixes(pool, pages, intent)).expect("nothing to wait for");
    });
    runtime.drop_tasks();
    let live = Live::new(LiveOptions::default()).expect("an executor");
    bench(&mut criterion, "live", &live, |live, pool, pages, intent| {
        live.run(fixes(pool, pages, intent));
    });
    live.drop_tasks();
    bench_buffered(&mut criterion);
    criterion.final_summary();
}
