//! `tantalum clone VOLUME.toml [A B LEN]`.
use super::remap::{Pages, Remap, length, pages};
use std::path::PathBuf;
use tantalum_base::PAGE_BYTES;
use tantalum_base::size::human_bytes;
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_volume::VolumeConfig;

/// Make a snapshot of pages of a volume in other pages of it, without writing them again, as of one moment
///
/// All of it or nothing, up to 64 GiB, also while the volume is served. Without a range the lower half of the volume is
/// cloned into its upper half: `tantalum resize` makes a volume twice as large, and what uses it stays in the lower half.
/// What is not flushed or committed by who uses the volume is not in it.
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration
    volume: PathBuf,
    /// Where the clone begins: a count of pages (64, 4k) or bytes (256KiB)
    #[arg(value_name = "A", requires = "from")]
    to: Option<String>,
    /// Where what is cloned begins
    #[arg(value_name = "B", requires = "length")]
    from: Option<String>,
    /// How much, likewise; the two ranges must not overlap
    #[arg(value_name = "LEN")]
    length: Option<String>,
    /// Also where the clone's pages hold something, such as an earlier clone
    #[arg(long)]
    replace: bool,
}

const AFTER_HELP: &str = "A clone costs memory (`shared_bytes` in `tantalum stat`) and no space, until either side is written: the \
volume has space for all its pages anyway. Writes wait while it is made (docs/devices/share.md). It is read at its place, \
as the offset of a loop device or of QEMU's raw driver, and given up by `tantalum trim`.

Examples:
  tantalum resize vol/VOLUME.toml 2GiB
  tantalum clone vol/VOLUME.toml
  tantalum clone vol/VOLUME.toml --replace
  tantalum clone vol/VOLUME.toml 1536MiB 0B 256MiB
  tantalum trim vol/VOLUME.toml 1GiB 1GiB";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let asked = match (&args.to, &args.from, &args.length) {
        (Some(to), Some(from), Some(count)) => Some(Pages {
            to: pages("A", to)?,
            from: pages("B", from)?,
            count: length("LEN", count)?,
        }),
        _ => None,
    };
    let remap = Remap::Clone { pages: asked, replace: args.replace };
    let done = remap.run(&VolumeConfig::read(&args.volume)?)?;
    let bytes = |pages: u64| pages * PAGE_BYTES as u64;
    print_line(&format!(
        "{}: pages {} are a clone of {} ({}, from byte {} on); {} slots of the medium hold several pages",
        args.volume.display(),
        done.pages.left(),
        done.pages.right(),
        human_bytes(bytes(done.pages.count)),
        bytes(done.pages.to),
        done.shared_slots,
    ))?;
    Ok(Verdict::Good)
}
