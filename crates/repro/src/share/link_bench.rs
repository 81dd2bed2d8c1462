//! One run of LinkBench over an engine with a double write, on an OpenSSD (section 5.3.1).
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result, Stamp};
use tantalum_hosts::double_write::{Form, HostStatistics, PageLoad, PageOptions};
use tantalum_models::{DeviceConfig, SimulatedSsd};
use tantalum_runtime::{Runtime, Virtual, spawn_all};
use tantalum_trace::{LinkBench, PageEvent};

use super::super::Scale;
use super::one_log::{Cleaned, OneLog, Watched};

type Device = SimulatedSsd<Virtual, Stamp>;
type Engine = PageLoad<Virtual, Watched<Device>>;

/// Section 5.3.1.
const CLIENTS: u32 = 16;
/// Pages of the 4 GB drive, of the 1.5 GB database, of a megabyte, of ext4's journal on a drive of
/// that size; 4 KiB each.
const DRIVE_PAGES: u64 = 976_562;
const DATABASE_PAGES: u64 = 366_210;
const MEGABYTE_PAGES: f64 = 244.14;
const JOURNAL_PAGES: u64 = 16_384;
/// Flash beyond the drive's pages (devices/openssd.md), for the model with one log.
const OVER_PROVISIONING: f64 = 0.074;
/// How skewed the ids are; chosen.
const THETA: f64 = 0.6;
/// Device pages of file-system metadata for each page of the database that is flushed. Set so that
/// SHARE saves 45 % of the page writes (figure 6a): 1 / (2 + rate) = 0.45.
const METADATA_PER_PAGE: f64 = 0.222;

/// A run's sizes. Drive, database, journal and buffer are a fraction of the paper's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// The fraction's denominator.
    scale_down: u64,
    /// Pages that are flushed together: 120 are InnoDB's batch for the double write.
    batch_pages: u32,
    /// The load runs on an aged drive until it wrote the drive's capacity so many times.
    warm_up_fills: f64,
    /// Transactions that are measured.
    transactions: u64,
}

impl Size {
    pub(super) fn of(scale: Scale) -> Size {
        match scale {
            Scale::Small => {
                Size { scale_down: 32, batch_pages: 60, warm_up_fills: 2.5, transactions: 30_000 }
            }
            // As many transactions as in the paper (section 5.3.1).
            Scale::Full | Scale::Paper => {
                Size { scale_down: 4, batch_pages: 120, warm_up_fills: 2.5, transactions: 160_000 }
            }
        }
    }
}

/// What is compared: a buffer of so many of the paper's megabytes, pages of so many KiB.
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

/// What a run came to. Counts are of the measured transactions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outcome {
    /// What the engine asked for.
    pub host: HostStatistics,
    /// Zones that the drive cleaned.
    pub cleanings: u64,
    /// Pages that cleaning copied.
    pub copied_pages: u64,
    /// Pages that were written again, as they could not be shared.
    pub share_copied_pages: u64,
    /// What the board's firmware, with one log, would have cleaned.
    pub one_log: Cleaned,
    /// Transactions a second.
    pub throughput: f64,
}

impl Outcome {
    /// How long a transaction takes in the mean, in milliseconds: clients never wait but for one.
    pub(super) fn mean_latency_ms(&self) -> f64 {
        1e3 * f64::from(CLIENTS) / self.throughput
    }
}

/// Clients that take their transactions from one stream.
struct Clients {
    runtime: Virtual,
    engine: Rc<Engine>,
    device: Rc<Device>,
    watched: Rc<Watched<Device>>,
    bench: RefCell<LinkBench>,
    /// Ends the warm-up.
    warm_up_pages: u64,
    transactions: u64,
    begun: Cell<u64>,
    /// Counters and time when the warm-up was over.
    start: Cell<Option<(Counters, u64)>>,
}

#[derive(Clone, Copy)]
struct Counters {
    host: HostStatistics,
    cleanings: u64,
    copied_pages: u64,
    share_copied_pages: u64,
    one_log: Cleaned,
}

/// Runs `case` with the engine in `form`.
pub(super) fn measure(form: Form, case: Case, size: Size, seed: u64) -> Result<Outcome> {
    Virtual::alone(format!("{}, {case}", form.name()), |runtime| async move {
        measure_on(&runtime, form, case, size, seed).await
    })
}

