//! PostgreSQL under pgbench, with full-page writes and without (section 5.3.1, "The Effect of SHARE on IO Activities").
//!
//! The paper states only the drive, the benchmark and PostgreSQL's version, 9.4, of this experiment. Everything else here is the
//! default of that version: pages of 8 KiB, a buffer of 128 MB, a log beside the data, and a checkpoint after three of its segments
//! of 16 MB. The database, 1.5 GB, and the 16 clients are those of the paper's other measurements in that section. The time between
//! checkpoints determines the cost of full pages, so there are other distances, and a setup with the log on a drive of its own, as
//! section 5.1 has it for MySQL.
use std::rc::Rc;
use tantalum_base::{Result, Stamp};
use tantalum_hosts::records::Remembered;
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::ValueStamp;
use tantalum_hosts::wal_engine::{
    Drives, EngineStatistics, WalEngine, WalForm, WalOptions, WalPageOptions,
};
use tantalum_hosts::workload::LoopOptions;
use tantalum_hosts::workload::pgbench::{Pgbench, Population, TREES};
use tantalum_models::{DeviceSpec, SimulatedDevice};
use tantalum_replay::side_by_side::{cores, side_by_side};
use tantalum_replay::work::Work;
use tantalum_runtime::{LifeCycle, Virtual};

use super::super::{Place, Progress, Row, Scale};
use super::link_bench::{CLIENTS, DRIVE_PAGES, MEGABYTE_PAGES};

/// Its section in the paper.
pub(super) const FIGURE: &str = "Section 5.3.1";

/// Its statements: "approximately doubled", and "roughly same".
const TIMES_FULL_PAGES: f64 = 2.0;
const LOG_SAVED_OVER_DATA: f64 = 1.0;

/// PostgreSQL 9.4's `checkpoint_segments`, times its segments of 16 MB, and its `shared_buffers`.
const DEFAULT_DISTANCE_MB: u32 = 48;
const BUFFER_MB: f64 = 128.0;

/// pgbench's scale for the 1.5 GB of the databases of section 5.3.1.
const BRANCHES: u64 = 100;
/// The part of the drive that the database may occupy: its rows, half as much again, and the history.
const DATABASE_SHARE: f64 = 0.5;
/// PostgreSQL's pages have 8 KiB.
const DEVICE_PAGES_PER_PAGE: u32 = 2;
/// Number of pages that are written home together.
const BATCH_PAGES: u32 = 32;
/// Number of transactions between two checks of the ageing.
const AGEING_STEP: u64 = 1_000;

type Device = SimulatedDevice<Stamp>;
type Codec = Remembered<Block<ValueStamp>>;
type Engine = Rc<WalEngine<Virtual, Device, ValueStamp, Codec>>;

/// The sizes of a run. Drive, accounts, log and buffer are a fraction of the originals; the numbers of branches and tellers, at which
/// clients wait for each other, are the same.
#[derive(Clone, Copy, Debug)]
struct Size {
    scale_down: u64,
    /// Amount of log between checkpoints, in megabytes before scaling.
    distances_mb: &'static [u32],
    /// The load runs until the drive's capacity was written this many times.
    aged_fills: f64,
    transactions: u64,
}

impl Size {
    fn of(scale: Scale) -> Size {
        match scale {
            // A log of a sixteen-megabyte distance would be too small there.
            Scale::Small => Size {
                scale_down: 64,
                distances_mb: &[48, 144, 432],
                aged_fills: 1.5,
                transactions: 6_000,
            },
            Scale::Full | Scale::Paper => Size {
                scale_down: 16,
                distances_mb: &[16, 48, 144, 432],
                aged_fills: 2.5,
                transactions: 40_000,
            },
        }
    }

    fn drive_pages(&self) -> u64 {
        DRIVE_PAGES / self.scale_down
    }

    /// Number of device pages for this many megabytes, scaled.
    fn pages(&self, megabytes: f64) -> f64 {
        megabytes * MEGABYTE_PAGES / self.scale_down as f64
    }

    /// Number of device pages of the log: a checkpoint is due when half of it is used.
    fn log_pages(&self, distance_mb: u32) -> u64 {
        (2.0 * self.pages(f64::from(distance_mb))) as u64
    }

    fn population(&self) -> Population {
        let all = Population::new(BRANCHES);
        Population { accounts_per_branch: all.accounts_per_branch / self.scale_down, ..all }
    }

