//! The claim on the home of a new volume, and on a home whose flash and journal are gone.
use rustix::fs::OFlags;
use std::fs::File;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, PageBuf, Result, ResultExt};
use tantalum_cache::claim::{
    Claim, Evidence, Extent, HomeOwner, SECTOR_BYTES, UNDO_BYTES, claim_in, look, open_home,
    put_on, take_off, unclaim,
};
use tantalum_cache::journal::Journal;
use tantalum_media::BlockStore;
use tantalum_media::block_store::refusals::NOT_ALLOWED;
use tantalum_media::block_store::{
    BLOCK_BYTES, FileStore, FileStoreOptions, is_there, no_store, place_beneath_loops,
};
use tantalum_runtime::Live;
use tantalum_runtime::live::named_file::{Named, open_named};

use crate::config::VolumeConfig;
use crate::folder::sync_name;
use crate::home_config::{ClaimConfig, HomeConfig};
use crate::home_end::open_home_file;
use crate::members::{is_known, refuse_member};
use crate::refusals::{HOME_CLAIMED, JOURNAL_THERE, NO_HOME, NO_ZERO_SECTOR};

/// The claim on the file or block device at `path`. It is also visible while the cache is in use.
///
/// # Errors
/// `Io` if the home cannot be read.
pub fn claim_of(path: &Path) -> Result<Option<Claim>> {
    let file = open_home_to_look(path)?;
    Ok(ends(&file, path)?.1.claim)
}

/// Opens the file or block device at `path`, a home or a future home, for reading.
///
/// # Errors
/// `Io` or `InvalidInput`, with advice, if it does not exist, is neither a file nor a block device, or this user may not open it.
pub fn open_home_to_look(path: &Path) -> Result<File> {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    let at = path.display();
    match open_named(path, File::options().read(true), OFlags::empty()) {
        Ok(Named::Usable(file)) => Ok(file),
        Ok(Named::Other(kind)) => Err(no_store(path, kind)),
        Err(error) if error.kind() == NotFound => {
            Err(NO_HOME.error(ErrorKind::Io, format!("the home {at} {NO_HOME}")))
        }
        Err(error) if error.kind() == PermissionDenied => {
            let context = format!(
                "{at} {NOT_ALLOWED}: run the command as root, or as a user who may read and write it"
            );
            Err(Error::io(context, error))
        }
        Err(error) => Err(Error::io(format!("opening {at}"), error)),
    }
}

/// The content of both ends of a home, and the evidence of a claim in them.
fn ends(file: &File, path: &Path) -> Result<(Vec<u8>, Evidence)> {
    let reading = || format!("reading {}", path.display());
    let held = std::io::Seek::seek(&mut &*file, std::io::SeekFrom::End(0)).context(reading)?;
    let read = |home_bytes: u64| {
        let mut bytes = Vec::new();
        for range in Extent::of(home_bytes).ranges() {
            let first = bytes.len();
            bytes.resize(first + (range.end - range.start) as usize, 0);
            file.read_exact_at(&mut bytes[first..], range.start).context(reading)?;
        }
        let evidence = claim_in(&bytes);
        Ok::<_, Error>((bytes, evidence))
    };
    let held = whole_sectors(held);
    let (bytes, evidence) = read(held)?;
    match evidence.claim.map(|claim| claim.home_bytes()) {
        // The home was shorter when it was claimed.
        Some(home_bytes) if home_bytes < held => read(whole_sectors(home_bytes)),
        _ => Ok((bytes, evidence)),
    }
}

/// Refuses a home that carries a volume's claim: that volume's flash may have newer content than the home.
pub(crate) fn refuse_claimed_home(path: &Path, overwrite: bool) -> Result<()> {
    if overwrite || !is_there(path)? {
        return Ok(());
    }
    let Some(claim) = claim_of(path)? else { return Ok(()) };
    let context = format!(
        "{} {HOME_CLAIMED} {:032x} (its journal: {}), whose flash may have newer pages than home: \
         `tantalum detach` that volume, `tantalum rescue` it if its flash is lost, or `tantalum \
         unclaim` the home if its journal is lost, too (`tantalum attach --force` takes the home \
         as it is)",
        path.display(),
        claim.volume_id(),
        claim.journal()
    );
    Err(HOME_CLAIMED.error(ErrorKind::InvalidInput, context))
}

/// Completes an interrupted change of the claim on the home of `config`. The caller gives that claim up.
pub(crate) async fn finish_claim(live: &Live, config: &VolumeConfig) -> Result<()> {
    let Some(home) = &config.home else { return Ok(()) };
    let (path, journal) = (home.home_path(&config.path), home.journal_path(&config.path));
    finish_change(live, &path, home, &journal).await
}

