//! Creates a volume, without overwriting existing data unless requested.
use std::path::{Path, PathBuf};
use tantalum_base::{ErrorKind, PageBuf, Result, ResultExt};
use tantalum_cache::journal::{Journal, is_no_journal};
use tantalum_media::BlockStore;
use tantalum_media::block_store::{BLOCK_BYTES, FileStore, FileStoreOptions, is_there};
use tantalum_runtime::Live;

use crate::claim::{claim_home, finish_claim, open_home_to_look, refuse_claimed_home, refuse_home};
use crate::config::{Kind, MediaType, VolumeConfig};
use crate::flash::{create_flash, erase_superblock, plan, write_copies};
use crate::folder::sync_name;
use crate::home_config::HomeConfig;
use crate::home_end::open_home_file;
use crate::lost_flash::is_detached;
use crate::no_room::told_as_no_room;
use crate::permissions::new_file_mode;
use crate::places::{journals_of_home, refuse_missing_folders, refuse_places};
use crate::refusals::{
    ATTACHED, DEVICE_THERE, FILE_THERE, HOME_OWNED, IN_MEMORY, NOT_CLAIMED, NOT_TIERED,
    OWNER_UNREAD, VOLUME_THERE,
};
use crate::space::{StoreSpace, refuse_without_space, spaces};
use crate::store::{journal_bytes, make_journal};
use crate::superblock::{self, FIRST_ZONE_BYTE, Superblock};
use crate::tiered::{TieredStores, format_tiered, pair};
use crate::unfinished::{Pairing, pairing};

/// Stores up to this size are overwritten once at creation, so that no first write to a zone pays for the file system's
/// allocation. Larger stores are prepared zone by zone, as zones are used.
const PREPARE_BYTES_MAX: u64 = 4 << 30;

/// Bytes examined in one step.
const LOOKED_AT_BYTES: u64 = 1 << 20;

/// Creates the volume of `config`. With `overwrite`, existing data is given up.
///
/// A new file is created under another name and renamed when it is complete. An interrupted creation leaves no incomplete volume
/// at the volume's path, and the next one reuses its file.
///
/// # Errors
/// `InvalidInput` if something exists already and `overwrite` is not set, or if the configuration needs no creation; `OutOfSpace`
/// if there is no room; `Locked` if another process uses or creates the volume. Nothing new is left behind after an error.
pub async fn create_volume(
    live: &Live,
    config: &VolumeConfig,
    overwrite: bool,
) -> Result<Superblock> {
    create(live, config, overwrite, Home::New { overwrite }, |_| ()).await
}

/// Creates the tiered volume of `config` over an existing home, whose content becomes the volume's. With `overwrite`, the content
/// of flash and journal is given up. `tell` gets the space that the volume will use, after all checks have passed and before
/// anything is allocated.
///
/// # Errors
/// As [`create_volume`]; `Io` if there is no such home.
pub async fn attach_volume(
    live: &Live,
    config: &VolumeConfig,
    overwrite: bool,
    tell: impl FnOnce(&[StoreSpace]),
) -> Result<Superblock> {
    refuse_without_home(config)?;
    create(live, config, overwrite, Home::AsItIs, tell).await
}

/// Checks whether [`attach_volume`] would refuse, except for lack of space ([`refuse_without_space`]). Nothing is written.
///
/// # Errors
/// As [`attach_volume`].
pub async fn check_attach(live: &Live, config: &VolumeConfig, overwrite: bool) -> Result<()> {
    refuse_without_home(config)?;
    check(live, config, overwrite).await?;
    refuse_home(live, config)
}

fn refuse_without_home(config: &VolumeConfig) -> Result<()> {
    if config.kind != Kind::Tiered {
        let context = format!(
            "{} {NOT_TIERED}, and only a tiered volume has a home: name a configuration that does \
             not exist yet, with --home, --flash and --flash-size",
            config.path.display()
        );
        return Err(NOT_TIERED.error(ErrorKind::InvalidInput, context));
    }
    let home = config.home.as_ref().map(|home| home.home_path(&config.path));
    home.map_or(Ok(()), |home| open_home_to_look(&home).map(drop))
}

