//! A volume of kind `tiered`: an SSD over zones of one store as a cache of a home in another store, with a journal beside the
//! home, behind a buffer if one is configured.
use std::rc::Rc;
use tantalum_base::size::human_bytes;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, Result, ResultExt, Version};
use tantalum_buffer::Buffered;
use tantalum_cache::claim::{
    Claim, Claimed, HomeOwner, Watched, changes, doubt, forget_marks, open_home, release, settle,
};
use tantalum_cache::journal::{Closed, Journal, Pair, apply, is_no_journal};
use tantalum_cache::refusals::CHANGED;
use tantalum_cache::{
    Destage, Image, OpenJournal, Tiered, TieredOptions, TieredParts, recover_flash,
};
use tantalum_ftl::{CacheOptions, Ftl, FtlOptions, RecoveryReport};
use tantalum_local::Tracked;
use tantalum_media::block_store::StoreLayer;
use tantalum_media::{BlockStore, FileZones, ZoneMedia};
use tantalum_runtime::{LifeCycle, Runtime};
use tantalum_ssd::{Drive, SsdOptions, Transactional};

use crate::config::VolumeConfig;
use crate::fault_points::Fault;
use crate::flash::{
    OpenReport, check_sizes, mend_copies, read_copies, spare_bytes, within_data, zones,
};
use crate::home_config::HomeConfig;
use crate::open_options::OpenOptions;
use crate::own_home::{Ends, accept_home, compare, prove_first};
use crate::recorded::Recorded;
use crate::refusals::{DENSE, GIVEN_BACK};
use crate::room::Room;
use crate::superblock::Superblock;

/// The cache of a tiered volume.
pub type TieredDevice<R, S> = Tiered<R, FileZones<S>, Image<Claimed<Watched<S>>>, S>;

/// An open volume of kind `tiered`: the device that front ends see.
pub type TieredVolume<R, S> = Tracked<Recorded<Buffered<Transactional<TieredDevice<R, S>>>>>;

/// Number of pages of an epoch whose content stays in memory until they are on the home: 64 MiB.
const JOURNAL_MEMORY_PAGES: u32 = 16384;

/// The context of an error if the journal cannot be opened, with advice.
const JOURNAL_REFUSED: &str = "the journal beside the home (put its own back, or the volume's own \
                               flash if the flash is another volume's; or, if no other cache had \
                               this home since, move this journal away and set home.destage = \
                               \"dense\": the volume gets a new one; `tantalum attach --force` \
                               gives up the newer pages in the flash)";

/// The context of an error if the journal cannot be read now.
const JOURNAL_UNREAD: &str = "the journal beside the home cannot be read now; nothing was changed, and this may pass: try again";

/// The stores of a tiered volume.
#[derive(Clone)]
pub struct TieredStores<S> {
    /// The flash.
    pub flash: S,
    /// The home.
    pub home: S,
    /// The journal beside the home. A volume with `"dense"` destaging may be read without one.
    pub journal: Option<S>,
}

pub(crate) fn home_config(config: &VolumeConfig) -> Result<&HomeConfig> {
    config
        .home
        .as_ref()
        .ok_or_else(|| Error::new(ErrorKind::InvalidInput, "a tiered volume needs a [home] table"))
}

fn ftl_options<M: ZoneMedia>(
    config: &VolumeConfig,
    media: &M,
    superblock: &Superblock,
) -> Result<FtlOptions> {
    let staging_pages = superblock.staging_pages();
    let cache = home_config(config)?.cache_options(&media.geometry())?;
    let cache = Some(CacheOptions { staging_pages, ..cache });
    // Only commits share pages. A limit would make them write copies instead, and copies would need room.
    let share_entries_max = None;
    let options = config.ftl_options(superblock.pages + staging_pages)?;
    Ok(FtlOptions { cache, share_entries_max, ..options })
}

