//! `tantalum repro NAME`: a paper's figures and tables, measured again.
use super::page;
use super::summary::Outcome;
use anyhow::bail;
use std::path::PathBuf;
use std::slice;
use tantalum_base::ErrorKind;
use tantalum_console::Verdict;
use tantalum_console::interruption;
use tantalum_console::output::{OutputArgs, threads};
use tantalum_console::progress::Progress;
use tantalum_replay::side_by_side::cores;
use tantalum_report::{Report, Table, Value, config_hash, schema};
use tantalum_repro::dissertation::live::{self as casa, casa_live};
use tantalum_repro::engines::live::{self as engines, engines_live};
use tantalum_repro::engines::{Load, under};
use tantalum_repro::{Experiment, Measured, Row, Scale, measure_all};

/// Measure a paper's figures again, beside the paper's own numbers
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Which paper or comparison: durassd, share, txcache, cfdc, energy, casa, cleaning, devices,
    /// layers, write-cache, tiers, nfa, engines, or all
    name: String,
    /// small: seconds, small devices, more noise; full: minutes; paper: as many requests as there
    #[arg(long, default_value = "full", value_name = "SCALE")]
    scale: String,
    /// Seed of everything that is left to chance
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The small scale, with seed 1, as a check: what a paper says beside its numbers must hold, but for what is known not to
    /// hold at that scale, which must not; otherwise the exit status is 1
    #[arg(long, conflicts_with_all = ["scale", "seed", "live", "load"])]
    quick: bool,
    /// Experiments to run at a time at most, as many as there are cores without it; the outcome does not depend on it
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
    /// With casa: also detect the cost ratio of the device under this new file, or of this block
    /// device, whose content is lost. With engines: also run them live on this new file. These rows
    /// differ from run to run
    #[arg(long, value_name = "FILE")]
    live: Option<PathBuf>,
    /// With engines: what they are put under, ycsb-a (without it) to ycsb-f, and tpcc, pgbench or linkbench, for engines
    /// of rows alone
    #[arg(long, value_name = "LOAD")]
    load: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER_HELP: &str = "docs/experiments.md says where each is discussed. After Ctrl-C or SIGTERM the rows that were \
measured by then are printed, and said to be these; the exit status is 130 or 143. A second one ends it at once.

Examples:
  tantalum repro durassd --scale small
  tantalum repro share --format json
  tantalum repro engines --load tpcc
  tantalum repro all --quick
  tantalum repro all --report all.html --format json > all.json";

/// Columns that people are shown as text; programs get all of them.
const SHOWN: [&str; 8] =
    ["figure", "case", "metric", "unit", "paper", "measured", "ratio", "calibrated"];

/// Those of them that a comparison without a paper has nothing in.
const OF_PAPERS: [&str; 3] = ["paper", "ratio", "calibrated"];

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format()?;
    let scale = if args.quick { Scale::Small } else { Scale::parse(&args.scale)? };
    let load = args.load.as_deref().map_or(Ok(Load::DEFAULT), Load::parse)?;
    let name = args.name.to_ascii_lowercase().replace('_', "-");
    let experiments = match (&args.load, name.as_str()) {
        (None, name) => Experiment::by_name(name)?,
        (Some(_), "engines") => slice::from_ref(under(load)),
        _ => bail!("--load is what the engines of the experiment engines are put under"),
    };
    match (&args.live, name.as_str()) {
        (None, _) => {}
        (Some(path), "casa") => casa::check(path)?,
        (Some(path), "engines") => engines::check(path, scale)?,
        _ => bail!("--live detects a cost ratio, which is part of casa, or runs engines"),
    }
    interruption::watch()?;
    let measured = measure(args, experiments, (load, scale))?;
    let mut table = Table::new(schema::REPRO);
    let mut outcome = Outcome::new(scale, args.quick);
    let mut sections = Vec::new();
    for (experiment, Measured { rows, is_whole }) in experiments.iter().zip(&measured) {
        rows.iter().for_each(|row| push(&mut table, experiment.name, row));
        let title = (experiments.len() > 1).then_some(experiment.title);
        sections.extend(page::sections(title, rows));
        outcome.add(experiment, rows, *is_whole);
    }
    let mut config = vec![format!("repro={name}"), format!("scale={}", scale.name())];
    if load != Load::DEFAULT {
        config.push(format!("load={}", load.name()));
    }
    if args.live.is_some() {
        config.push("live".to_owned());
    }
    let config = config_hash(config);
    let mut report = Report::new(args.seed, config, table);
    report.shown = SHOWN.to_vec();
    // Which experiment a row is of people see where there are several, and first.
    if experiments.len() > 1 {
        report.shown.insert(0, "experiment");
    }
    if !measured.iter().flat_map(|measured| &measured.rows).any(|row| row.paper.is_some()) {
        report.shown.retain(|column| !OF_PAPERS.contains(column));
    }
    outcome.tell(&mut report);
    sections.extend(outcome.section());
    mark(&mut report, &measured);
    let title = match experiments {
        [one] => one.title.to_owned(),
        _ => "The papers' figures, measured again".to_owned(),
    };
    let rows: Vec<Row> = measured.into_iter().flat_map(|measured| measured.rows).collect();
    let drawn = page::page(title, outcome.paragraphs(), &rows, sections);
    args.output.print_page(&report, format, &drawn)?;
    Ok(match interruption::verdict(&report) {
        Verdict::Good if outcome.surprises() > 0 => Verdict::FoundWrong,
        verdict => verdict,
    })
}

/// The rows of each of `experiments`, those that are whole also where it is interrupted.
fn measure(
    args: &Args,
    experiments: &[Experiment],
    (load, scale): (Load, Scale),
) -> tantalum_base::Result<Vec<Measured>> {
    let progress = Progress::named("cases measured");
    let threads = args.threads.unwrap_or_else(cores);
    let mut measured =
        measure_all(experiments, scale, args.seed, threads, &|experiment, case| match case {
            Some(case) => progress.begin(experiment.name, case),
            None => progress.end(experiment.name),
        })?;
    if let (Some(path), [experiment], [Measured { rows, is_whole: is_whole @ true }]) =
        (&args.live, experiments, &mut measured[..])
    {
        let mut begin = |case: &str| progress.begin(experiment.name, case);
        let live = match experiment.name {
            "engines" => engines_live(path, (load, scale), args.seed, &mut begin, rows),
            _ => casa_live(path, scale, &mut begin).map(|live| rows.extend(live)),
        };
        match live {
            Err(error) if error.kind() == ErrorKind::Interrupted => *is_whole = false,
            live => live?,
        }
    }
    Ok(measured)
}

/// Says how much of it there is, where it was interrupted.
fn mark(report: &mut Report, measured: &[Measured]) {
    let whole = measured.iter().filter(|measured| measured.is_whole).count() as u64;
    match measured {
        [Measured { rows, is_whole: false }] => {
            interruption::mark(report, rows.len() as u64, None, "rows");
        }
        all => interruption::mark(report, whole, Some(all.len() as u64), "experiments"),
    }
}

fn push(table: &mut Table, experiment: &str, row: &Row) {
    let place = row.place.as_ref();
    // As many digits as mean something, and the bytes do not depend on the last bit.
    let rounded = |value: f64| page::rounded(value, 6);
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
        ("x", place.map(|place| page::value_of(&place.x)).unwrap_or(Value::Null)),
    ]);
}
