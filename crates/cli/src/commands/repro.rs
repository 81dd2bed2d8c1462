//! `tantalum repro NAME`: a paper's figures and tables, measured again.
use super::repro_page;
use super::repro_summary::Outcome;
use crate::Verdict;
use crate::common::OutputArgs;
use crate::interruption;
use crate::progress::Progress;
use std::path::{Path, PathBuf};
use tantalum_base::{ErrorKind, Result};
use tantalum_report::{Report, Table, Value, config_hash, schema};
use tantalum_repro::dissertation::live::casa_live;
use tantalum_repro::engines::live::engines_live;
use tantalum_repro::{Experiment, Row, Scale};

/// Measure a paper's figures again, beside the paper's own numbers
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Which paper or comparison: durassd, share, txcache, cfdc, energy, casa, cleaning, devices,
    /// layers, engines, or all
    name: String,
    /// small: seconds, small devices, more noise; full: minutes; paper: as many requests as there
    #[arg(long, default_value = "full", value_name = "SCALE")]
    scale: String,
    /// Seed of everything that is left to chance
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// With casa: also detect the cost ratio of the device under this new file, or of this block
    /// device, whose content is lost. With engines: also run them live on this new file. These rows
    /// differ from run to run
    #[arg(long, value_name = "FILE")]
    live: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER_HELP: &str = "docs/experiments.md says where each is discussed. After Ctrl-C or SIGTERM the rows that were \
measured by then are printed, and said to be these; the exit status is 130 or 143. A second one ends it at once.

Examples:
  tantalum repro durassd --scale small
  tantalum repro share --format json";

/// Columns that people are shown as text; programs get all of them.
const SHOWN: [&str; 8] =
    ["figure", "case", "metric", "unit", "paper", "measured", "ratio", "calibrated"];

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format()?;
    let scale = Scale::parse(&args.scale)?;
    let experiments = Experiment::by_name(&args.name)?;
    let live = args.live.as_deref();
    anyhow::ensure!(
        live.is_none() || ["casa", "engines"].contains(&&*args.name),
        "--live detects a cost ratio, which is part of casa, or runs engines"
    );
    interruption::watch()?;
    let progress = Progress::named("cases measured");
    let mut table = Table::new(schema::REPRO);
    // Which experiment a row is of people see where there are several, and first.
    let mut shown = SHOWN.to_vec();
    if experiments.len() > 1 {
        shown.insert(0, "experiment");
    }
    let mut outcome = Outcome::new();
    let mut sections = Vec::new();
    let mut all = Vec::new();
    let mut whole = 0;
    for experiment in experiments {
        let mut rows = Vec::new();
        let measured = measure(experiment, scale, args.seed, live, &progress, &mut rows);
        rows.iter().for_each(|row| push(&mut table, experiment.name, row));
        outcome.add(experiment, &rows);
        let title = (experiments.len() > 1).then_some(experiment.title);
        sections.extend(repro_page::sections(title, &rows));
        all.extend(rows);
        match measured {
            Err(error) if error.kind() == ErrorKind::Interrupted => break,
            measured => measured?,
        }
        whole += 1;
    }
    drop(progress);
    let config = config_hash([format!("repro={}", args.name), format!("scale={}", scale.name())]);
    let mut report = Report::new(args.seed, config, table);
    report.shown = shown;
    outcome.tell(&mut report);
    sections.extend(outcome.section());
    interruption::mark(&mut report, whole, Some(experiments.len() as u64), "experiments");
    let title = match experiments {
        [one] => one.title.to_owned(),
        _ => "The papers' figures, measured again".to_owned(),
    };
    let page = repro_page::page(title, scale, &all, sections);
    args.output.print_page(&report, format, &page)?;
    Ok(interruption::verdict(&report))
}

/// Adds the rows of `experiment` to `rows`, those that are whole also where it is interrupted.
fn measure(
    experiment: &Experiment,
    scale: Scale,
    seed: u64,
    live: Option<&Path>,
    progress: &Progress,
    rows: &mut Vec<Row>,
) -> Result<()> {
    (experiment.run)(scale, seed, &mut |case| progress.begin(case), rows)?;
    let mut begin = |case: &str| progress.begin(case);
    match live {
        Some(path) if experiment.name == "engines" => {
            engines_live(path, scale, seed, &mut begin, rows)
        }
        Some(path) => casa_live(path, scale, &mut begin).map(|live| rows.extend(live)),
        None => Ok(()),
    }
}

fn push(table: &mut Table, experiment: &str, row: &Row) {
    let place = row.place.as_ref();
    // As many digits as mean something, and the bytes do not depend on the last bit.
    let rounded = |value: f64| repro_page::rounded(value, 6);
    table.push_named([
        ("figure", row.figure.into()),
        ("case", row.case.as_str().into()),
        ("metric", row.metric.into()),
        ("unit", row.unit.into()),
        ("paper", row.paper.into()),
        ("measured", rounded(row.measured)),
        ("ratio", row.ratio().map_or(Value::Null, rounded)),
        ("calibrated", row.calibrated.into()),
        ("experiment", experiment.into()),
        ("panel", place.map(|place| place.panel.as_str()).into()),
        ("series", place.map(|place| place.series.as_str()).into()),
        ("axis", place.map(|place| place.axis).into()),
        ("x", place.map(|place| repro_page::value_of(&place.x)).unwrap_or(Value::Null)),
    ]);
}
