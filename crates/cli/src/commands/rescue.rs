//! `tantalum rescue`: recovers a home after the loss of its flash.
use crate::commands::tiered::{duration, home_of, say_is_detached, tiered_config, was_detached};
use anyhow::Context;
use std::path::{Path, PathBuf};
use tantalum_base::size::human_bytes;
use tantalum_base::{ErrorKind, PAGE_BYTES};
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_media::block_store::{StoreCounters, is_there};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::refusals::{FLASH_THERE, FLASH_UNREAD};
use tantalum_volume::{OpenOptions, RescueReport, VolumeConfig, rescue_volume};

/// Restore a home whose flash is lost to its last consistent image
#[derive(clap::Args, Debug)]
#[command(after_help = RESCUE_HELP)]
pub struct Args {
    /// The volume's configuration; it names home and journal
    volume: PathBuf,
    /// Rescue even if the flash still seems to exist, whose newer pages are lost then, or if nothing shows that this is the
    /// volume's home
    #[arg(long)]
    force: bool,
}

const RESCUE_HELP: &str =
    "With home.destage = \"ordered\" home and the journal beside it hold the \
content of the volume at one moment, some seconds before the flash was lost. The command may be \
repeated.

Examples:
  tantalum rescue vol/VOLUME.toml";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let config = tiered_config(&args.volume)?;
    let data = config.data_path()?;
    let live = Live::new(LiveOptions::default())?;
    if !args.force {
        if was_detached(&live, &config)? {
            return say_is_detached(&config);
        }
        if is_there(&data)? {
            refuse_volume(&config, &data)?;
        }
    }
    // Read before the rescue writes to the journal.
    let worked_ms = journal_modified_ms(&config);
    let (handle, opened) = (live.clone(), config.clone());
    let force = args.force;
    let rescued = live.run(async move { rescue_volume(&handle, &opened, force).await });
    print_line(&format!("{}: {}", home_of(&config), rescued_to(&rescued?, worked_ms)))?;
    Ok(Verdict::Good)
}

/// Describes the moment to which a home was restored and, if known, how much of the cache's work is missing. The cache
/// last worked at `worked_ms`, in milliseconds since 1970.
fn rescued_to(rescued: &RescueReport, worked_ms: Option<u64>) -> String {
    let Some(closed) = rescued.epoch else {
        return "no epoch was ever destaged: the home is as it was when the cache was put over it"
            .to_owned();
    };
    let now_ms = tantalum_runtime::live::wall_clock::unix_ms();
    let later = match worked_ms.map(|worked_ms| worked_ms.saturating_sub(closed.unix_ms)) {
        Some(later_ms) if later_ms >= 1000 => {
            format!("; the cache was in use for at least {} after that", duration(later_ms))
        }
        _ => String::new(),
    };
    format!(
        "as it was at {}, {} ago (epoch {}, {} written from the journal): later acknowledged writes are missing{later}",
        utc(closed.unix_ms),
        duration(now_ms.saturating_sub(closed.unix_ms)),
        closed.epoch,
        human_bytes(rescued.pages * PAGE_BYTES as u64),
    )
}

/// Time of the last write to the journal of the home, if the journal is a file: milliseconds since 1970.
fn journal_modified_ms(config: &VolumeConfig) -> Option<u64> {
    let journal = config.home.as_ref()?.journal_path(&config.path);
    let metadata = std::fs::metadata(journal).ok().filter(std::fs::Metadata::is_file)?;
    let since = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(since.as_millis() as u64)
}

/// A point in time in UTC, to the second (RFC 3339).
fn utc(unix_ms: u64) -> String {
    let time = jiff::Timestamp::from_second((unix_ms / 1000) as i64);
    time.map_or_else(|_| format!("{unix_ms} ms since 1970"), |time| time.to_string())
}

/// Refuses if `data`, the flash of `config`, holds a superblock, or does not answer, which may be temporary.
fn refuse_volume(config: &VolumeConfig, data: &Path) -> anyhow::Result<()> {
    let live = Live::new(LiveOptions::default())?;
    let (handle, config) = (live.clone(), config.clone());
    let read = live.run(async move {
        let store = tantalum_volume::open_store(
            &handle,
            &config,
            OpenOptions::READ_ONLY,
            &StoreCounters::default(),
        )
        .await?;
        tantalum_volume::read_superblock(&store).await
    });
    match read {
        Ok(_) => {
            let context = format!(
                "{} {FLASH_THERE}: `tantalum serve` or `tantalum detach` loses nothing (--force \
                 gives up the newer pages in the flash)",
                data.display()
            );
            Err(FLASH_THERE.error(ErrorKind::InvalidInput, context).into())
        }
        Err(error) if error.kind() == ErrorKind::Io => Err(error).with_context(|| {
            format!("{} {FLASH_UNREAD} gives up the newer pages in the flash)", data.display())
        }),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::rescued_to;
    use tantalum_cache::journal::Closed;
    use tantalum_volume::RescueReport;

    #[test]
    fn a_rescue_tells_the_moment_and_what_is_missing() {
        let closed = Closed { epoch: 7, unix_ms: 1_700_000_000_900, ..Closed::default() };
        let rescued = RescueReport { epoch: Some(closed), pages: 2 };
        let told = rescued_to(&rescued, Some(closed.unix_ms + 8_500));
        assert!(
            told.contains("as it was at 2023-11-14T22:13:20Z, ") && told.contains(" days ago"),
            "{told}"
        );
        assert!(
            told.contains("(epoch 7, 8.0 KiB written") && told.contains(" at least 8 s after that"),
            "{told}"
        );
        // The time of the journal is unknown, or adds nothing.
        for worked_ms in [None, Some(0), Some(closed.unix_ms + 999)] {
            assert!(
                rescued_to(&rescued, worked_ms).ends_with("later acknowledged writes are missing")
            );
        }
        let never = RescueReport { epoch: None, pages: 0 };
        assert!(rescued_to(&never, None).contains("no epoch was ever destaged"));
    }
}
