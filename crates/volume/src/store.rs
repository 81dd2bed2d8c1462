//! The stores of a volume, as configured.
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result, ResultExt};
use tantalum_cache::refusals::{CHANGED, CLAIM_MISSING, OTHERS_HOME, WRITTEN_OVER};
use tantalum_media::block_store::{
    Counting, EitherStore, FileStore, FileStoreOptions, MemoryStore, Salvage, StoreCounters,
    StoreLayer, is_there,
};
use tantalum_runtime::Live;

use crate::config::{Kind, MediaType, VolumeConfig};
use crate::flash::{create_flash, erase_superblock, plan, write_copies};
use crate::home_config::HomeConfig;
use crate::home_end::open_home_file;
use crate::lost_flash::{refuse_blank_flash, without_either, without_flash, without_journal};
use crate::open_options::OpenOptions;
use crate::permissions::new_file_mode;
use crate::places::journal_in_memory;
use crate::refusals::{DENSE, GIVEN_BACK, NOT_SHOWN};
use crate::tiered::{
    RescueReport, TieredStores, format_tiered, home_config, is_ordered, release_home, rescue,
    told_home,
};
use crate::unseen_claim::refuse_unseen;
use std::path::{Path, PathBuf};

/// A file, a block device or memory; its operations are counted.
pub type VolumeStore = Counting<Salvage<EitherStore<FileStore, MemoryStore>>>;

/// A store over `below` that counts into `counters`. If a loss is accepted, unreadable blocks read as zeros.
fn over(
    below: EitherStore<FileStore, MemoryStore>,
    accept_loss: bool,
    counters: &StoreCounters,
) -> VolumeStore {
    Counting::new(Salvage::new(below, accept_loss), counters.clone())
}

/// Opens the store of `config` and locks it; with the `read_only` option, it shares the lock with other readers.
/// Operations are counted into `counters`. Memory starts as a new, empty volume.
///
/// # Errors
/// `Io` if there is no such file; as [`FileStore::open`].
pub async fn open_store(
    live: &Live,
    config: &VolumeConfig,
    options: OpenOptions,
    counters: &StoreCounters,
) -> Result<VolumeStore> {
    let OpenOptions { read_only, accept_loss, .. } = options;
    match config.media.media_type {
        MediaType::File => {
            let path = config.data_path()?;
            if !is_there(&path)? {
                return Err(without_flash(live, &path, config).await?);
            }
            let sparse = config.media.sparse;
            let cached_reads = config.media.system_cache.unwrap_or(options.system_cache);
            let defaults = FileStoreOptions::default();
            let options = FileStoreOptions { read_only, sparse, cached_reads, ..defaults };
            let file = EitherStore::One(FileStore::open(live, &path, options)?);
            Ok(over(file, accept_loss, counters))
        }
        MediaType::Memory => {
            debug_assert_eq!(config.kind, Kind::Flash, "a tiered volume has several stores");
            let memory = MemoryStore::new(plan(config, 0)?.store_bytes());
            let store = over(EitherStore::Other(memory), false, counters);
            create_flash(store.clone(), config, 0).await?;
            Ok(store)
        }
    }
}

/// Opens the stores of the tiered volume of `config`, as [`open_store`] does.
///
/// # Errors
/// As [`open_store`].
pub async fn open_tiered_stores(
    live: &Live,
    config: &VolumeConfig,
    options: OpenOptions,
    counters: &StoreCounters,
) -> Result<TieredStores<VolumeStore>> {
    let home = home_config(config)?;
    let OpenOptions { read_only, accept_loss, .. } = options;
    if config.media.media_type == MediaType::Memory {
        return open_in_memory(config, home, counters).await;
    }
    let journal_path = home.journal_path(&config.path);
    let open = |path: &Path| {
        let options = FileStoreOptions { read_only, sparse: true, ..FileStoreOptions::default() };
        let file = EitherStore::One(FileStore::open(live, path, options)?);
        Ok::<_, Error>(over(file, accept_loss, counters))
    };
    let flash = open_store(live, config, options, counters).await?;
    refuse_blank_flash(live, &flash, config).await?;
    if let Some(journal) = journal_in_memory(config) {
        tracing::warn!(
            "{}, the journal beside the home, is in memory, and lost with the next start of the machine: stop \
             the server, move it to storage that stays, and set home.journal",
            journal.display()
        );
    }
    // The home comes first: if it is missing, no journal is made, and the error is about the home. Losses on the home are never
    // accepted: it has no checksums, so zeros for unreadable blocks would count as its content.
    let home = over(EitherStore::One(open_home_file(live, config, read_only)?), false, counters);
    let journal = match is_there(&journal_path)? {
        true => Some(open(&journal_path)?),
        // Without epochs the flash has everything, so a new journal may replace a missing one.
        false if is_ordered(config) => return Err(without_journal(&journal_path)),
        false if read_only => None,
        false => Some(over(EitherStore::One(make_journal(live, config)?), accept_loss, counters)),
    };
    Ok(TieredStores { flash, home, journal })
}

