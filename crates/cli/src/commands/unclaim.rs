//! `tantalum unclaim HOME`.
use std::path::PathBuf;
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::{unclaim_home, undo_path};

/// Make a home a plain image again without flash and journal: these are lost, or the home is a copy
///
/// While a home has a cache, its first and last MiB are XORed with a text, so that nothing mounts it by mistake.
/// `tantalum detach` and `tantalum rescue` restore these bytes, and write newer pages of flash and journal to the home.
/// This command writes no such pages: the home keeps the pages that its cache wrote, perhaps in the middle of an epoch.
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The image or block device, or a copy or snapshot of one
    home: PathBuf,
    /// File for the home's original ends, 2 MiB, before they are changed; by default HOME.unclaim, or for a device a
    /// file in the current folder. It is deleted when the home is plain
    #[arg(long, value_name = "PATH")]
    undo: Option<PathBuf>,
    /// Proceed even if the journal exists: newer pages of flash and journal are lost
    #[arg(long)]
    force: bool,
}

const AFTER_HELP: &str =
    "If unclaim is interrupted, run it again from the same folder: it continues from \
the content that it saved.

Examples:
  tantalum unclaim /slow/disk.img
  tantalum unclaim /backup/copy-of-disk.img";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let undo = args.undo.clone().unwrap_or_else(|| undo_path(&args.home));
    let live = Live::new(LiveOptions::default())?;
    let (handle, home, force) = (live.clone(), args.home.clone(), args.force);
    let claim = live.run(async move { unclaim_home(&handle, &home, &undo, force).await })?;
    print_line(&format!(
        "{}: a plain image now, which was the home of volume {:032x}; newer pages in its flash or journal ({}) are missing",
        args.home.display(),
        claim.volume_id(),
        claim.journal()
    ))?;
    Ok(Verdict::Good)
}
