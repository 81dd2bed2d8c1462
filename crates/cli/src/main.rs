//! `tantalum`, the command line: volumes and their servers. Commands of other programs are handed over to those
//! programs.
//!
//! ```text
//! commands   one file per command
//! ```
// `println!` panics if the reader of the output has gone, such as `head`: see `tantalum_console::output::print_line`.
#![deny(clippy::print_stdout)]

mod commands;
#[cfg(test)]
mod documented;

use clap::Parser;
use std::process::ExitCode;
use tantalum_console::AFTER_HELP;
use tantalum_console::programs::{Elsewhere, having};

/// Pages, maps and queues are many small allocations with random access. This allocator requests huge pages, so that a
/// lookup seldom waits for the page table as well (docs/history/benchmarks.md has the gain).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A durable, transactional flash engine and its simulator.
#[derive(Parser, Debug)]
#[command(name = "tantalum", version = env!("TANTALUM_VERSION"), after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    // If another program has the command of `tantalum help NAME`, that program prints the help.
    let words: Vec<_> = std::env::args_os().collect();
    if let [_, help, name] = &words[..]
        && help == "help"
        && let Some(name) = name.to_str().filter(|name| having(name).is_some())
    {
        return tantalum_console::run(|| Err(Elsewhere::help().run(name)));
    }
    let cli = Cli::parse();
    tantalum_console::run(|| cli.command.run())
}
