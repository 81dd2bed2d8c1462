//! `tantalum unclaim HOME`.
use std::path::PathBuf;
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::{unclaim_home, undo_path};

/// Make a home a plain image again from itself alone: flash and journal are lost, or it is a copy
///
/// While it has a cache the first and the last MiB of a home are XORed with a text, so that nothing mounts it by
/// mistake. `tantalum detach` and `tantalum rescue` put back what was there, and bring home what is newer in flash and journal.
/// This brings nothing home: the home holds what its cache wrote there, perhaps in the middle of an epoch.
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The image or block device, or a copy or snapshot of one
    home: PathBuf,
    /// Where its ends are saved before they are changed, 2 MiB; HOME.unclaim without it, of a device in the present folder
    #[arg(long, value_name = "PATH")]
    undo: Option<PathBuf>,
    /// Also where its journal is there: what is newer in flash and journal is lost
    #[arg(long)]
    force: bool,
}

const AFTER_HELP: &str =
    "Where it is cut short, run it again from the same folder: it goes on with what it saved.

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
        "{}: a plain image now, which was the home of volume {:032x}; what was newer in its flash or journal ({}) is missing",
        args.home.display(),
        claim.volume_id(),
        claim.journal()
    ))?;
    Ok(Verdict::Good)
}
