//! `tantalum trace generate SPEC OUT`.
use super::out::{Out, format_of};
use crate::common::tell_written;
use anyhow::{Context, bail};
use std::path::PathBuf;
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_console::progress::Progress;
use tantalum_report::config_hash;
use tantalum_runtime::supervision;
use tantalum_trace::{AnyFormat, Generator, generate, writer};

/// Generate a trace, such as zipf:pages=1m,requests=10m,theta=1.0,writes=0.3,commit=8,seed=1
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Generator with its parameters; --list shows them
    #[arg(required_unless_present = "list")]
    spec: Option<String>,
    /// Output file: .zst and .gz compress, - is the standard output
    #[arg(required_unless_present = "list")]
    out: Option<PathBuf>,
    /// Format to write, as for trace convert
    #[arg(long, value_name = "FORMAT")]
    to: Option<String>,
    /// List the generators and their parameters
    #[arg(long, conflicts_with_all = ["spec", "out"])]
    list: bool,
}

const AFTER_HELP: &str =
    "The same text gives the same trace. docs/traces.md describes each generator.

Examples:
  tantalum trace generate --list
  tantalum trace generate zipf:pages=1m,requests=10m,writes=0.3,commit=8,seed=1 zipf.csv.zst";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    if args.list {
        print_line(&generate::list())?;
        return Ok(Verdict::Good);
    }
    let spec = args
        .spec
        .as_deref()
        .context("name a generator, such as zipf:pages=1m (--list prints all)")?;
    let out = args.out.as_deref().context("name the file of the trace after the generator")?;
    let (format, text) = format_of(args.to.as_deref(), out)?;
    let AnyFormat::Page(format) = format else {
        bail!("generators make traces of pages; {text} has bytes in volumes");
    };
    let generator = Generator::parse(spec)?;
    let seed = generator.seed();
    let to = Out::begin(out, &[])?;
    let progress = Progress::counter("events generated");
    let events = progress.count(generator).map(|event| supervision::check_stop().map(|()| event));
    let written = writer::write_all(to.writer(format, text)?, events);
    let events = to.end(written)?;
    let config = config_hash(["generate".to_owned(), format!("spec={spec}")]);
    tell_written(out, events, None, seed, &config);
    Ok(Verdict::Good)
}
