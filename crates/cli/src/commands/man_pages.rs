//! `tantalum man-pages FOLDER`.
use crate::Cli;
use clap::CommandFactory;
use std::path::PathBuf;
use tantalum_console::output::print_line;
use tantalum_console::programs::PROGRAMS;
use tantalum_console::{Verdict, man_pages};

/// Write a manual page for each command to a folder
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The folder; it is made if it does not exist
    folder: PathBuf,
}

const AFTER_HELP: &str =
    "man finds the pages in a folder man1 of its path, such as ~/.local/share/man/man1.

Examples:
  tantalum man-pages ~/.local/share/man/man1";

/// The foot of each page.
const SOURCE: &str = concat!("tantalum ", env!("TANTALUM_VERSION"));

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let folder = &args.folder;
    let mut pages = man_pages::write(folder, Cli::command(), SOURCE, true)?;
    for program in PROGRAMS {
        match program.output(&["man-pages".into(), folder.into()])? {
            Some(told) => pages += String::from_utf8_lossy(&told).trim().parse::<usize>()?,
            None => eprintln!(
                "tantalum: no pages of {}: {} is not installed",
                program.commands.join(", "),
                program.name
            ),
        }
    }
    print_line(&format!("{}: {pages} pages written", folder.display()))?;
    Ok(Verdict::Good)
}
