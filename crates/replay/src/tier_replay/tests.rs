use super::on_devices::run_tiers;
use super::*;
use std::sync::Arc;
use tantalum_base::{ErrorKind, PageNo};
use tantalum_models::DeviceSpec;
use tantalum_policy::tier::{Found, MiddleTier, Operation};
use tantalum_runtime::Virtual;
use tantalum_trace::Generator;

/// A replay without progress reports.
fn replay(trace: &CacheTrace, run: &TierRun) -> Result<TierOutcome> {
    super::replay(trace, run, &Work::default())
}

fn trace(pages: &[(u64, bool)]) -> CacheTrace {
    let requests = pages.iter().map(|&(page, write)| Request::new(PageNo(page), write)).collect();
    CacheTrace { name: "made up".into(), requests, pages_end: 100 }
}

fn run(middle: &str, flush: bool) -> TierRun {
    TierRun {
        top: PolicySpec::parse("lru").unwrap(),
        top_pages: 1,
        middle: TierSpec::parse(middle).unwrap(),
        middle_pages: 2,
        flush,
    }
}

/// A dirty page that an exclusive tier hands up, and that leaves the pool without having been written there,
/// is still newer than at home.
#[test]
fn what_was_taken_dirty_is_written_again() {
    let requests = [(1, true), (2, false), (1, false), (3, false), (4, false), (5, false)];
    let outcome = replay(&trace(&requests), &run("glb", false)).unwrap();
    assert_eq!(outcome.counts.read_hits, 1, "page 1 comes back up");
    assert_eq!(outcome.counts.writes, 2, "and is written down twice");
    assert_eq!(outcome.counts.disk_writes, 1, "and home, when it leaves");
    let outcome = replay(&trace(&requests[..3]), &run("glb", true)).unwrap();
    assert_eq!(outcome.counts.disk_writes, 1, "or at the end");
}

#[test]
fn the_requests_below_are_those_that_a_tier_is_given() {
    let requests = [(1, true), (2, false), (1, false), (3, true), (3, false), (4, false)];
    let (trace, run) = (trace(&requests), run("none", false));
    let below = requests_below(&trace, &run.top, run.top_pages).unwrap();
    let counts = replay(&trace, &run).unwrap().counts;
    let writes = below.iter().filter(|request| request.is_write()).count() as u64;
    assert_eq!((below.len() as u64 - writes, writes), (counts.reads, counts.writes));
    assert_eq!((counts.reads, counts.writes), (5, 2));
}

#[test]
fn everything_goes_home_at_the_end_where_asked_for() {
    let requests = [(1, true), (2, true), (3, true)];
    let written = |middle: &str, flush| {
        replay(&trace(&requests), &run(middle, flush)).unwrap().counts.disk_writes
    };
    for middle in ["none", "loc", "glb", "write_cache", "write_cache:place=sequential"] {
        assert_eq!(written(middle, true), 3, "{middle}");
    }
    assert_eq!(written("write_cache", false), 0);
}

fn skewed() -> Arc<CacheTrace> {
    let text = "zipf:pages=1000,requests=8000,theta=0.8,writes=0.4,seed=3";
    Arc::new(CacheTrace::collect("zipf", Generator::parse(text).unwrap().map(Ok)).unwrap())
}

fn devices(flash: Option<&str>) -> TierDevices {
    TierDevices {
        flash: flash.map(|flash| DeviceSpec::parse(flash).unwrap()),
        home: DeviceSpec::parse("wd1500hlfs").unwrap(),
        device_pages: 2,
        cpu_ns: 10_000,
        seed: 1,
    }
}

const FLASH: Option<&str> = Some("x25-m:pages=4096");

/// A pool of 100 pages over a cache of 300.
fn below_a_pool(middle: &str) -> TierRun {
    TierRun { top_pages: 100, middle_pages: 300, ..run(middle, true) }
}

