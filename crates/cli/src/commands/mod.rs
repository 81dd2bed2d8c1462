//! One file a command: its arguments, and `run`.
mod replay;
mod trace;

use crate::Verdict;

/// The commands, in the order of the help.
#[derive(clap::Subcommand, Debug)]
pub enum Command {
    Replay(replay::Args),
    #[command(subcommand)]
    Trace(trace::Command),
}

impl Command {
    /// Runs the command to its end.
    pub fn run(self) -> anyhow::Result<Verdict> {
        match self {
            Command::Replay(args) => replay::run(&args),
            Command::Trace(command) => command.run(),
        }
    }
}
