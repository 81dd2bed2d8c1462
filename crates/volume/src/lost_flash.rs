//! A volume whose flash is missing or blank: the error with its reason, and advice.
use std::path::Path;
use tantalum_base::{Error, ErrorKind, PageBuf, Result, ResultExt};
use tantalum_cache::journal::Journal;
use tantalum_media::BlockStore;
use tantalum_media::block_store::{FileStore, FileStoreOptions, is_there};
use tantalum_runtime::Live;

use crate::claim::claim_of;
use crate::config::{MediaType, VolumeConfig};
use crate::refusals::{CREATION_UNFINISHED, FLASH_BLANK, FLASH_GONE, JOURNAL_GONE, TAKEN_OFF};
use crate::superblock::{SUPERBLOCK_BYTES, has_magic};
use crate::tiered::is_ordered;
use crate::unfinished_creation::is_creation_unfinished;

/// The state of the home, as recorded in the journal beside it.
enum Standing {
    /// There is no journal, or the file is not a Tantalum journal.
    Unknown,
    /// The home belongs to a volume, whose flash may have newer content.
    Owned,
    /// The home is an image of its own.
    Released,
}

/// The error for a volume whose file `data` does not exist.
///
/// # Errors
/// `Io` if the journal beside the home cannot be read now.
pub(crate) async fn without_flash(
    live: &Live,
    data: &Path,
    config: &VolumeConfig,
) -> Result<Error> {
    let gone = format!("{} {FLASH_GONE}", data.display());
    let context = match standing(live, config).await? {
        Standing::Unknown => return Ok(without_data(data, config)),
        Standing::Owned => format!("{gone}; {}", how_without_flash(config)),
        Standing::Released => format!("{gone}; {}", how_without_cache(config)),
    };
    Ok(FLASH_GONE.error(ErrorKind::Io, context))
}

/// The error for a volume whose file `data` does not exist, with an unknown reason.
pub(crate) fn without_data(data: &Path, config: &VolumeConfig) -> Error {
    if is_creation_unfinished(config).is_ok_and(|is| is) {
        let at = config.path.display();
        let context = format!(
            "{} {FLASH_GONE}: {CREATION_UNFINISHED} (`tantalum create {at}` finishes it, as the call that creates a volume does)",
            data.display()
        );
        return CREATION_UNFINISHED.error(ErrorKind::Io, context);
    }
    let context = format!("{} {FLASH_GONE}; {}", data.display(), how_to_make(config));
    FLASH_GONE.error(ErrorKind::Io, context)
}

/// Refuses a `flash` that holds no volume, if the journal beside the home shows that there was one.
///
/// # Errors
/// `Format` in that case; `Io` if flash or journal cannot be read now.
pub(crate) async fn refuse_blank_flash(
    live: &Live,
    flash: &impl BlockStore,
    config: &VolumeConfig,
) -> Result<()> {
    if holds_volume(flash).await? {
        return Ok(());
    }
    let blank = format!("{} {FLASH_BLANK} (no magic number)", config.data_path()?.display());
    let context = match standing(live, config).await? {
        // The later read of the superblock reports that this is no volume.
        Standing::Unknown => return Ok(()),
        Standing::Owned => format!("{blank}; {}", how_without_flash(config)),
        Standing::Released => format!("{blank}; {}", how_without_cache(config)),
    };
    Err(FLASH_BLANK.error(ErrorKind::Format, context))
}

/// Whether the tiered volume of `config` was detached or rescued: its home is an image of its own, and the content of its flash
/// is not needed.
///
/// # Errors
/// `Io` if flash or journal cannot be read now; `Locked` if another process has them open.
pub async fn is_detached(live: &Live, config: &VolumeConfig) -> Result<bool> {
    if config.media.media_type == MediaType::Memory {
        return Ok(false);
    }
    let data = config.data_path()?;
    if is_there(&data)? && holds_volume(&open_to_look(live, &data)?).await? {
        return Ok(false);
    }
    Ok(matches!(standing(live, config).await?, Standing::Released))
}

