//! `tantalum-lab`, the laboratory: commands of `tantalum` that measure and compare.
//!
//! ```text
//! commands   one file per command
//! common     options that several commands take: traces, sizes
//! help       the names that options take, and the parameters of each
//! work       progress of many runs
//! ```
#![deny(clippy::print_stdout)]

mod commands;
mod common;
mod help;
#[cfg(test)]
mod tests;
mod work;

use clap::{CommandFactory, Parser};
use std::process::ExitCode;
use tantalum_console::output::print_line;
use tantalum_console::{AFTER_HELP, Verdict};

/// Pages, maps and queues are many small allocations with random access. This allocator requests huge pages on kernels
/// that grant them on request, so that a lookup seldom waits for the page table as well (docs/benchmarks.md has the
/// gain).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The laboratory of Tantalum: traces, policies and simulated devices.
#[derive(Parser, Debug)]
#[command(name = "tantalum", bin_name = "tantalum", version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    if let Some(told) = help::asked(std::env::args_os().skip(1)) {
        return tantalum_console::run(|| Ok(print_line(&told).map(|()| Verdict::Good)?));
    }
    let cli = Cli::parse();
    tantalum_console::run(|| cli.command.run(Cli::command()))
}
