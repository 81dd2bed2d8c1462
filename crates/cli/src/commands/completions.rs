//! `tantalum completions SHELL`.
use crate::{Cli, Verdict};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use std::io::Write;

/// Print what a shell needs to complete the words of tantalum's command lines
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
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut for_people(), "tantalum", &mut text);
    let mut out = std::io::stdout().lock();
    out.write_all(&text)?;
    out.flush()?;
    Ok(Verdict::Good)
}

/// The commands but the hidden ones, which would be offered like any other.
fn for_people() -> Command {
    let whole = Cli::command();
    let shown = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("tantalum").version(env!("TANTALUM_VERSION")).subcommands(shown)
}
