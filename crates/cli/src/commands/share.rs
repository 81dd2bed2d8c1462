//! `tantalum share VOLUME.toml A B LEN`.
use super::remap::{Pages, Remap, length, pages};
use std::path::PathBuf;
use tantalum_base::PAGE_BYTES;
use tantalum_base::size::human_bytes;
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_volume::VolumeConfig;

/// Give pages of a volume the content of other pages without writing it again, all or nothing
///
/// If the volume is served, its server makes the change, and clients read the new content at once. A client does not
/// learn that pages in its own memory, such as a file system's, are stale. One command shares as many pages as the free
/// space of the device allows, `share_pairs_max` in `tantalum stat`: some 5 % of the capacity. A longer range needs
/// several commands, each all or nothing by itself, which the refusal lists; or `tantalum clone`.
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration
    volume: PathBuf,
    /// First page to change: a count of pages (64, 4k) or bytes (256KiB)
    #[arg(value_name = "A")]
    to: String,
    /// First page of the content, in the same units
    #[arg(value_name = "B")]
    from: String,
    /// Length, in the same units; the two ranges must not overlap
    #[arg(value_name = "LEN")]
    length: String,
}

const AFTER_HELP: &str = "Examples:
  tantalum share vol/VOLUME.toml 1024 0 64
  tantalum share vol/VOLUME.toml 4MiB 0B 256KiB";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let asked = Pages {
        to: pages("A", &args.to)?,
        from: pages("B", &args.from)?,
        count: length("LEN", &args.length)?,
    };
    let done = Remap::Share(asked).run(&VolumeConfig::read(&args.volume)?)?;
    print_line(&format!(
        "{}: pages {} have the content of {} ({}); {} slots of the medium hold several pages",
        args.volume.display(),
        asked.left(),
        asked.right(),
        human_bytes(asked.count * PAGE_BYTES as u64),
        done.shared_slots,
    ))?;
    Ok(Verdict::Good)
}
