//! `tantalum repro NAME`: a paper's figures and tables, measured again.
use crate::Verdict;
use crate::common::OutputArgs;
use crate::interruption;
use crate::progress::Progress;
use std::path::{Path, PathBuf};
use tantalum_base::{ErrorKind, Result};
use tantalum_report::html::Spread;
use tantalum_report::{Page, Plot, Report, Table, Value, config_hash, schema};
use tantalum_repro::dissertation::live::casa_live;
use tantalum_repro::{Experiment, Row, Scale};

/// Measure a paper's figures again, beside the paper's own numbers
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Which paper or comparison: durassd, share, txcache, cfdc, energy, casa, cleaning, devices,
    /// layers, or all
    name: String,
    /// small: seconds, small devices, more noise; full: minutes; paper: as many requests as there
    #[arg(long, default_value = "full", value_name = "SCALE")]
    scale: String,
    /// Seed of everything that is left to chance
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// With casa: also detect the cost ratio of the device under this new file, or of this block
    /// device, whose content is lost; its rows differ from run to run
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

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format()?;
    let scale = Scale::parse(&args.scale)?;
    let experiments = Experiment::by_name(&args.name)?;
    let live = args.live.as_deref();
    anyhow::ensure!(
        live.is_none() || args.name == "casa",
        "--live detects a cost ratio, which is part of casa"
    );
    interruption::watch()?;
    let progress = Progress::named("cases measured");
    let mut table = Table::new(schema::REPRO);
    // Which experiment a row is of people see where there are several, and first.
    let mut shown: Vec<&str> = schema::REPRO.iter().map(|column| column.key).collect();
    shown.pop();
    if experiments.len() > 1 {
        shown.insert(0, "experiment");
    }
    let mut whole = 0;
    for experiment in experiments {
        let mut rows = Vec::new();
        let measured = measure(experiment, scale, args.seed, live, &progress, &mut rows);
        rows.iter().for_each(|row| push(&mut table, experiment.name, row));
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
    interruption::mark(&mut report, whole, Some(experiments.len() as u64), "experiments");
    args.output.print_page(&report, format, &page(&args.name))?;
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
    if let Some(path) = live {
        rows.extend(casa_live(path, scale, &mut |case| progress.begin(case))?);
    }
    Ok(())
}

fn push(table: &mut Table, experiment: &str, row: &Row) {
    // Six significant digits: as many as mean something, and the bytes do not depend on the last bit.
    let rounded = |value: f64| {
        let scale = 10f64.powi(5 - value.abs().max(1e-9).log10().floor() as i32);
        Value::rounded(value, scale)
    };
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
    ]);
}

/// The page around the rows.
fn page(name: &str) -> Page {
    Page {
        title: format!("{name}: a paper's figures, measured again"),
        paragraphs: vec![
            "Each point is a figure of the paper that it states as a number: its own value across, \
             ours up. On the diagonal the two are equal. Rows without a paper's value are in the \
             table alone."
                .to_owned(),
        ],
        plots: vec![Plot {
            title: "Paper and measured",
            x: "paper",
            y: "measured",
            series: &["figure"],
            panels: &["experiment", "metric", "unit"],
            x_spread: Spread::Log,
            y_spread: Spread::Log,
            lines: false,
        }],
        ..Page::default()
    }
}