#[test]
fn devices_do_what_was_decided_and_time_is_what_was_waited_for() {
    let trace = skewed();
    for middle in [
        "none",
        "loc",
        "glb",
        "write_cache",
        "write_cache:piggyback=on",
        "write_cache:place=sequential,coalesce=on",
        "write_cache:place=sequential,admit=eviction",
    ] {
        for flush in [true, false] {
            let run = TierRun { flush, ..below_a_pool(middle) };
            let flash = FLASH.filter(|_| middle != "none");
            let measured = replay_on_devices(&trace, &run, &devices(flash)).unwrap();
            assert_eq!(measured.outcome, replay(&trace, &run).unwrap(), "{middle}");
            let TierWaits { flash_read_ns, flash_write_ns, home_read_ns, home_write_ns } =
                measured.waits;
            let waited_ns = flash_read_ns + flash_write_ns + home_read_ns + home_write_ns;
            assert_eq!(measured.took_ns, waited_ns + trace.requests.len() as u64 * 10_000);
            let counts = measured.outcome.counts;
            assert!(home_read_ns > counts.disk_reads * 2_000_000, "{middle}: an arm moves");
            assert_eq!(flash_write_ns > 0, middle != "none", "{middle}");
            assert!(flash_read_ns >= counts.flash_reads * 50_000, "{middle}: {flash_read_ns}");
        }
    }
}

/// The operation that is reported in place of the real one.
type Tamper = fn(Operation) -> Option<Operation>;

/// A tier that reports other operations than it decided on.
struct Tampered(Box<dyn MiddleTier>, Tamper);

impl MiddleTier for Tampered {
    fn read(&mut self, page: PageNo) -> Found {
        self.0.read(page)
    }

    fn write(&mut self, page: PageNo) {
        self.0.write(page);
    }

    fn evict(&mut self, page: PageNo) {
        self.0.evict(page);
    }

    fn flush(&mut self) {
        self.0.flush();
    }

    fn contains(&self, page: PageNo) -> bool {
        self.0.contains(page)
    }

    fn dirty_pages(&self) -> u64 {
        self.0.dirty_pages()
    }

    fn counts(&self) -> &TierCounts {
        self.0.counts()
    }

    fn tell_operations(&mut self) -> bool {
        self.0.tell_operations()
    }

    fn take_operations(&mut self, operations: &mut Vec<Operation>) {
        let mut told = Vec::new();
        self.0.take_operations(&mut told);
        operations.extend(told.into_iter().filter_map(self.1));
    }
}

#[test]
fn a_tier_that_reads_the_wrong_place_is_found_out() {
    use Operation::{Destage, ReadFlash, ReadHome, WriteFlash, WriteHome};
    let faults: [(&str, Tamper); 6] = [
        ("the neighbour's slot", |operation| {
            Some(match operation {
                ReadFlash { slot, page } => ReadFlash { slot: slot ^ 1, page },
                other => other,
            })
        }),
        ("an older one at home", |operation| {
            Some(match operation {
                ReadFlash { page, .. } => ReadHome { page },
                other => other,
            })
        }),
        ("what is not destaged", |operation| {
            Some(operation).filter(|it| !matches!(it, Destage { .. }))
        }),
        ("what does not go home", |operation| {
            Some(operation).filter(|it| !matches!(it, WriteHome { .. }))
        }),
        ("what does not go to flash", |operation| {
            Some(operation).filter(|it| !matches!(it, WriteFlash { .. }))
        }),
        ("another page's home", |operation| {
            Some(match operation {
                WriteHome { page } => WriteHome { page: PageNo(page.0 ^ 1) },
                other => other,
            })
        }),
    ];
    let (trace, run) = (skewed(), below_a_pool("loc"));
    for (what, fault) in faults {
        let (trace, run) = (Arc::clone(&trace), run.clone());
        let found = Virtual::alone(what, |runtime| async move {
            let mut tiers = Tiers::new(&trace, &run)?;
            tiers.middle = Box::new(Tampered(tiers.middle, fault));
            run_tiers(&runtime, &trace, &run, &devices(FLASH), tiers).await
        });
        assert_eq!(found.map(|_| ()).unwrap_err().kind(), ErrorKind::Corrupt, "{what}");
    }
}

#[test]
fn what_cannot_be_carried_out_is_refused() {
    let trace = skewed();
    let refused = |middle: &str, devices: TierDevices| {
        replay_on_devices(&trace, &below_a_pool(middle), &devices).unwrap_err().kind()
    };
    assert_eq!(refused("nfa", devices(FLASH)), ErrorKind::Unsupported);
    assert_eq!(refused("loc", devices(None)), ErrorKind::InvalidInput);
    assert_eq!(refused("loc", devices(Some("x25-m:pages=512"))), ErrorKind::InvalidInput);
    let tiny = DeviceSpec::parse("wd1500hlfs:pages=1024").unwrap();
    assert_eq!(
        refused("loc", TierDevices { home: tiny, ..devices(FLASH) }),
        ErrorKind::InvalidInput
    );
    let nothing = TierDevices { device_pages: 0, ..devices(FLASH) };
    assert_eq!(refused("loc", nothing), ErrorKind::InvalidInput);
}
