//! An attach that was interrupted after flash and journal were created, and before the home belonged to them.
use tantalum_base::{Error, ErrorKind, PageBuf, Result, ResultExt};
use tantalum_cache::journal::Journal;
use tantalum_media::block_store::{FileStore, FileStoreOptions, is_there};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{LifeCycle, Live};

use crate::config::{MediaType, VolumeConfig};
use crate::flash::{check_sizes, read_superblock};
use crate::open::open_tiered_volume;
use crate::open_options::OpenOptions;
use crate::superblock::Superblock;
use crate::tiered::pair;

/// The relation of flash and journal of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// They do not belong to one volume.
    None,
    /// They belong to one volume, and the home belongs to it too.
    Owned,
    /// They belong to one volume, and the home is an image of its own: it was not claimed yet, or was given back.
    Released,
}

/// Finishes an interrupted attach of the volume of `config`; `None` if there is none. After such an attach, flash and journal
/// belong together, the home does not belong to them, and the flash has no pages. So the volume has no acknowledged data, and
/// nothing is overwritten. Opening the volume claims its home.
///
/// # Errors
/// `Io` if a store cannot be read; `Locked` if another process has one open; as of opening.
pub fn finish_attach(config: &VolumeConfig) -> Result<Option<Superblock>> {
    if config.home.is_none() || config.media.media_type == MediaType::Memory {
        return Ok(None);
    }
    // Each phase has its own executor: tasks of a volume hold its files until they are gone.
    let is_released = in_phase(config, async |live, config| {
        Ok(pairing(&live, &config).await? == Pairing::Released)
    });
    if !is_released? || !in_phase(config, async |live, config| is_unused(&live, &config).await)? {
        return Ok(None);
    }
    let finished = in_phase(config, async |live, config| {
        let (volume, report) = open_tiered_volume(&live, &config, OpenOptions::default()).await?;
        volume.close().await?;
        Ok(report.superblock)
    });
    finished.map(Some).context(|| "finishing an attach that was cut short")
}

fn in_phase<T: 'static>(
    config: &VolumeConfig,
    phase: impl AsyncFnOnce(Live, VolumeConfig) -> Result<T> + 'static,
) -> Result<T> {
    let live = Live::new(LiveOptions::default())?;
    let (handle, config) = (live.clone(), config.clone());
    let done = live.run(async move { phase(handle, config).await });
    live.drop_tasks();
    done
}

/// The relation of flash and journal of `config`.
///
/// # Errors
/// `Io` and `Locked` of either.
pub(crate) async fn pairing(live: &Live, config: &VolumeConfig) -> Result<Pairing> {
    let Some(home) = &config.home else { return Ok(Pairing::None) };
    let (flash, journal) = (config.data_path()?, home.journal_path(&config.path));
    if !is_there(&flash)? || !is_there(&journal)? {
        return Ok(Pairing::None);
    }
    let options = FileStoreOptions { read_only: true, ..FileStoreOptions::default() };
    let flash = FileStore::open(live, &flash, options)?;
    let journal = FileStore::open(live, &journal, options)?;
    let paired = async {
        let superblock = read_superblock(&flash).await?;
        check_sizes(&superblock, &flash, config)?;
        let is_its = Journal::<_, PageBuf>::pair_of(&journal).await? == pair(&superblock);
        let owner = Journal::<_, PageBuf>::owner_of(&journal).await?;
        Ok::<_, Error>(match (is_its, owner) {
            (false, _) => Pairing::None,
            (true, Some(_)) => Pairing::Owned,
            (true, None) => Pairing::Released,
        })
    };
    match paired.await {
        Err(error) if error.kind() != ErrorKind::Io => Ok(Pairing::None),
        paired => paired,
    }
}

/// Whether the flash of the volume of `config` has no pages, and the home lacks none. Nothing is written.
async fn is_unused(live: &Live, config: &VolumeConfig) -> Result<bool> {
    let volume = match open_tiered_volume(live, config, OpenOptions::READ_ONLY).await {
        Ok((volume, _)) => volume,
        Err(error) if error.kind() == ErrorKind::Io => return Err(error),
        // Creating the volume anew will report the reason.
        Err(_) => return Ok(false),
    };
    let tiered = volume.device().device();
    let lacked = tiered.statistics().dirty_or_trimmed_pages;
    Ok(tiered.drive().ftl().mapped_pages() == 0 && lacked == 0)
}