/// The treatment of the home of a new tiered volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// It is created, and reads as zeros.
    New { overwrite: bool },
    /// Its content becomes the volume's.
    AsItIs,
}

async fn create(
    live: &Live,
    config: &VolumeConfig,
    overwrite: bool,
    home: Home,
    tell: impl FnOnce(&[StoreSpace]),
) -> Result<Superblock> {
    let superblock = check(live, config, overwrite).await?;
    let spaces = config.home.is_some().then(|| spaces(config)).transpose()?;
    if let Some(spaces) = &spaces {
        refuse_without_space(spaces)?;
    }
    if home == Home::AsItIs {
        if overwrite {
            finish_claim(live, config).await?;
        }
        refuse_home(live, config)?;
    }
    if let Some(spaces) = &spaces {
        tell(spaces);
    }
    let path = config.data_path()?;
    if !is_vacant(&path)? {
        let bytes = superblock.store_bytes();
        let store = FileStore::create(live, &path, bytes, store_options(config))
            .map_err(|error| told_as_no_room(error, &path, bytes))?;
        let made = fill(live, store, config, &superblock, home).await?;
        return own_home(live, config, made).await;
    }
    let staged = staging_path(&path);
    // If this file is locked, another creation is using it.
    let bytes = superblock.store_bytes();
    let store = FileStore::create(live, &staged, bytes, store_options(config))
        .map_err(|error| told_as_no_room(error, &path, bytes))?;
    let made = stage(live, store, [&path, &staged], config, &superblock, home).await;
    if made.is_err() {
        // The original error says more than a failure to remove this file.
        let _ = std::fs::remove_file(&staged);
    }
    own_home(live, config, made?).await
}

/// The superblock of the new volume, after checking that its stores are available and that nothing is lost that the caller does
/// not give up.
async fn check(live: &Live, config: &VolumeConfig, overwrite: bool) -> Result<Superblock> {
    if config.media.media_type == MediaType::Memory {
        let context = format!("{IN_MEMORY}: it needs no command of its own");
        return Err(IN_MEMORY.error(ErrorKind::InvalidInput, context));
    }
    refuse_places(live, config)?;
    refuse_missing_folders(config)?;
    let path = config.data_path()?;
    let superblock = plan(config, new_volume_id()?)?;
    if !overwrite {
        refuse_attached(live, config, &path).await?;
        // The home's owner precedes the content of the flash, for which the advice is `--force`: that would give up its pages.
        refuse_owned_home(live, config).await?;
        if !is_given_up(live, config, superblock.store_bytes()).await? {
            refuse_existing(live, &path).await?;
        }
    }
    if let Some(its) = &config.home {
        refuse_claimed_home(&its.home_path(&config.path), overwrite)?;
    }
    Ok(superblock)
}

/// Records on the home of a new volume, if there is one, and in the journal beside it that the home belongs to the volume. From
/// then on the home gets no other cache, even before this volume is used. This is the last step: an interrupted creation owns
/// nothing.
async fn own_home(live: &Live, config: &VolumeConfig, made: Superblock) -> Result<Superblock> {
    let Some(home) = &config.home else { return Ok(made) };
    let path = home.journal_path(&config.path);
    let owned = async {
        let store = FileStore::open(live, &path, FileStoreOptions::default())?;
        let (journal, _) = Journal::<_, PageBuf>::open(store, pair(&made), 0).await?;
        claim_home(live, config, &journal, made.volume_id).await?;
        journal.own_home().await
    };
    owned.await.context(|| {
        let path = path.display();
        format!("{NOT_CLAIMED} (with {path}): the same command again finishes it")
    })?;
    Ok(made)
}

/// Whether a new file can take this place without loss.
fn is_vacant(path: &Path) -> Result<bool> {
    if !is_there(path)? {
        return Ok(true);
    }
    let metadata = std::fs::metadata(path).context(|| format!("looking at {}", path.display()))?;
    Ok(metadata.is_file() && metadata.len() == 0)
}

