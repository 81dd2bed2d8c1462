//! `tantalum-repro`: the command `tantalum repro`.
#![deny(clippy::print_stdout)]

mod page;
mod repro;
mod summary;
#[cfg(test)]
mod tests;

use clap::{CommandFactory, Parser};
use std::process::ExitCode;
use tantalum_console::programs::Documents;
use tantalum_console::{AFTER_HELP, Verdict};

/// Simulated devices are many small pieces of memory (docs/benchmarks.md has what this allocator gains).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The papers, measured again.
#[derive(Parser, Debug)]
#[command(name = "tantalum", bin_name = "tantalum", version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Repro(repro::Args),
    #[command(flatten)]
    Documents(Documents),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    tantalum_console::run(|| run(&cli.command))
}

fn run(command: &Command) -> anyhow::Result<Verdict> {
    match command {
        Command::Repro(args) => repro::run(args),
        Command::Documents(documents) => documents.run(Cli::command(), "tantalum-repro"),
    }
}