/// Checks whether the home of `config`, whose content becomes the volume's, can be claimed. Nothing is written.
pub(crate) fn refuse_home(live: &Live, config: &VolumeConfig) -> Result<()> {
    let Some(home) = &config.home else { return Ok(()) };
    let path = home.home_path(&config.path);
    let file = open_home_to_look(&path)?;
    let (mut bytes, Evidence { claim, zero_sectors }) = ends(&file, &path)?;
    match claim {
        // Under a claim no sector is zero. If one is, another program has written to the home, and the home is accepted as it is.
        Some(claim) if zero_sectors == 0 => claim.toggle(&mut bytes),
        _ => refuse_member(&file, &path)?,
    }
    if home.claim == ClaimConfig::Xor && !would_show(&bytes) {
        let context = format!(
            "no sector of 512 bytes in the first and the last MiB of {} is zero, {NO_ZERO_SECTOR} \
             or taken off without flash and journal: set home.claim = \"none\" (--claim none for a \
             new configuration)",
            path.display()
        );
        return Err(NO_ZERO_SECTOR.error(ErrorKind::InvalidInput, context));
    }
    refuse_used_partitions(live, &file, &path)
}

/// Whether a claim would be visible on a home with these bytes at its ends.
fn would_show(ends: &[u8]) -> bool {
    ends.chunks(SECTOR_BYTES).any(|sector| sector.iter().all(|byte| *byte == 0))
}

/// Whether a new cache over the home at `path` has no claim by default, because a claim would not be visible there and the home
/// has no content that could be mounted by mistake.
///
/// # Errors
/// `Io` if the home cannot be read.
pub fn needs_no_claim(path: &Path) -> Result<bool> {
    let file = open_home_to_look(path)?;
    let (bytes, Evidence { claim, .. }) = ends(&file, path)?;
    Ok(claim.is_none() && !would_show(&bytes) && !is_known(&file, path)?)
}

/// Refuses a block device if one of its partitions is in use.
fn refuse_used_partitions(live: &Live, file: &File, path: &Path) -> Result<()> {
    if !file.metadata().is_ok_and(|metadata| metadata.file_type().is_block_device()) {
        return Ok(());
    }
    let store = FileStore::open(live, path, FileStoreOptions::default())?;
    store.reread_partitions().context(
        || "a partition of the home is in use: unmount it, or stop the program that uses it",
    )
}

/// Completes an interrupted change of the claim on the home, as recorded in the journal.
async fn finish_change(
    live: &Live,
    home: &Path,
    config: &HomeConfig,
    journal: &Path,
) -> Result<()> {
    if !is_there(journal)? {
        return Ok(());
    }
    let store = FileStore::open(live, journal, FileStoreOptions::default())?;
    let opened = async {
        let pair = Journal::<_, PageBuf>::pair_of(&store).await?;
        let (journal, _) = Journal::<_, PageBuf>::open(store, pair, 0).await?;
        Ok::<_, Error>((pair, journal))
    };
    let (pair, journal) = match opened.await {
        Ok(opened) => opened,
        // A read error may be temporary.
        Err(error) if error.kind() == ErrorKind::Io => return Err(error),
        Err(_) => return Ok(()),
    };
    if !journal.has_unfinished_change() {
        return Ok(());
    }
    let home = open_as_claimed(live, home, config.store_options()?)?;
    let owner = HomeOwner {
        volume_id: pair.volume_id,
        read_only: false,
        accept_loss: true,
        claim_found: None,
    };
    open_home(home, Some(&journal), owner).await.map(drop)
}

/// Puts the claim of a new volume on its home. An old claim is removed first, as the caller has given it up.
pub(crate) async fn claim_home(
    live: &Live,
    config: &VolumeConfig,
    journal: &Journal<FileStore, PageBuf>,
    volume_id: u128,
) -> Result<()> {
    let Some(config_of_home) = &config.home else { return Ok(()) };
    let path = config_of_home.home_path(&config.path);
    let home = open_as_claimed(live, &path, config_of_home.store_options()?)?;
    let Evidence { claim, zero_sectors } = look(&home).await?;
    let given_up = claim.filter(|_| zero_sectors == 0);
    if let Some(claim) = given_up {
        take_off(journal, &home, claim).await?;
    }
    drop(home);
    let home = open_home_file(live, config, false)?;
    let wanted = config_of_home.wanted_claim(&config.path, volume_id, home.bytes());
    if let Some(claim) = wanted {
        put_on(journal, &home, claim).await?;
    }
    match given_up.or(wanted) {
        Some(_) => home.reread_partitions(),
        None => Ok(()),
    }
}

/// Opens a home. If its claim ends within a block, the home ends there; otherwise as given by `options`.
fn open_as_claimed(live: &Live, home: &Path, options: FileStoreOptions) -> Result<FileStore> {
    let claimed = claim_of(home)?.map(|claim| claim.home_bytes());
    let end_bytes = claimed.filter(|end| !end.is_multiple_of(BLOCK_BYTES)).or(options.end_bytes);
    FileStore::open(live, home, FileStoreOptions { end_bytes, ..options })
}

/// `bytes` rounded down to whole sectors.
fn whole_sectors(bytes: u64) -> u64 {
    bytes / SECTOR_BYTES as u64 * SECTOR_BYTES as u64
}