async fn measure_on(
    runtime: &Virtual,
    form: Form,
    case: Case,
    size: Size,
    seed: u64,
) -> Result<Outcome> {
    let drive_pages = DRIVE_PAGES / size.scale_down;
    let config = DeviceConfig::parse(&format!("openssd:pages={drive_pages}"))?;
    let device: Rc<Device> = config.build(runtime, seed).await?;
    let slots = (drive_pages as f64 * (1.0 + OVER_PROVISIONING)) as u64;
    let block_slots = config.nand.geometry.planes() * config.nand.geometry.slots_per_block();
    let one_log = OneLog::new(drive_pages, slots, block_slots);
    let watched = Rc::new(Watched::new(Rc::clone(&device), one_log));
    let page_units = u64::from(case.page_kib / 4);
    let database_pages = DATABASE_PAGES / size.scale_down / page_units;
    let pool_units = f64::from(case.buffer_megabytes) * MEGABYTE_PAGES / size.scale_down as f64;
    let pool_pages = pool_units as u32 / page_units as u32;
    let options = PageOptions {
        form,
        database_pages,
        device_pages_per_page: page_units as u32,
        pool_pages,
        // A small pool has no more to flush at once.
        batch_pages: size.batch_pages.min(pool_pages / 4),
        metadata_per_page: METADATA_PER_PAGE,
        metadata_pages: (JOURNAL_PAGES / size.scale_down) as u32,
    };
    let engine = PageLoad::create(runtime, &watched, options).await?;
    let clients = Rc::new(Clients {
        runtime: runtime.clone(),
        engine: Rc::clone(&engine),
        device,
        watched,
        bench: RefCell::new(LinkBench::with_page_size(database_pages, page_units, THETA, seed)),
        warm_up_pages: (drive_pages as f64 * size.warm_up_fills) as u64,
        transactions: size.transactions,
        begun: Cell::new(0),
        start: Cell::new(None),
    });
    let client = |_| {
        let clients = Rc::clone(&clients);
        async move { clients.serve().await }
    };
    spawn_all(runtime, "client", (0..CLIENTS).map(client)).await?;
    let outcome = clients.outcome()?;
    engine.close().await?;
    Ok(outcome)
}

impl Clients {
    async fn serve(&self) -> Result<()> {
        let mut accesses = Vec::new();
        loop {
            if self.start.get().is_none() {
                if self.engine.statistics().pages_written() >= self.warm_up_pages {
                    self.start.set(Some((self.counters(), self.runtime.now_ns())));
                }
            } else if self.begun.get() == self.transactions {
                return Ok(());
            } else {
                self.begun.set(self.begun.get() + 1);
            }
            accesses.clear();
            self.bench.borrow_mut().transaction(&mut accesses);
            for access in &accesses {
                match *access {
                    PageEvent::Read { page, .. } => self.engine.access(page, false).await?,
                    PageEvent::Write { page, .. } => self.engine.access(page, true).await?,
                    PageEvent::Trim { .. } | PageEvent::Commit => {}
                }
            }
        }
    }

    fn counters(&self) -> Counters {
        let ftl = self.device.device().ftl().statistics();
        Counters {
            host: self.engine.statistics(),
            cleanings: ftl.zones_cleaned,
            copied_pages: ftl.pages_moved,
            share_copied_pages: ftl.pages_share_copied,
            one_log: self.watched.cleaned(),
        }
    }

    fn outcome(&self) -> Result<Outcome> {
        let Some((start, start_ns)) = self.start.get() else {
            return Err(Error::new(ErrorKind::Corrupt, "the warm-up never ended"));
        };
        let end = self.counters();
        let seconds = (self.runtime.now_ns() - start_ns) as f64 / 1e9;
        Ok(Outcome {
            host: end.host.since(&start.host),
            cleanings: end.cleanings - start.cleanings,
            copied_pages: end.copied_pages - start.copied_pages,
            share_copied_pages: end.share_copied_pages - start.share_copied_pages,
            one_log: end.one_log.since(&start.one_log),
            throughput: self.transactions as f64 / seconds,
        })
    }
}
