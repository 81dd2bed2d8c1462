//! `tantalum repro NAME`: a paper's figures and tables, measured again.
use crate::Verdict;
use crate::common::OutputArgs;
use crate::progress::Progress;
use tantalum_lab::experiments::{Experiment, Row, Scale};
use tantalum_report::{Column, OutputFormat, Report, Table, Value, config_hash, schema};

/// Measure a paper's figures again, beside the paper's own numbers
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Which paper, or all (an unknown name lists them)
    name: String,
    /// small: seconds, small devices, more noise; full: minutes
    #[arg(long, default_value = "full", value_name = "SCALE")]
    scale: String,
    /// Seed of everything that is left to chance
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format()?;
    let scale = Scale::parse(&args.scale)?;
    let experiments = Experiment::by_name(&args.name)?;
    let progress = Progress::named("cases measured");
    let mut table = Table::new(&columns(format, experiments.len()));
    for experiment in experiments {
        let rows = (experiment.run)(scale, args.seed, &mut |case| progress.begin(case))?;
        rows.iter().for_each(|row| push(&mut table, experiment.name, row));
    }
    progress.finish();
    let config = config_hash([format!("repro={}", args.name), format!("scale={}", scale.name())]);
    args.output.print(&Report::new(args.seed, config, table), format)?;
    Ok(Verdict::Good)
}

/// People see which experiment a row is of where there are several, and first; programs always.
fn columns(format: OutputFormat, experiments: usize) -> Vec<Column> {
    let mut columns = schema::REPRO.to_vec();
    if format == OutputFormat::Table {
        let experiment = columns.pop();
        if experiments > 1 {
            columns.splice(0..0, experiment);
        }
    }
    columns
}

fn push(table: &mut Table, experiment: &str, row: &Row) {
    // Six significant digits: as many as mean something, and the bytes do not depend on the last bit.
    let rounded = |value: f64| {
        let scale = 10f64.powi(5 - value.abs().max(1e-9).log10().floor() as i32);
        Value::Real((value * scale).round() / scale)
    };
    let named = [
        ("figure", row.figure.into()),
        ("case", row.case.as_str().into()),
        ("metric", row.metric.into()),
        ("unit", row.unit.into()),
        ("paper", row.paper.into()),
        ("measured", rounded(row.measured)),
        ("ratio", row.ratio().map_or(Value::Null, rounded)),
        ("calibrated", row.calibrated.into()),
        ("experiment", experiment.into()),
    ];
    let shown = table.columns().to_vec();
    table.push_named(named.into_iter().filter(|(key, _)| shown.iter().any(|at| at.key == *key)));
}