/// The file in which [`unclaim_home`] saves the old content. It is beside the home if that is a file. It is in the current folder
/// if the home is a device, because files beside a device node are lost at a power cut.
pub fn undo_path(home: &Path) -> PathBuf {
    let is_file = std::fs::metadata(home).is_ok_and(|metadata| metadata.is_file());
    let place = if is_file { home.as_os_str() } else { home.file_name().unwrap_or_default() };
    let mut undo = place.to_owned();
    undo.push(".unclaim");
    undo.into()
}

/// Removes the claim from the file or block device at `home` if only the home is left, or from a copy of it. Then the home has the
/// content that the cache destaged, and nothing newer. The old content is saved in `undo` first; after an interruption, the next
/// call continues from there. `undo` is removed at the end.
///
/// # Errors
/// `InvalidInput` if the home has no claim or, without `force`, if its journal exists; `Corrupt` if only a part of the home
/// carries the claim.
pub async fn unclaim_home(live: &Live, home: &Path, undo: &Path, force: bool) -> Result<Claim> {
    let is_begun = is_there(undo)?;
    let shown = claim_of(home)?;
    if let Some(claim) = shown.filter(|_| !force && !is_begun) {
        refuse_journal(live, &claim, home).await?;
    }
    let within = |error: Error| error.wrap(format!("unclaiming {}", home.display()));
    let held = std::io::Seek::seek(&mut open_home_to_look(home)?, std::io::SeekFrom::End(0));
    let held = held.context(|| format!("measuring {}", home.display()))?;
    let end_bytes = Some(whole_sectors(held));
    let options = FileStoreOptions { sparse: true, end_bytes, ..FileStoreOptions::default() };
    let store = open_as_claimed(live, home, options)?;
    if shown.is_none() && !is_begun {
        // The home has no claim: with an empty undo store, this call reports that.
        let nothing = tantalum_media::block_store::MemoryStore::new(UNDO_BYTES);
        return unclaim(&store, &nothing).await.map_err(within);
    }
    let undo_store = FileStore::create(live, undo, UNDO_BYTES, FileStoreOptions::default())?;
    sync_name(undo).context(|| format!("syncing the folder of {}", undo.display()))?;
    let unclaimed = unclaim(&store, &undo_store).await;
    if let Err(error) = &unclaimed
        && !is_begun
        && matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Corrupt)
    {
        // Nothing was changed. The original error says more than a failure here.
        let _ = std::fs::remove_file(undo);
    }
    let claim = unclaimed.map_err(within)?;
    std::fs::remove_file(undo).context(|| format!("removing {}", undo.display()))?;
    sync_name(undo).context(|| format!("syncing the folder of {}", undo.display()))?;
    store.reread_partitions()?;
    Ok(claim)
}

/// Refuses a home if its journal says that it has a cache. A copy of the home is not refused.
async fn refuse_journal(live: &Live, claim: &Claim, home: &Path) -> Result<()> {
    let path = Path::new(claim.journal());
    if !is_there(path)? || is_copy(claim, home) {
        return Ok(());
    }
    let options = FileStoreOptions { read_only: true, ..FileStoreOptions::default() };
    let owner = match FileStore::open(live, path, options) {
        Ok(store) => match Journal::<_, PageBuf>::owner_of(&store).await {
            Ok(owner) => owner,
            // A read error may be temporary.
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(_) => None,
        },
        Err(error) if matches!(error.kind(), ErrorKind::Locked | ErrorKind::Io) => {
            return Err(error);
        }
        Err(_) => None,
    };
    if owner.is_none_or(|owner| owner.volume_id != claim.volume_id()) {
        return Ok(());
    }
    let named = match claim.is_of_home_at(home) {
        true => String::new(),
        false => format!(
            "; this was claimed as {}, which is not the volume's home any more or cannot be told \
             from it, so it is taken for the home under another name: set home.path to {}, or use \
             --force if it is a copy",
            claim.home(),
            home.display()
        ),
    };
    let context = format!(
        "{}, the journal of volume {:032x}, is there: `tantalum detach` {JOURNAL_THERE}, or \
         `tantalum rescue` it if its flash is lost (--force takes the home as it is, and gives up \
         the newer pages in flash and journal){named}",
        path.display(),
        claim.volume_id()
    );
    Err(JOURNAL_THERE.error(ErrorKind::InvalidInput, context))
}

/// Whether `home` is a copy: its claim names another path, and the home there shows the same volume's claim too.
fn is_copy(claim: &Claim, home: &Path) -> bool {
    let named = Path::new(claim.home());
    let [there, here] = [named, home].map(place_beneath_loops);
    // Devices change their names, and one disk may have several.
    let is_elsewhere = there != here && !(there.is_device() && here.is_device());
    let its = claim_of(named).ok().flatten();
    // If the path does not exist, or is shortened in the claim, this proves nothing.
    is_elsewhere && its.is_some_and(|its| its.volume_id() == claim.volume_id())
}
