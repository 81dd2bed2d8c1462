//! `tantalum clone VOLUME.toml [A B LEN]`.
use super::remap::{Pages, Remap, length, pages};
use std::path::PathBuf;
use tantalum_base::PAGE_BYTES;
use tantalum_base::size::human_bytes;
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_volume::VolumeConfig;

/// Make a snapshot of pages in other pages of the volume, as of one moment, without writing their content again
///
/// The clone is atomic, of at most 64 GiB, and also works while the volume is served. Without a range, the lower half
/// of the volume is cloned into its upper half: `tantalum resize` makes a volume twice as large, and its users stay in
/// the lower half. Data that the users of the volume have not flushed or committed is not in the clone.
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration
    volume: PathBuf,
    /// First page of the clone: a count of pages (64, 4k) or bytes (256KiB)
    #[arg(value_name = "A", requires = "from")]
    to: Option<String>,
    /// First page to clone, in the same units
    #[arg(value_name = "B", requires = "length")]
    from: Option<String>,
    /// Length, in the same units; the two ranges must not overlap
    #[arg(value_name = "LEN")]
    length: Option<String>,
    /// Replace content of the clone's pages, such as an earlier clone
    #[arg(long)]
    replace: bool,
}

const AFTER_HELP: &str = "A clone costs memory (`shared_bytes` in `tantalum stat`) and no space, \
until either side is written: the volume has space for all its pages anyway. Writes wait until the \
clone is made (docs/devices/share.md). Read the clone at its place, for example with the offset of \
a loop device or of QEMU's raw driver; give it up with `tantalum trim`.

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
