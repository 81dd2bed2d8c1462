//! `tantalum`, the command line.
//!
//! ```text
//! main       arguments, exit codes, errors as one line
//! commands   one file a command
//! interruption  what a long run does with Ctrl-C
//! common     options that several commands take: traces, sizes, output
//! progress   a bar on anything over two seconds, on a terminal only
//! ```
// `println!` panics where whoever reads the output has gone, as `head` does: see `common::print_line`.
#![deny(clippy::print_stdout)]

mod commands;
mod common;
#[cfg(test)]
mod documented;
mod interruption;
mod progress;

use clap::Parser;
use std::process::ExitCode;
use tantalum_base::{Error, ErrorKind};
use tantalum_runtime::live::signal::go_on_after_others;

const AFTER_HELP: &str = "Exit status: 0 good; 1 found wrong: a check failed, or data is damaged; \
                          2 used wrong, or kept from running; \
                          128 and a signal's number: interrupted by it.";

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

/// What a command came to when nothing kept it from running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All is as it should be.
    Good,
    /// The command ran and found something wrong, which it printed.
    FoundWrong,
    /// A signal ended it before it was done; it printed what it had.
    Interrupted,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ran = go_on_after_others().map_err(Into::into).and_then(|()| cli.command.run());
    match ran {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::FoundWrong) => ExitCode::from(1),
        Ok(Verdict::Interrupted) => ExitCode::from(interruption::exit_code()),
        // Whoever reads the output has enough of it, as `head` does.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let line = format!("{error:#}").lines().collect::<Vec<_>>().join(" ");
            eprintln!("tantalum: {line}");
            ExitCode::from(exit_code(&error))
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// 1 where the data or the device turned out wrong, 2 where the command could not be run, and that of a signal where one
/// came before there was anything to print.
fn exit_code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<Error>().map(Error::kind) {
        Some(
            ErrorKind::Checksum
            | ErrorKind::Uncorrectable
            | ErrorKind::ProgramFailed
            | ErrorKind::ZoneRetired
            | ErrorKind::Corrupt
            | ErrorKind::Latched,
        ) => 1,
        Some(ErrorKind::Interrupted) => interruption::exit_code(),
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_exit_code_follows_the_kind_also_under_a_context() {
        let code = |kind| {
            let error: Result<(), Error> = Err(Error::new(kind, "page 7"));
            exit_code(&error.context("volume").unwrap_err())
        };
        assert_eq!(code(ErrorKind::Checksum), 1);
        assert_eq!(code(ErrorKind::Corrupt), 1);
        assert_eq!(code(ErrorKind::InvalidInput), 2);
        assert_eq!(code(ErrorKind::Locked), 2);
        assert_eq!(exit_code(&anyhow::anyhow!("anything else")), 2);
    }
}
