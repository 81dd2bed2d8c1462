//! `tantalum`, the command line: volumes, and who serves them. Other commands it hands over to the programs that have them.
//!
//! ```text
//! commands   one file a command
//! ```
// `println!` panics where whoever reads the output has gone, as `head` does: see `tantalum_console::output::print_line`.
#![deny(clippy::print_stdout)]

mod commands;
#[cfg(test)]
mod documented;

use clap::Parser;
use std::process::ExitCode;
use tantalum_console::AFTER_HELP;
use tantalum_console::programs::{Elsewhere, having};

/// Pages, maps and queues are many small pieces of memory that are looked up in no order. This allocator asks for huge pages, so that
/// a lookup seldom waits for the page table as well (docs/history/benchmarks.md has the gain).
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
    // `tantalum help NAME` is a program's to tell, if another one has the command.
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
