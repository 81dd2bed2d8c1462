//! `tantalum trace`: inspects, converts and generates traces.
mod convert;
mod generate;
mod out;
mod stat;

use tantalum_console::Verdict;

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
