//! `tantalum-crash`: the command `tantalum crash`.
#![deny(clippy::print_stdout)]

mod crash;
#[cfg(test)]
mod tests;

use clap::{CommandFactory, Parser};
use std::process::ExitCode;
use tantalum_console::programs::Documents;
use tantalum_console::{AFTER_HELP, Verdict};

/// Simulated devices are many small pieces of memory (docs/benchmarks.md has what this allocator gains).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The crash lab.
#[derive(Parser, Debug)]
#[command(name = "tantalum", bin_name = "tantalum", version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Crash(crash::Args),
    #[command(flatten)]
    Documents(Documents),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    tantalum_console::run(|| run(&cli.command))
}

fn run(command: &Command) -> anyhow::Result<Verdict> {
    match command {
        Command::Crash(args) => crash::run(args),
        Command::Documents(documents) => documents.run(Cli::command(), "tantalum-crash"),
    }
}