/// The temporary name of the volume at `path` during its creation.
pub(crate) fn staging_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".creating");
    PathBuf::from(name)
}

/// Creates the volume in `store`, at `staged`, then renames it to `path`.
async fn stage(
    live: &Live,
    store: FileStore,
    [path, staged]: [&Path; 2],
    config: &VolumeConfig,
    superblock: &Superblock,
    home: Home,
) -> Result<Superblock> {
    // Another creation may just have finished, so this is checked again under the lock, which keeps others out from now on.
    if !is_vacant(path)? {
        refuse_existing(live, path).await?;
    }
    let made = fill(live, store.clone(), config, superblock, home).await?;
    std::fs::rename(staged, path)
        .context(|| format!("renaming {} to {}", staged.display(), path.display()))?;
    sync_name(path).context(|| format!("syncing the folder of {}", path.display()))?;
    drop(store);
    Ok(made)
}

fn store_options(config: &VolumeConfig) -> FileStoreOptions {
    let (sparse, mode) = (config.media.sparse, new_file_mode(config));
    FileStoreOptions { sparse, mode, ..FileStoreOptions::default() }
}

/// Turns `store` into the new volume.
async fn fill(
    live: &Live,
    store: FileStore,
    config: &VolumeConfig,
    superblock: &Superblock,
    home: Home,
) -> Result<Superblock> {
    let bytes = superblock.store_bytes();
    if bytes <= PREPARE_BYTES_MAX && store.bytes() >= bytes && !config.media.sparse {
        // The superblock goes first, because preparing may overwrite the content of an old volume.
        erase_superblock(&store).await?;
        store.prepare(FIRST_ZONE_BYTE, bytes - FIRST_ZONE_BYTE).await?;
    }
    let Some(home_config) = &config.home else {
        return create_flash(store, config, superblock.volume_id).await;
    };
    erase_superblock(&store).await?;
    let stores = TieredStores {
        home: make_home(live, config, home_config, home).await?,
        journal: Some(make_journal(live, config)?),
        flash: store,
    };
    format_tiered(&stores, config, superblock).await?;
    write_copies(&stores.flash, superblock).await?;
    Ok(*superblock)
}

/// The home of a new tiered volume.
async fn make_home(
    live: &Live,
    config: &VolumeConfig,
    home_config: &HomeConfig,
    home: Home,
) -> Result<FileStore> {
    let overwrite = match home {
        Home::AsItIs => return open_home_file(live, config, false),
        Home::New { overwrite } => overwrite,
    };
    let path = &home_config.home_path(&config.path);
    let (options, bytes) = (home_config.store_options()?, config.size_bytes()?);
    if !overwrite {
        let existing = refuse_existing(live, path).await;
        existing.map_err(|error| {
            error.wrap("the home (`tantalum attach` keeps its content and puts a cache over it)")
        })?;
    }
    let store = FileStore::create(live, path, bytes, options)
        .map_err(|error| told_as_no_room(error, path, bytes))?;
    if overwrite {
        store.zero(0, bytes).await?;
        store.sync().await?;
    }
    Ok(store)
}

/// Refuses a home if a journal beside it says that it belongs to a volume: that volume's flash may have newer content than the
/// home.
async fn refuse_owned_home(live: &Live, config: &VolumeConfig) -> Result<()> {
    let Some(home) = &config.home else { return Ok(()) };
    let own = home.journal_path(&config.path);
    for path in journals_of_home(config) {
        if is_vacant(&path)? {
            continue;
        }
        let store = FileStore::open(live, &path, FileStoreOptions::default())?;
        match Journal::<_, PageBuf>::owner_of(&store).await {
            Ok(None) => {}
            Ok(Some(pair)) => {
                let context = format!(
                    "{} {HOME_OWNED} {pair}, whose flash may have newer pages than home: `tantalum \
                     detach` that volume, or `tantalum rescue` it if its flash is lost{}",
                    path.display(),
                    if path == own {
                        "; --force gives up the content of flash and journal"
                    } else {
                        ""
                    }
                );
                return Err(HOME_OWNED.error(ErrorKind::InvalidInput, context));
            }
            Err(error) if error.kind() == ErrorKind::Io => {
                let context = format!(
                    "whether {} {OWNER_UNREAD}, and may be later: try again",
                    path.display()
                );
                return Err(error.wrap(context));
            }
            Err(error)
                if path == own
                    && is_no_journal(&error)
                    && is_journal_unwritten(&store, &path, config).await? => {}
            Err(_) if path == own => {
                drop(store);
                refuse_existing(live, &path).await?;
            }
            // This file is not a journal, and it is not overwritten.
            Err(error) if is_no_journal(&error) => {}
            Err(error) => return Err(error.wrap(format!("whether {} says so", path.display()))),
        }
    }
    Ok(())
}

