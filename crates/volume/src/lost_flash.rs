//! A volume without its flash, or with a blank one: what became of it, and how to go on.
use std::path::Path;
use tantalum_base::{Error, ErrorKind, PageBuf, Result, ResultExt};
use tantalum_cache::journal::Journal;
use tantalum_media::BlockStore;
use tantalum_media::block_store::{FileStore, FileStoreOptions, is_there};
use tantalum_runtime::Live;

use crate::config::{MediaType, VolumeConfig};
use crate::refusals::{FLASH_BLANK, FLASH_GONE, JOURNAL_GONE, TAKEN_OFF};
use crate::superblock::{SUPERBLOCK_BYTES, has_magic};
use crate::tiered::is_ordered;

/// What the journal beside a home says of that.
enum Standing {
    /// There is no journal, or none of Tantalum's.
    Unknown,
    /// The home lacks what a flash has.
    Owned,
    /// The home is an image of its own.
    Released,
}

/// The error of a volume whose file `data` is not there.
///
/// # Errors
/// `Io` where the journal beside the home cannot be read now.
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

/// The error of a volume whose file `data` is not there, where nothing says what became of it.
pub(crate) fn without_data(data: &Path, config: &VolumeConfig) -> Error {
    let context = format!("{} {FLASH_GONE}; {}", data.display(), how_to_make(config));
    FLASH_GONE.error(ErrorKind::Io, context)
}

/// Refuses a `flash` that holds no volume, where the home says what became of that.
///
/// # Errors
/// `Format` then; `Io` where they cannot be read now.
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
        // Who reads it says that it is none.
        Standing::Unknown => return Ok(()),
        Standing::Owned => format!("{blank}; {}", how_without_flash(config)),
        Standing::Released => format!("{blank}; {}", how_without_cache(config)),
    };
    Err(FLASH_BLANK.error(ErrorKind::Format, context))
}

/// Whether the tiered volume of `config` was detached, or rescued: its home is an image of its own, and its flash holds nothing
/// that is needed.
///
/// # Errors
/// `Io` where flash or journal cannot be read now; `Locked` where somebody has them open.
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

/// Whether any copy of a superblock is there, be it damaged.
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

/// There never was a volume, or all of it is gone.
fn how_to_make(config: &VolumeConfig) -> String {
    let at = config.path.display();
    match config.home {
        Some(_) => format!(
            "put the volume's flash and journal there; `tantalum attach {at}` puts a new cache over the home as it is"
        ),
        None => format!(
            "put the volume's file there, or mend media.path in {at}; `tantalum create {at}` makes a new, empty one"
        ),
    }
}

/// There was a volume. Making a new one would lose what home lacks, if the flash is but elsewhere.
fn how_without_flash(config: &VolumeConfig) -> String {
    let at = config.path.display();
    match is_ordered(config) {
        true => format!(
            "put the volume's flash there; where it is lost, `tantalum rescue {at}` brings home to the last consistent \
             image, and `tantalum attach {at}` puts a new cache over that"
        ),
        false => format!(
            "put the volume's flash there; where it is lost, what home lacks is lost with it (home.destage = \
             \"dense\"), and `tantalum attach --force {at}` puts a new cache over what home has"
        ),
    }
}

/// The cache was taken off.
fn how_without_cache(config: &VolumeConfig) -> String {
    let home = config.home.as_ref().map(|home| home.home_path(&config.path)).unwrap_or_default();
    let at = config.path.display();
    format!(
        "{TAKEN_OFF}, and its home {} is a plain image; `tantalum attach {at}` puts \
         a cache over it (with --force, where an old flash is in the way)",
        home.display()
    )
}

/// What is said where the journal beside a home is not there.
pub(crate) fn without_journal(journal: &Path) -> Error {
    let context = format!(
        "{}, {JOURNAL_GONE} (put it back; or set home.destage = \"dense\": the volume \
         gets a new one and loses nothing)",
        journal.display()
    );
    JOURNAL_GONE.error(ErrorKind::Io, context)
}
