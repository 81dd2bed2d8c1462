//! `tantalum completions SHELL`.
use crate::Cli;
use clap::CommandFactory;
use clap_complete::Shell;
use tantalum_console::{Verdict, completions};

/// Print the completion script of tantalum for a shell
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The shell
    shell: Shell,
}

const AFTER_HELP: &str =
    "bash reads it from ~/.local/share/bash-completion/completions/tantalum, fish from \
~/.config/fish/completions/tantalum.fish, zsh from a file _tantalum in a folder of its fpath.

Examples:
  tantalum completions bash
  tantalum completions zsh";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    completions::print_joined(args.shell, &Cli::command())?;
    Ok(Verdict::Good)
}
