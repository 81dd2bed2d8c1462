//! `tantalum trim VOLUME.toml A LEN`.
use super::remap::{Remap, length, pages};
use std::path::PathBuf;
use tantalum_base::size::human_bytes;
use tantalum_base::{PAGE_BYTES, PageNo, PageRange};
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_volume::VolumeConfig;

/// Discard pages of a volume, such as a clone: they read as zeros, and unshared space becomes free
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration
    volume: PathBuf,
    /// The first page: a count of pages (64, 4k) or bytes (256KiB)
    #[arg(value_name = "A")]
    first: String,
    /// Length, in the same units
    #[arg(value_name = "LEN")]
    length: String,
}

const AFTER_HELP: &str = "While the volume is served, its server does the trim. More than \
32 MiB are trimmed in pieces, so that clients do not wait. \
Of a tiered volume pages are given up on the served device instead (`blkdiscard`).

Examples:
  tantalum trim vol/VOLUME.toml 1GiB 1GiB";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let first = PageNo(pages("A", &args.first)?);
    let range = PageRange::new(first, length("LEN", &args.length)?);
    Remap::Trim(range).run(&VolumeConfig::read(&args.volume)?)?;
    print_line(&format!(
        "{}: pages {range} ({}) are given up, and read as zeros",
        args.volume.display(),
        human_bytes(range.pages * PAGE_BYTES as u64),
    ))?;
    Ok(Verdict::Good)
}
