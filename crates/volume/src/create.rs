//! Making a new volume where there may be something already.
use std::path::Path;
use tantalum_base::{Error, ErrorKind, Result, ResultExt};
use tantalum_media::BlockStore;
use tantalum_media::block_store::{FileStore, FileStoreOptions};
use tantalum_runtime::Live;

use crate::config::{MediaType, VolumeConfig};
use crate::flash::{FlashVolume, plan, read_superblock};
use crate::superblock::{FIRST_ZONE_BYTE, Superblock};

/// Stores up to this size are written over once at creation, so that no first write to a zone
/// pays for the file system's allocation; larger ones zone by zone, as they are used.
const PREPARE_BYTES_MAX: u64 = 1 << 30;

/// Makes the volume that `config` describes. `overwrite` gives up what is there.
///
/// # Errors
/// `InvalidInput` where something is there already and `overwrite` is not set, or where the
/// configuration needs no creation; `OutOfSpace` where there is no room.
pub async fn create_volume(
    live: &Live,
    config: &VolumeConfig,
    overwrite: bool,
) -> Result<Superblock> {
    if config.media.media_type == MediaType::Memory {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "a volume in memory is created each time it is opened",
        ));
    }
    let path = config.data_path()?;
    if !overwrite {
        refuse_existing(live, &path).await?;
    }
    let superblock = plan(config, new_volume_id()?)?;
    let bytes = superblock.store_bytes();
    let store = FileStore::create(live, &path, bytes, FileStoreOptions::default())?;
    if bytes <= PREPARE_BYTES_MAX && store.bytes() >= bytes {
        store.prepare(FIRST_ZONE_BYTE, bytes - FIRST_ZONE_BYTE).await?;
    }
    FlashVolume::create(store, config, superblock.volume_id).await
}

/// Refuses where `path` holds anything: a volume, or a file that is not empty.
async fn refuse_existing(live: &Live, path: &Path) -> Result<()> {
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(()) };
    if metadata.is_file() && metadata.len() == 0 {
        return Ok(());
    }
    let store = FileStore::open(live, path, FileStoreOptions::default())?;
    let what = match read_superblock(&store).await {
        Err(error) if error.kind() == ErrorKind::Format && metadata.is_file() => "a file",
        // Any block device has bytes; only a volume on it is worth a warning.
        Err(error) if error.kind() == ErrorKind::Format => return Ok(()),
        _ => "a volume",
    };
    Err(Error::new(
        ErrorKind::InvalidInput,
        format!("{} is {what} already; --force gives up what it holds", path.display()),
    ))
}

/// An identity for a new volume.
fn new_volume_id() -> Result<u128> {
    let mut id = [0; 16];
    let mut random = std::fs::File::open("/dev/urandom").context(|| "opening /dev/urandom")?;
    std::io::Read::read_exact(&mut random, &mut id).context(|| "reading /dev/urandom")?;
    Ok(u128::from_le_bytes(id))
}