/// The settings of the flash's device. An older volume has no staging pages, so its settings have none.
///
/// # Errors
/// `InvalidInput` if the settings need staging pages.
fn ssd_options(config: &VolumeConfig, superblock: &Superblock) -> Result<SsdOptions> {
    let options = config.ssd_options()?;
    let most = options.staged_pages_max;
    if !superblock.is_staged
        && config.device.transaction_max.is_some()
        && most > options.transaction_pages_max
    {
        let context = "device.transaction_max is over device.transaction_memory, and this volume was made before \
                       transactions could be larger";
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    Ok(SsdOptions { staging_pages: superblock.staging_pages(), ..options })
}

pub(crate) fn pair(superblock: &Superblock) -> Pair {
    Pair { volume_id: superblock.volume_id, pages: superblock.pages }
}

/// Formats flash and journal for a new volume over `home`, whose content becomes the volume's. The flash comes last: an
/// interrupted creation leaves no volume.
///
/// # Errors
/// `OutOfSpace` if a store is too small.
pub async fn format_tiered<S: BlockStore + Clone>(
    stores: &TieredStores<S>,
    config: &VolumeConfig,
    superblock: &Superblock,
) -> Result<()> {
    let needed = config.size_bytes()?;
    if stores.home.bytes() < needed {
        let context = format!("home has {} bytes, the volume needs {needed}", stores.home.bytes());
        return Err(Error::new(ErrorKind::OutOfSpace, context));
    }
    let media = zones(stores.flash.clone(), superblock)?;
    let options = ftl_options(config, &media, superblock)?;
    if let Some(journal) = &stores.journal {
        drop(Journal::<S, PageBuf>::format(journal.clone(), pair(superblock), 0).await?);
        // The flash is formatted after this: marks that another cache left must not contradict this one.
        forget_marks(journal.clone()).await?;
    }
    let ftl = Ftl::format(media, options).await?;
    ftl.sync().await
}

/// Opens the volume on `stores` with `options`, and starts its background tasks on `runtime`.
///
/// # Errors
/// As [`open_flash`](crate::open_flash); `Corrupt` if the home does not have the content that the flash expects: it is another
/// home, or another program has changed it.
pub async fn open_tiered<R: Runtime, S: BlockStore + Clone>(
    runtime: &R,
    stores: TieredStores<S>,
    config: &VolumeConfig,
    options: OpenOptions,
    unix_ms: impl Fn() -> u64 + 'static,
) -> Result<(Rc<TieredVolume<R, S>>, OpenReport)> {
    let within = within_data(config);
    let copies = read_copies(&stores.flash).await.map_err(&within)?;
    let superblock = copies.in_force().map_err(&within)?;
    check_sizes(&superblock, &stores.flash, config).map_err(within)?;
    Image::<_, PageBuf>::new(stores.home.clone(), superblock.pages).context(|| "the home")?;
    let at_home = |error: Error| error.wrap(told_home(config));
    let flash = stores.flash.clone();
    let claim_found = prove_first(runtime, &stores, config, &superblock, options).await?;
    let unix_ms = Box::new(unix_ms);
    let (tiered, recovery) =
        open_cache(runtime, stores, config, &superblock, options, claim_found, unix_ms).await?;
    let superblocks_mended = match options.read_only {
        true => 0,
        false => mend_copies(&flash, &copies, &superblock).await?,
    };
    let ssd = *tiered.drive().options();
    let ends = match (options.accept_loss, options.read_only) {
        (false, _) => compare(&tiered).await.map(|()| Ends::default()),
        (true, true) => Ok(Ends::default()),
        (true, false) => accept_home(&tiered).await,
    };
    let ends = ends.map_err(at_home)?;
    if !options.read_only {
        claim_home(&tiered, config, &superblock).await?;
    }
    let device = with_transactions(tiered, &ssd);
    let buffered = Buffered::new(Rc::new(device), config.buffer_policy()?);
    let room = Room::of(flash, spare_bytes(config)?);
    let recorded = Recorded::new(buffered, config.begin_recording()?, room);
    let recorded = recorded.ending_in(config.last_page()?);
    let volume = Rc::new(Tracked::new(recorded));
    volume.start(runtime);
    Ok((volume, OpenReport { superblock, recovery, superblocks_mended, ends }))
}

/// Opens flash, journal and home as a cache, which is not started. `claim_found` is the result of [`prove_first`]. Unless
/// `options` are read-only, an interrupted change of the home's claim is finished, and the flash gets a new checkpoint.
pub(crate) async fn open_cache<R: Runtime, S: BlockStore + Clone>(
    runtime: &R,
    stores: TieredStores<S>,
    config: &VolumeConfig,
    superblock: &Superblock,
    options: OpenOptions,
    claim_found: Option<Claim>,
    unix_ms: Box<dyn Fn() -> u64>,
) -> Result<(Rc<TieredDevice<R, S>>, RecoveryReport)> {
    let TieredStores { flash, home, journal } = stores;
    let marks = journal.clone();
    let mut journal = match journal {
        None => None,
        Some(store) => Some(open_journal(store, pair(superblock), config, options).await?),
    };
    let OpenOptions { read_only, accept_loss, .. } = options;
    let volume_id = superblock.volume_id;
    let owner = HomeOwner { volume_id, read_only, accept_loss, claim_found };
    let at_home = |error: Error| error.wrap(told_home(config));
    let (home, is_changed) =
        watch_home(home, journal.as_ref().zip(marks), options).await.map_err(at_home)?;
    let opened = open_home(home, journal.as_ref().map(|(journal, _)| journal), owner).await;
    let home = opened.map_err(at_home)?;
    if is_changed {
        doubt(&home);
    }
    let home = Rc::new(Image::new(home, superblock.pages)?);
    let media = zones(flash, superblock)?;
    let ftl_options = ftl_options(config, &media, superblock)?;
    let ftl_options = FtlOptions { read_only, accept_loss, ..ftl_options };
    let (ftl, recovery) = recover_flash(media, ftl_options, &*home, journal.as_mut()).await?;
    let drive = Rc::new(Drive::new(ftl, ssd_options(config, superblock)?)?);
    // A sixteenth of the room is left to the index. Without it an epoch could have hardly any range of zeros, and each trim would
    // take an epoch of its own.
    let room = journal.as_ref().map(|(journal, _)| journal.pages_max());
    let room = room.map(|room| room - room / 16);
    let options = tiered_options(config, &drive, room)?;
    let runtime = runtime.clone();
    let parts = TieredParts { runtime, drive, home, journal, unix_ms, options };
    Ok((Tiered::new(parts)?, recovery))
}

/// Checks by the marks in the journal whether another program changed the home, and watches the home from now on if the volume is
/// writable. Returns whether it was changed. A changed home is refused unless loss is accepted; after a detach or a rescue it is
/// always refused.
async fn watch_home<S: BlockStore>(
    home: S,
    journal: Option<(&OpenJournal<S, PageBuf>, S)>,
    options: OpenOptions,
) -> Result<(Watched<S>, bool)> {
    let watched = Watched::new(home);
    let Some(((journal, _), marks)) = journal else { return Ok((watched, false)) };
    let OpenOptions { read_only, accept_loss, .. } = options;
    // This is checked after a rescue too: a flash that returns does not know of later changes to the home.
    let changed = match Fault::RescuedHomeUnwatched.is_planted() {
        true => None,
        false => changes(watched.inner(), &marks).await?,
    };
    if let Some(change) = &changed {
        if journal.is_released() {
            return Err(given_back(change));
        }
        if !accept_loss {
            return Err(changed_behind(change));
        }
    }
    if !read_only {
        watched.watch(marks, !accept_loss && !Fault::RescuedHomeUnwatched.is_planted()).await?;
    }
    Ok((watched, changed.is_some()))
}

fn given_back(change: &str) -> Error {
    let context = format!(
        "{GIVEN_BACK}: {change}. The flash has older pages, which are not wanted any more. Make \
         sure that this is still its home, as the names of devices change; then `tantalum attach \
         --force` puts a new cache over the home as it is"
    );
    GIVEN_BACK.error(ErrorKind::Corrupt, context)
}

fn changed_behind(change: &str) -> Error {
    let context = format!(
        "{CHANGED}, or it is another disk: {change} (put its own home back, or correct home.path; \
         `tantalum check --accept-loss` takes this home with the newer pages of the flash over it, \
         and refuses another disk; `tantalum attach --force` takes this home whatever it is, and \
         gives up the flash)"
    );
    CHANGED.error(ErrorKind::Corrupt, context)
}

/// The home, in the words of errors.
pub(crate) fn told_home(config: &VolumeConfig) -> String {
    let path = config.home.as_ref().map(|home| home.home_path(&config.path));
    format!("the home {}", path.unwrap_or_default().display())
}

/// Records durably, on the home and in the journal, that the home belongs to this volume. Must precede the first acknowledgement.
async fn claim_home<R: Runtime, S: BlockStore>(
    tiered: &TieredDevice<R, S>,
    config: &VolumeConfig,
    superblock: &Superblock,
) -> Result<()> {
    let Some(journal) = tiered.home_journal() else { return Ok(()) };
    let home = tiered.home().store();
    let wanted = home_config(config)?.wanted_claim(
        &config.path,
        superblock.volume_id,
        BlockStore::bytes(home),
    );
    settle(journal, home, wanted).await?;
    match home.claim() {
        Some(_) => home.inner().forget().await?,
        None => home.inner().mark().await?,
    }
    journal.own_home().await
}

/// Adds transactions. Their size is unlimited if the flash has staging pages.
fn with_transactions<R: Runtime, S: BlockStore>(
    tiered: Rc<TieredDevice<R, S>>,
    ssd: &SsdOptions,
) -> Transactional<TieredDevice<R, S>> {
    let (staging, is_used) = tiered.staging();
    if staging.pages == 0 {
        return Transactional::over(tiered, ssd.transactions_max, ssd.transaction_pages_max);
    }
    // Pages of zeros are not staged, so a transaction may even write all pages.
    let pages_max = u64::from(ssd.staged_pages_max).min(staging.first.0) as u32;
    let over = Transactional::over(tiered, ssd.transactions_max, pages_max);
    over.staged_in(staging, is_used, ssd.transaction_pages_max)
}

/// Opens the journal of `pair`. With dense destaging, a new journal replaces a damaged or missing one if the volume is writable,
/// because the flash has everything. A journal that cannot be read now counts as neither damaged nor missing.
async fn open_journal<S: BlockStore + Clone>(
    store: S,
    pair: Pair,
    config: &VolumeConfig,
    options: OpenOptions,
) -> Result<OpenJournal<S, PageBuf>> {
    let opened = Journal::open(store.clone(), pair, JOURNAL_MEMORY_PAGES).await;
    let may_be_replaced = match &opened {
        Ok(_) => false,
        Err(error) if is_no_journal(error) => match Journal::<S, PageBuf>::pair_of(&store).await {
            Ok(its) => its == pair,
            Err(error) => is_no_journal(&error),
        },
        Err(_) => false,
    };
    if !may_be_replaced || options.read_only || is_ordered(config) {
        let may_pass = opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::Io);
        let says = if may_pass { JOURNAL_UNREAD } else { JOURNAL_REFUSED };
        let path = home_config(config)?.journal_path(&config.path);
        return opened.context(|| format!("{}, {says}", path.display()));
    }
    let journal = Journal::format(store, pair, JOURNAL_MEMORY_PAGES).await?;
    // Pages may have been destaged under the previous journal.
    journal.home_may_have(Version::NEVER).await?;
    Ok((journal, None))
}