    fn options(&self, case: &Case) -> WalOptions {
        let page_units = f64::from(DEVICE_PAGES_PER_PAGE);
        let pages = WalPageOptions {
            form: case.form,
            database_pages: (self.drive_pages() as f64 * DATABASE_SHARE / page_units) as u64,
            device_pages_per_page: DEVICE_PAGES_PER_PAGE,
            pool_pages: (self.pages(BUFFER_MB) / page_units) as u32,
            batch_pages: BATCH_PAGES,
            metadata_per_page: 0.0,
            metadata_pages: 0,
        };
        WalOptions { pages, log_pages: self.log_pages(case.distance_mb), trees: TREES }
    }
}

/// A case of the comparison.
#[derive(Clone, Copy, Debug)]
struct Case {
    form: WalForm,
    distance_mb: u32,
    /// Whether the log is on a server drive instead of beside the data.
    log_apart: bool,
}

/// The forms that the paper's drive supports, in the order of rows.
const FORMS: [WalForm; 3] = [WalForm::FullPages, WalForm::NoFullPages, WalForm::Share];

/// The result of a run.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// Transactions per second.
    throughput: f64,
    /// Device pages written per transaction: to the log, and of data.
    log_pages: f64,
    data_pages: f64,
}

/// Measures every distance with the log beside the data, then PostgreSQL's default with the log apart.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    progress("PostgreSQL, pgbench");
    let size = Size::of(scale);
    let settings = size.distances_mb.iter().map(|distance| (*distance, false));
    let settings: Vec<_> = settings.chain([(DEFAULT_DISTANCE_MB, true)]).collect();
    let case = |(distance_mb, log_apart)| FORMS.map(|form| Case { form, distance_mb, log_apart });
    let cases: Vec<Case> = settings.iter().copied().flat_map(case).collect();
    let measured =
        side_by_side(&cases, cores(), &Work::default(), |case| measure(*case, size, seed))?;
    for (cases, outcomes) in cases.chunks(FORMS.len()).zip(measured.chunks(FORMS.len())) {
        let outcomes: Option<Vec<Outcome>> = outcomes.iter().copied().collect();
        rows.extend(outcomes.iter().flat_map(|outcomes| rows_of(cases, outcomes)));
    }
    tantalum_runtime::supervision::check_stop()
}

fn measure(case: Case, size: Size, seed: u64) -> Result<Outcome> {
    let what = format!("PostgreSQL, {}", case.name(case.form.name()));
    Virtual::alone(what, move |runtime| async move {
        let build = async |text: String| -> Result<Rc<Device>> {
            Ok(DeviceSpec::parse(&text)?.build(&runtime, seed).await?.device)
        };
        let device = build(format!("openssd:pages={}", size.drive_pages())).await?;
        let codecs = [(); 2].map(|()| Rc::new(Codec::default()));
        let (mut drives, mut log) = (Drives::new(&device, &codecs[0]), None);
        if case.log_apart {
            let pages = 4 * size.log_pages(case.distance_mb);
            let apart = log.insert(build(format!("durassd:pages={pages}")).await?);
            drives = drives.with_log_on(apart, &codecs[1], seed);
        }
        let engine = WalEngine::create_on(&runtime, &drives, size.options(&case)).await?;
        let pgbench = Pgbench::new(size.population())?;
        pgbench.load(&engine).await?;
        let outcome = serve(&runtime, (&engine, &pgbench), size, seed).await?;
        pgbench.check(&engine).await?;
        engine.close().await?;
        device.close().await?;
        if let Some(log) = log {
            log.close().await?;
        }
        Ok(outcome)
    })
}

/// Ages the drive by the load, and measures it.
async fn serve(
    runtime: &Virtual,
    (engine, pgbench): (&Engine, &Rc<Pgbench>),
    size: Size,
    seed: u64,
) -> Result<Outcome> {
    let options = LoopOptions { clients: CLIENTS, warm_up: 0, operations: AGEING_STEP };
    let written = |counts: &EngineStatistics| counts.log_pages + counts.pages.pages_written();
    let aged = (size.drive_pages() as f64 * size.aged_fills) as u64;
    let mut seed = seed;
    while written(&engine.statistics()) < aged {
        pgbench.run(runtime, engine, options, seed).await?;
        seed = seed.wrapping_add(1 << 32);
    }
    let before = engine.statistics();
    let options = LoopOptions { operations: size.transactions, ..options };
    let report = pgbench.run(runtime, engine, options, seed).await?;
    let after = engine.statistics();
    let each = |pages: u64| pages as f64 / size.transactions as f64;
    Ok(Outcome {
        throughput: report.throughput(),
        log_pages: each(after.log_pages - before.log_pages),
        data_pages: each(after.pages.since(&before.pages).pages_written()),
    })
}

