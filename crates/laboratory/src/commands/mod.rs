//! One file per command: its arguments, and `run`.
mod advise;
mod curve;
mod device_size;
mod replay;
mod serve;
mod standing;
mod trace;

use tantalum_console::Verdict;
use tantalum_console::programs::{Documents, LABORATORY};

/// The commands, in the order of the help.
#[derive(clap::Subcommand, Debug)]
pub enum Command {
    Replay(replay::Args),
    Curve(curve::Args),
    Advise(advise::Args),
    #[command(subcommand)]
    Trace(trace::Command),
    #[command(hide = true)]
    Serve(serve::Args),
    #[command(flatten)]
    Documents(Documents),
}

impl Command {
    /// Runs the command to its end; `program` is the whole command line.
    pub fn run(self, program: clap::Command) -> anyhow::Result<Verdict> {
        match self {
            Command::Replay(args) => replay::run(&args),
            Command::Curve(args) => curve::run(&args),
            Command::Advise(args) => advise::run(&args),
            Command::Trace(command) => command.run(),
            Command::Serve(args) => serve::run(&args),
            Command::Documents(documents) => documents.run(program, LABORATORY.name),
        }
    }

    /// Refuses invalid arguments before anything is done.
    #[cfg(test)]
    pub fn check(&self) -> anyhow::Result<()> {
        match self {
            Command::Replay(args) => args.check(),
            _ => Ok(()),
        }
    }
}