/// The settings of the cache. The journal has `room` for the `home.dirty_max` with which it was created. No more pages may be
/// dirty, even if the setting is larger now.
fn tiered_options<M: ZoneMedia>(
    config: &VolumeConfig,
    drive: &Drive<M>,
    room: Option<u64>,
) -> Result<TieredOptions> {
    let home = home_config(config)?;
    let dirty = drive.ftl().options().cache.map_or(0, |cache| cache.dirty_pages_max);
    let room = room.filter(|room| is_ordered(config) && *room < dirty);
    if let Some(room) = room {
        let bytes = |pages: u64| human_bytes(pages * PAGE_BYTES as u64);
        tracing::warn!(
            "home.dirty_max = {:?} would be {}, and the journal beside the home has room for {}: no more than that may be \
             dirty. For more, `tantalum detach` the volume and attach it again",
            home.dirty_max,
            bytes(dirty),
            bytes(room),
        );
    }
    home.tiered_options(room.unwrap_or(dirty), drive.options())
}

/// The result of a rescue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RescueReport {
    /// The epoch that the home has now, and the time when its last change was acknowledged. `None` if no epoch was ever destaged:
    /// the home is as it was when the volume was created.
    pub epoch: Option<Closed>,
    /// Pages that were written from the journal to the home.
    pub pages: u64,
}