/// The journal that an opening with `options` would make, because there is none.
pub(crate) fn journal_to_make(
    config: &VolumeConfig,
    options: OpenOptions,
) -> Result<Option<PathBuf>> {
    let is_made =
        !options.read_only && !is_ordered(config) && config.media.media_type == MediaType::File;
    let journal = home_config(config)?.journal_path(&config.path);
    Ok((is_made && !is_there(&journal)?).then_some(journal))
}

/// Creates the file, or uses the device, for the journal of the tiered volume of `config`.
///
/// # Errors
/// As [`FileStore::create`].
pub(crate) fn make_journal(live: &Live, config: &VolumeConfig) -> Result<FileStore> {
    let (sparse, mode) = (is_journal_sparse(config), new_file_mode(config));
    let options = FileStoreOptions { sparse, mode, ..FileStoreOptions::default() };
    let path = home_config(config)?.journal_path(&config.path);
    FileStore::create(live, &path, journal_bytes(config)?, options)
}

/// The size of the journal of `config`.
pub(crate) fn journal_bytes(config: &VolumeConfig) -> Result<u64> {
    let home = home_config(config)?;
    Ok(home.journal_bytes(&home.cache_options(&plan(config, 0)?.geometry())?))
}

/// Whether the journal is created without allocating its content.
pub(crate) fn is_journal_sparse(config: &VolumeConfig) -> bool {
    // Without epochs only its header is written.
    config.media.sparse || !is_ordered(config)
}

/// Opens journal and home of the tiered volume of `config`, whose flash is lost.
///
/// # Errors
/// `InvalidInput` if pages are not destaged in epochs; as [`open_store`].
async fn open_rescue_stores(
    live: &Live,
    config: &VolumeConfig,
) -> Result<(VolumeStore, VolumeStore)> {
    let Some(home) = config.home.as_ref().filter(|_| is_ordered(config)) else {
        let context = format!(
            "with home.destage = \"dense\" {DENSE}: put the volume's flash back; if it is \
             lost, `tantalum attach --force` takes the home as it is"
        );
        return Err(DENSE.error(ErrorKind::InvalidInput, context));
    };
    let journal = home.journal_path(&config.path);
    if !is_there(&journal)? {
        return Err(without_either(&journal, &home.home_path(&config.path)));
    }
    Ok((open_journal_file(live, &journal)?, open_home_alone(live, config)?))
}

/// Brings the home of `config`, whose flash is lost, to the last epoch recorded in the journal beside it. A home that cannot show
/// its claim may be another disk, and is rescued only by `force`.
///
/// # Errors
/// `InvalidInput` if pages are not destaged in epochs; as [`open_store`] and [`rescue`].
pub async fn rescue_volume(
    live: &Live,
    config: &VolumeConfig,
    force: bool,
) -> Result<RescueReport> {
    let (journal, home) = open_rescue_stores(live, config).await?;
    if !force {
        let is_shown = refuse_unseen(journal.clone(), &home).await;
        is_shown.map_err(|error| named(error, config))?;
    }
    let rescued = rescue(journal, home.clone()).await.map_err(|error| named(error, config))?;
    reread_partitions(&home);
    Ok(rescued)
}

/// The error, with the path of the home if it is refused.
fn named(error: Error, config: &VolumeConfig) -> Error {
    let told = error.to_string();
    let refusals = [OTHERS_HOME, CLAIM_MISSING, WRITTEN_OVER, CHANGED, GIVEN_BACK, NOT_SHOWN];
    match refusals.iter().any(|refusal| told.contains(refusal.words())) {
        true => error.wrap(told_home(config)),
        false => error,
    }
}

/// Opens a home without flash and journal.
fn open_home_alone(live: &Live, config: &VolumeConfig) -> Result<VolumeStore> {
    let home = EitherStore::One(open_home_file(live, config, false)?);
    Ok(over(home, false, &StoreCounters::default()))
}