impl Case {
    /// Its name in rows: `what`, the place of the log, the distance of checkpoints.
    fn name(&self, what: &str) -> String {
        let place = if self.log_apart { "on a drive of its own" } else { "beside the data" };
        format!("pgbench, a checkpoint each {} MB of log {place}, {what}", self.distance_mb)
    }

    fn row(
        &self,
        what: &str,
        metric: (&'static str, &'static str),
        paper: Option<f64>,
        measured: f64,
    ) -> Row {
        let panel = if self.log_apart { LOG_APART } else { LOG_BESIDE };
        let along = ("log from checkpoint to checkpoint, MB", self.distance_mb);
        Row::new(FIGURE, self.name(what), metric, paper, measured).at(panel, what, along)
    }

    /// Whether it has PostgreSQL's default settings.
    fn is_default(&self) -> bool {
        self.distance_mb == DEFAULT_DISTANCE_MB && !self.log_apart
    }
}

/// The drawings: by the place of the log.
const LOG_BESIDE: &str = "log beside the data";
const LOG_APART: &str = "log on a drive of its own";

/// Series of ratios to the run with full pages, and their metrics: throughput, and the saved log pages over the written data pages.
pub(super) const OFF_OVER_ON: &str = "FPW-Off over FPW-On";
pub(super) const SHARE_OVER_ON: &str = "SHARE over FPW-On";
pub(super) const THROUGHPUT: &str = "throughput";
pub(super) const LOG_SAVED: &str = "pages of log saved over pages of data written";

/// The name in rows of PostgreSQL with its default settings.
pub(super) fn default_case(what: &str) -> String {
    Case { form: WalForm::FullPages, distance_mb: DEFAULT_DISTANCE_MB, log_apart: false }.name(what)
}

/// Whether a row compares runs without and with full pages, with the log beside the data.
pub(super) fn is_off_over_on_beside_the_data(row: &Row) -> bool {
    let is_there = |place: &Place| place.panel == LOG_BESIDE && place.series == OFF_OVER_ON;
    row.place.as_ref().is_some_and(is_there)
}

/// The rows of one setting in the three [`FORMS`].
fn rows_of(cases: &[Case], outcomes: &[Outcome]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (case, outcome) in cases.iter().zip(outcomes) {
        let numbers = [
            ((THROUGHPUT, "tps"), outcome.throughput),
            (("pages of log written a transaction", "pages"), outcome.log_pages),
            (("pages of data written a transaction", "pages"), outcome.data_pages),
        ];
        rows.extend(numbers.map(|(what, number)| case.row(case.form.name(), what, None, number)));
    }
    let (case, [on, off, share]) = (&cases[0], [0, 1, 2].map(|at| outcomes[at]));
    let paper = |number| case.is_default().then_some(number);
    let (times, over) = ((THROUGHPUT, "times"), |of: Outcome| of.throughput / on.throughput);
    rows.push(case.row(OFF_OVER_ON, times, paper(TIMES_FULL_PAGES), over(off)));
    rows.push(case.row(SHARE_OVER_ON, times, None, over(share)));
    let saved = (on.log_pages - off.log_pages) / off.data_pages;
    let what = (LOG_SAVED, "times");
    rows.push(case.row(OFF_OVER_ON, what, paper(LOG_SAVED_OVER_DATA), saved));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_hosts::workload::pgbench::Table;

    /// A scaled-down database has fewer accounts, and the same number of branches and tellers, at which transactions meet.
    #[test]
    fn the_database_is_scaled_and_its_branches_are_not() {
        let [small, full] = [Scale::Small, Scale::Full].map(|scale| Size::of(scale).population());
        assert_eq!((small.branches, full.branches), (BRANCHES, BRANCHES));
        assert_eq!(full.rows(Table::Accounts), 625_000);
        assert_eq!(small.rows(Table::Accounts), 156_200);
    }
}