/// Brings `home` to the last epoch recorded in the `journal` beside it, without the flash.
///
/// # Errors
/// Those of opening the journal; the stores'; `InvalidInput` if pages were destaged without epochs.
pub async fn rescue<S: BlockStore + Clone>(journal: S, home: S) -> Result<RescueReport> {
    let pair = Journal::<S, PageBuf>::pair_of(&journal).await.context(|| "the journal")?;
    let marks = journal.clone();
    let opened = Journal::<S, PageBuf>::open(journal, pair, 0).await?;
    let (home, _) = watch_home(home, Some((&opened, marks)), OpenOptions::default()).await?;
    let (journal, committed) = opened;
    if journal.is_without_epochs() {
        let context = format!(
            "pages were destaged one by one (home.destage = \"dense\"): {DENSE}: put the volume's \
             flash back; if it is lost, `tantalum attach --force` takes the home as it is"
        );
        return Err(DENSE.error(ErrorKind::InvalidInput, context));
    }
    let home = open_home(home, Some(&journal), owner_of(&pair)).await?;
    let home = Image::new(home, pair.pages).context(|| "the home")?;
    let pages = match committed {
        Some(_) => apply(&journal, &home, 8).await?.pages,
        None => 0,
    };
    give_back(&journal, home.store()).await?;
    Ok(RescueReport { epoch: journal.last_committed(), pages })
}