async fn standing(live: &Live, config: &VolumeConfig) -> Result<Standing> {
    let Some(home) = &config.home else { return Ok(Standing::Unknown) };
    let journal = home.journal_path(&config.path);
    if !is_there(&journal)? {
        return Ok(Standing::Unknown);
    }
    let store = open_to_look(live, &journal)?;
    match Journal::<_, PageBuf>::owner_of(&store).await {
        Ok(Some(_)) => Ok(Standing::Owned),
        Ok(None) => Ok(Standing::Released),
        Err(error) if error.kind() == ErrorKind::Io => {
            Err(error).context(|| format!("{}, the journal beside the home", journal.display()))
        }
        Err(_) => Ok(Standing::Unknown),
    }
}

fn open_to_look(live: &Live, path: &Path) -> Result<FileStore> {
    FileStore::open(live, path, FileStoreOptions { read_only: true, ..FileStoreOptions::default() })
}

/// Whether any copy of a superblock is there, even a damaged one.
async fn holds_volume(store: &impl BlockStore) -> Result<bool> {
    let bytes = 2 * SUPERBLOCK_BYTES;
    if store.bytes() < bytes as u64 {
        return Ok(false);
    }
    let copies = store.read(0, store.buffer(bytes)).await?;
    let found = has_magic(&copies);
    store.recycle(copies);
    Ok(found)
}

/// Advice if there never was a volume, or all of it is gone.
fn how_to_make(config: &VolumeConfig) -> String {
    let at = config.path.display();
    let home = config.home.as_ref().map(|home| home.home_path(&config.path));
    match home {
        // An attach would be refused.
        Some(home) if claim_of(&home).is_ok_and(|claim| claim.is_some()) => format!(
            "put the volume's flash and journal there; if both are lost, {}, and `tantalum attach \
             {at}` then puts a new cache over it",
            how_to_unclaim(&home)
        ),
        Some(_) => format!(
            "put the volume's flash and journal there; `tantalum attach {at}` puts a new cache over the home as it is"
        ),
        None => format!(
            "put the volume's file there, or correct media.path in {at}; `tantalum create {at}` makes a new, empty one"
        ),
    }
}

/// Advice if there was a volume. Its flash may only be elsewhere; then a new volume would lose content that the home lacks.
fn how_without_flash(config: &VolumeConfig) -> String {
    let at = config.path.display();
    match is_ordered(config) {
        true => format!(
            "put the volume's flash there; if it is lost, `tantalum rescue {at}` brings home to \
             the last consistent image, and `tantalum attach {at}` puts a new cache over that"
        ),
        false => format!(
            "put the volume's flash there; if it is lost, the dirty pages are lost with it \
             (home.destage = \"dense\"), and `tantalum attach --force {at}` puts a new cache over \
             the home as it is"
        ),
    }
}

/// Advice if the cache was taken off.
fn how_without_cache(config: &VolumeConfig) -> String {
    let home = config.home.as_ref().map(|home| home.home_path(&config.path)).unwrap_or_default();
    let at = config.path.display();
    format!(
        "{TAKEN_OFF}, and its home {} is a plain image; `tantalum attach {at}` puts a cache over \
         it (with --force if an old flash is in the way)",
        home.display()
    )
}

fn how_to_unclaim(home: &Path) -> String {
    format!("`tantalum unclaim {}` makes the home readable as its cache left it", home.display())
}

/// The error for a rescue of `home`, whose flash is lost, without a journal.
pub(crate) fn without_either(journal: &Path, home: &Path) -> Error {
    let context = format!(
        "{}, {JOURNAL_GONE} (put it back; if it is lost like the flash, {})",
        journal.display(),
        how_to_unclaim(home)
    );
    JOURNAL_GONE.error(ErrorKind::Io, context)
}

/// The error for a missing journal beside a home.
pub(crate) fn without_journal(journal: &Path) -> Error {
    let context = format!(
        "{}, {JOURNAL_GONE} (put it back; or, if the home was neither rescued nor detached \
         since, set home.destage = \"dense\": the volume gets a new one)",
        journal.display()
    );
    JOURNAL_GONE.error(ErrorKind::Io, context)
}
