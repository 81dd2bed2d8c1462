//! `tantalum share VOLUME.toml A B LEN`.
use super::remap::{Pages, Remap, length, pages};
use std::path::PathBuf;
use tantalum_base::PAGE_BYTES;
use tantalum_base::size::human_bytes;
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_volume::VolumeConfig;

/// Let pages of a volume take other pages' content without writing it again, all or nothing
///
/// While the volume is served, its server does it, and clients read the new content at once; what a client
/// keeps in memory itself, as a file system does, it does not learn of. One command takes
/// what the free space of the device has room for, `share_pairs_max` in `tantalum stat`: some 5 % of the
/// capacity. A longer range goes in several commands, each all or nothing by itself, and the refusal says in which;
/// or by `tantalum clone`.
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration
    volume: PathBuf,
    /// The first page that takes content: a count of pages (64, 4k) or bytes (256KiB)
    #[arg(value_name = "A")]
    to: String,
    /// The first page whose content is taken
    #[arg(value_name = "B")]
    from: String,
    /// How much, likewise; the two ranges must not overlap
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