/// Makes `home`, which has the journal's content already, an image of its own without a claim. The journal's content is never
/// written to it again.
///
/// # Errors
/// Those of opening them; the stores'.
pub(crate) async fn release_home<S: BlockStore + Clone>(journal: S, home: S) -> Result<()> {
    let pair = Journal::<S, PageBuf>::pair_of(&journal).await?;
    let marks = journal.clone();
    let opened = Journal::<S, PageBuf>::open(journal, pair, 0).await?;
    let (home, _) = watch_home(home, Some((&opened, marks)), OpenOptions::default()).await?;
    let (journal, _) = opened;
    let home = open_home(home, Some(&journal), owner_of(&pair)).await?;
    give_back(&journal, &home).await
}

/// Makes `home` an image of its own, without a claim, and records a mark of its present state.
async fn give_back<S: BlockStore>(
    journal: &Journal<S, PageBuf>,
    home: &Claimed<Watched<S>>,
) -> Result<()> {
    release(journal, home).await?;
    home.inner().mark().await
}

fn owner_of(pair: &Pair) -> HomeOwner {
    HomeOwner { volume_id: pair.volume_id, read_only: false, accept_loss: false, claim_found: None }
}

/// Whether pages are destaged in epochs.
pub fn is_ordered(config: &VolumeConfig) -> bool {
    config.home.as_ref().is_some_and(|home| home.destage() == Destage::Ordered)
}
