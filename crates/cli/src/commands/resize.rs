//! `tantalum resize VOLUME.toml SIZE`.
use crate::commands::room::tell_room;
use anyhow::Context;
use std::path::PathBuf;
use tantalum_base::size::{Size, human_bytes};
use tantalum_base::{ErrorKind, PAGE_BYTES};
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_report::number;
use tantalum_volume::{Resized, VolumeConfig, resize_volume};

/// Make a volume larger; its content stays
///
/// Stop the server, or whichever program has the volume open, first. A client that connects afterwards sees the new
/// size. The file grows, or more of the block device is used, and the configuration gets the new capacity. If this is
/// interrupted, the volume is sound and has one size or the other; repeat the command. A volume cannot shrink. A tiered
/// volume cannot grow.
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration
    volume: PathBuf,
    /// New capacity that hosts see: bytes with a unit (2GiB, 500MB)
    #[arg(value_name = "SIZE")]
    size: String,
}

const AFTER_HELP: &str = "Afterwards grow the file system on the volume, for example with \
resize2fs or xfs_growfs; SQLite notices the new size by itself. The size of a zone does not \
change: a volume that has grown much has many more than the 128 or so zones of a new one.

Examples:
  tantalum resize vol/VOLUME.toml 2GiB";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let path = args.volume.display();
    let config = VolumeConfig::read(&args.volume)?;
    let asked = Size::parse_bytes(&args.size).context("SIZE")?;
    let resized = match resize_volume(&config, &args.size) {
        Err(error) if error.kind() == ErrorKind::Locked => {
            return Err(error).context("no process may have the volume open while it grows");
        }
        resized => resized.with_context(|| format!("resizing {path}"))?,
    };
    let Resized { before, after } = resized;
    let bytes = |pages: u64| pages * PAGE_BYTES as u64;
    if bytes(after.pages) != asked {
        let rounded = number::thousands(bytes(after.pages));
        print_line(&format!("{path}: in whole pages of 4 KiB, {} is {rounded} bytes", args.size))?;
    }
    if after == before {
        print_line(&format!("{path}: the volume has {} already", human_bytes(bytes(after.pages))))?;
        return Ok(Verdict::Good);
    }
    print_line(&format!(
        "{path}: {} instead of {} ({} zones of {} instead of {})",
        human_bytes(bytes(after.pages)),
        human_bytes(bytes(before.pages)),
        after.zones,
        human_bytes(bytes(u64::from(after.slots_per_zone))),
        before.zones,
    ))?;
    tell_room(&config, after.store_bytes())?;
    Ok(Verdict::Good)
}
