//! `tantalum trace`: inspects, converts and generates traces.
mod convert;
mod generate;
mod stat;

use std::io::ErrorKind;
use std::path::Path;
use tantalum_base::Error;
use tantalum_console::Verdict;

/// The error for a failure to write the trace to `out`. If the reader of the standard output has gone, such as `head`,
/// the error is a plain broken pipe, which is not reported.
fn failed_to_write(out: &Path, error: Error) -> anyhow::Error {
    let io = error.cause().and_then(|cause| cause.downcast_ref::<std::io::Error>());
    let reader_left = io.is_some_and(|io| io.kind() == ErrorKind::BrokenPipe);
    if out == Path::new("-") && reader_left {
        return std::io::Error::from(ErrorKind::BrokenPipe).into();
    }
    error.into()
}

/// Inspect, convert and generate traces (formats: docs/traces.md)
#[derive(clap::Subcommand, Debug)]
pub enum Command {
    Convert(convert::Args),
    Stat(stat::Args),
    Generate(generate::Args),
}

impl Command {
    /// Runs the command to its end.
    pub fn run(self) -> anyhow::Result<Verdict> {
        match self {
            Command::Convert(args) => convert::run(&args),
            Command::Stat(args) => stat::run(&args),
            Command::Generate(args) => generate::run(&args),
        }
    }
}