/// Whether the future flash is a file that a volume of this configuration left there when it was detached: the file has the same
/// size and no superblock, and the journal beside the home says that the content of the flash is not needed.
async fn is_given_up(live: &Live, config: &VolumeConfig, bytes: u64) -> Result<bool> {
    let path = config.data_path()?;
    if is_vacant(&path)? || std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() != bytes) {
        return Ok(false);
    }
    let store = FileStore::open(live, &path, FileStoreOptions::default())?;
    let start = store.read(0, store.buffer(FIRST_ZONE_BYTE as usize)).await?;
    let is_left = superblock::is_left_behind(&start);
    drop(store);
    Ok(is_left && is_detached(live, config).await?)
}

/// Whether the journal of `config`, in `store` at `path`, was left by a creation that was interrupted before it wrote to it: a
/// file of the journal's size, all zeros.
async fn is_journal_unwritten(
    store: &FileStore,
    path: &Path,
    config: &VolumeConfig,
) -> Result<bool> {
    let bytes = journal_bytes(config)?;
    let is_its_size = std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() == bytes);
    if !is_its_size || store.bytes() != bytes {
        return Ok(false);
    }
    let mut at = 0;
    while let Some(room) = store.next_room(at).filter(|room| *room < store.bytes()) {
        at = room / BLOCK_BYTES * BLOCK_BYTES;
        let length = LOOKED_AT_BYTES.min(store.bytes() - at);
        let read = store.read(at, store.buffer(length as usize)).await?;
        if read.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        store.recycle(read);
        at += length;
    }
    Ok(true)
}

/// Refuses a volume that is attached already, with its flash at `path`.
async fn refuse_attached(live: &Live, config: &VolumeConfig, path: &Path) -> Result<()> {
    if pairing(live, config).await? == Pairing::Owned {
        let (flash, at) = (path.display(), config.path.display());
        let context = format!(
            "{at} {ATTACHED}, with its flash {flash}: `tantalum serve {at}` serves it, and \
             `tantalum detach {at}` ends it (--force gives up the content of flash and journal)"
        );
        return Err(ATTACHED.error(ErrorKind::InvalidInput, context));
    }
    Ok(())
}

/// Refuses if `path` holds anything: a file that is not empty, or a device that does not begin with zeros.
async fn refuse_existing(live: &Live, path: &Path) -> Result<()> {
    if is_vacant(path)? {
        return Ok(());
    }
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let store = FileStore::open(live, path, FileStoreOptions::default())?;
    let looked_at_bytes = store.bytes().min(FIRST_ZONE_BYTE) as usize;
    let start = store.read(0, store.buffer(looked_at_bytes)).await?;
    if !is_file && start.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    let refusal = match (superblock::has_magic(&start), is_file) {
        (true, _) => VOLUME_THERE,
        (false, true) => FILE_THERE,
        (false, false) => DEVICE_THERE,
    };
    let context = format!(
        "{} {refusal}: name another place, or move it away; --force gives up its content",
        path.display()
    );
    Err(refusal.error(ErrorKind::InvalidInput, context))
}

/// An identity for a new volume.
fn new_volume_id() -> Result<u128> {
    let mut id = [0; 16];
    let mut random = std::fs::File::open("/dev/urandom").context(|| "opening /dev/urandom")?;
    std::io::Read::read_exact(&mut random, &mut id).context(|| "reading /dev/urandom")?;
    Ok(u128::from_le_bytes(id))
}