/// Opens a journal without flash and home.
fn open_journal_file(live: &Live, path: &Path) -> Result<VolumeStore> {
    let options = FileStoreOptions { sparse: true, ..FileStoreOptions::default() };
    let file = EitherStore::One(FileStore::open(live, path, options)?);
    Ok(over(file, false, &StoreCounters::default()))
}

/// Makes the kernel read the partition table of a home again, after its ends have changed.
pub(crate) fn reread_partitions(home: &VolumeStore) {
    if let EitherStore::One(file) = home.inner().inner()
        && let Err(error) = file.reread_partitions()
    {
        tracing::warn!(%error, "the kernel did not read the partition table of the home again");
    }
}

/// Releases home and journal of the volume of `config`, then erases the superblock on its flash.
///
/// # Errors
/// As [`open_store`].
pub async fn forget_volume(live: &Live, config: &VolumeConfig) -> Result<()> {
    let counters = StoreCounters::default();
    let store = open_store(live, config, OpenOptions::default(), &counters).await?;
    let journal = home_config(config)?.journal_path(&config.path);
    if is_ordered(config) || is_there(&journal)? {
        // Home and journal are released first. Until the flash is given up, the volume can be opened and detached again.
        let journal = open_journal_file(live, &journal)?;
        let home = open_home_alone(live, config)?;
        let released = release_home(journal, home.clone()).await;
        let released = released.map_err(|error| named(error, config));
        released.context(|| "releasing the home, and the journal beside it")?;
        reread_partitions(&home);
    }
    erase_superblock(&store).await
}

async fn open_in_memory(
    config: &VolumeConfig,
    home: &HomeConfig,
    counters: &StoreCounters,
) -> Result<TieredStores<VolumeStore>> {
    let superblock = plan(config, 0)?;
    let memory = |bytes| over(EitherStore::Other(MemoryStore::new(bytes)), false, counters);
    let cache = home.cache_options(&superblock.geometry())?;
    let stores = TieredStores {
        flash: memory(superblock.store_bytes()),
        home: memory(config.size_bytes()?),
        journal: Some(memory(home.journal_bytes(&cache).next_multiple_of(PAGE_BYTES as u64))),
    };
    format_tiered(&stores, config, &superblock).await?;
    write_copies(&stores.flash, &superblock).await?;
    Ok(stores)
}

#[cfg(test)]
mod tests {
    use super::open_store;
    use crate::config::{MediaType, VolumeConfig};
    use crate::create_volume;
    use crate::open_options::OpenOptions;
    use tantalum_media::BlockStore;
    use tantalum_media::block_store::StoreCounters;
    use tantalum_runtime::Live;
    use tantalum_runtime::live::LiveOptions;

    fn open(dir: &std::path::Path, media: &str) -> (Live, VolumeConfig) {
        let text = format!("kind = \"flash\"\n[media]\n{media}\n[device]\ncapacity = \"4MiB\"\n");
        let config = VolumeConfig::parse(&text, &dir.join("volume.toml")).unwrap();
        (Live::new(LiveOptions::default()).unwrap(), config)
    }

    #[test]
    fn buffers_go_round() {
        let dir = tempfile::tempdir().unwrap();
        for media in ["type = \"memory\"", "type = \"file\"\npath = \"data\""] {
            let (live, config) = open(dir.path(), media);
            let handle = live.clone();
            live.run(async move {
                if config.media.media_type == MediaType::File {
                    create_volume(&handle, &config, false).await.unwrap();
                }
                let store =
                    open_store(&handle, &config, OpenOptions::default(), &StoreCounters::default())
                        .await
                        .unwrap();
                let buf = store.buffer(3 << 20);
                let address = buf.as_ptr();
                store.recycle(buf);
                assert_eq!(store.buffer(3 << 20).as_ptr(), address, "{media}");
            });
        }
    }

    #[test]
    fn a_file_is_prepared() {
        let dir = tempfile::tempdir().unwrap();
        let (live, config) = open(dir.path(), "type = \"file\"\npath = \"data\"");
        let path = config.data_path().unwrap();
        std::fs::File::create(&path).unwrap().set_len(1 << 20).unwrap();
        let handle = live.clone();
        live.run(async move {
            let store =
                open_store(&handle, &config, OpenOptions::default(), &StoreCounters::default())
                    .await
                    .unwrap();
            store.prepare(0, 1 << 20).await.unwrap();
        });
        use std::os::unix::fs::MetadataExt;
        assert!(std::fs::metadata(&path).unwrap().blocks() >= (1 << 20) / 512);
    }
}
