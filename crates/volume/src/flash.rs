//! A volume of kind `flash`: a superblock, then an SSD over zones of one store, behind a buffer if one is configured.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Refusal, Result, ResultExt};
use tantalum_buffer::Buffered;
use tantalum_ftl::{Ftl, FtlOptions, RecoveryReport, mapped_pages_max};
use tantalum_local::Tracked;
use tantalum_media::{BlockStore, FileZones, FileZonesOptions, ZoneGeometry};
use tantalum_runtime::{LifeCycle, Runtime};
use tantalum_ssd::{Ssd, SsdOptions};

use crate::config::{Kind, VolumeConfig};
use crate::copies::Copies;
use crate::layout::zones_for;
use crate::open_options::OpenOptions;
use crate::own_home::Ends;
use crate::recorded::Recorded;
use crate::refusals::{CUT_SHORT, OTHER_CAPACITY, OTHER_KIND, OTHER_ZONES, TOO_SHORT};
use crate::room::Room;
use crate::superblock::{
    ANCHORS, COPIES, FIRST_ANCHOR_BYTE, FIRST_ZONE_BYTE, SUPERBLOCK_BYTES, Superblock,
    staging_pages,
};
use crate::tiered::is_ordered;

/// An open volume of kind `flash`: the device that front ends see.
pub type FlashVolume<S> = Tracked<Recorded<Buffered<Ssd<FileZones<S>>>>>;

/// The result of opening a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenReport {
    /// The superblock in force.
    pub superblock: Superblock,
    /// The result of the FTL's recovery.
    pub recovery: RecoveryReport,
    /// Number of damaged copies of the superblock that were rewritten.
    pub superblocks_mended: u32,
    /// The ends of the home, if its claim was not intact and loss was accepted.
    pub ends: Ends,
}

/// The superblock of a new volume with configuration `config`.
pub fn plan(config: &VolumeConfig, volume_id: u128) -> Result<Superblock> {
    let staged = plan_as(config, volume_id, true)?;
    // Page numbers have 32 bits.
    let most = match config.kind {
        Kind::Flash => u64::from(u32::MAX) - 8,
        Kind::Tiered => u64::from(u32::MAX) / 2,
    };
    match staged.pages + staged.staging_pages() < most {
        true => Ok(staged),
        false => plan_as(config, volume_id, false),
    }
}

/// The superblock of a new volume, with or without pages for staging large transactions.
pub(crate) fn plan_as(
    config: &VolumeConfig,
    volume_id: u128,
    is_staged: bool,
) -> Result<Superblock> {
    let slots_per_zone = config.zone_slots()?;
    let template = ZoneGeometry {
        zones: 0,
        slots_per_zone,
        append_unit_slots: 1,
        append_overhead_slots: 1,
        append_pages_max: tantalum_media::file_zones::APPEND_PAGES_MAX,
    };
    let pages = config.capacity_pages()?;
    let (zones, is_cache) = match config.kind {
        Kind::Flash => {
            let entries = pages + staging_pages(pages, is_staged);
            (zones_for(&template, pages, entries, config.over_provisioning()?)?, false)
        }
        Kind::Tiered => (config.flash_zones()?, true),
    };
    let (growths, pages_before) = (0, 0);
    Ok(Superblock {
        volume_id,
        zones,
        slots_per_zone,
        pages,
        is_cache,
        is_staged,
        growths,
        pages_before,
    })
}

/// `config`, with the sizes in `superblock` if the volume has grown and the configuration has its present capacity or that before
/// the last growth: an interrupted growth does not update it. Zones keep the size with which they were created.
fn as_grown(config: &VolumeConfig, superblock: &Superblock) -> Result<VolumeConfig> {
    let says = config.capacity_pages()?;
    let is_grown = superblock.growths > 0;
    match is_grown && [superblock.pages, superblock.pages_before].contains(&says) {
        true => Ok(config.with_sizes_of(superblock)),
        false => Ok(config.clone()),
    }
}

/// The settings of the translation layer of a volume.
fn ftl_options(config: &VolumeConfig, superblock: &Superblock) -> Result<FtlOptions> {
    let pages = superblock.pages + superblock.staging_pages();
    let options = FtlOptions { has_grown: superblock.growths > 0, ..config.ftl_options(pages)? };
    if !superblock.is_staged {
        return Ok(options);
    }
    // Even on a full volume it must be possible to stage a transaction that frees space. So staging may use a quarter of the spare
    // pages; the rest is for cleaning.
    let most = mapped_pages_max(&superblock.geometry(), 0, |_| pages);
    let spare = most.saturating_sub(superblock.pages);
    Ok(FtlOptions { mapped_pages_max: Some(superblock.pages + spare / 4), ..options })
}

pub(crate) fn zones<S: BlockStore>(store: S, superblock: &Superblock) -> Result<FileZones<S>> {
    let options = FileZonesOptions {
        volume_id: superblock.volume_id,
        first_byte: FIRST_ZONE_BYTE,
        zones: superblock.zones,
        slots_per_zone: superblock.slots_per_zone,
    };
    Ok(FileZones::new(store, options)?.with_anchors(FIRST_ANCHOR_BYTE, ANCHORS))
}

/// Reads the superblock of `store`, for any configuration.
///
/// # Errors
/// Those of [`Copies::in_force`].
pub async fn read_superblock<S: BlockStore>(store: &S) -> Result<Superblock> {
    read_copies(store).await?.in_force()
}

/// Adds the path of the data file of `config` to an error about its superblock. A read error already has the path.
pub(crate) fn within_data(config: &VolumeConfig) -> impl Fn(Error) -> Error + '_ {
    |error| match config.data_path() {
        Ok(path) if error.kind() != ErrorKind::Io => error.wrap(path.display().to_string()),
        _ => error,
    }
}

/// Reads both copies of the superblock of `store`.
pub(crate) async fn read_copies<S: BlockStore>(store: &S) -> Result<Copies> {
    let bytes = COPIES * SUPERBLOCK_BYTES;
    if store.bytes() < bytes as u64 {
        return Err(TOO_SHORT.error(ErrorKind::Format, TOO_SHORT.words()));
    }
    let copies = store.read(0, store.buffer(bytes)).await?;
    let decoded = Copies::decode(&copies);
    store.recycle(copies);
    Ok(decoded)
}

/// Rewrites copies that are damaged or older than the last growth, and returns their number. The good copy is not touched.
pub(crate) async fn mend_copies<S: BlockStore>(
    store: &S,
    copies: &Copies,
    superblock: &Superblock,
) -> Result<u32> {
    let mut mended = 0;
    for copy in copies.to_mend(superblock) {
        write_copy(store, copy, superblock).await?;
        mended += 1;
    }
    Ok(mended)
}

/// Writes the copy with this index, from 0, durably; the other copy is not touched.
pub(crate) async fn write_copy<S: BlockStore>(
    store: &S,
    copy: usize,
    superblock: &Superblock,
) -> Result<()> {
    let mut bytes = store.buffer(SUPERBLOCK_BYTES);
    bytes.copy_from_slice(&superblock.encode());
    let at = (copy * SUPERBLOCK_BYTES) as u64;
    let written = store.write(at, bytes, true).await;
    store.recycle(written.context(|| format!("writing the superblock at byte {at}"))?);
    Ok(())
}

/// Erases the superblock of `store`, which then holds no volume.
pub(crate) async fn erase_superblock<S: BlockStore>(store: &S) -> Result<()> {
    let mut blank = store.buffer(COPIES * SUPERBLOCK_BYTES);
    blank.fill(0);
    store.write(0, blank, true).await.context(|| "erasing the old superblock")?;
    Ok(())
}

/// Creates a new, empty volume in `store`, whose content is lost. The superblock is written last: an interrupted creation leaves
/// no volume.
pub async fn create_flash<S: BlockStore + Clone>(
    store: S,
    config: &VolumeConfig,
    volume_id: u128,
) -> Result<Superblock> {
    let superblock = plan(config, volume_id)?;
    if store.bytes() < superblock.store_bytes() {
        return Err(Error::new(
            ErrorKind::OutOfSpace,
            format!(
                "the store has {} bytes, the volume needs {}",
                store.bytes(),
                superblock.store_bytes()
            ),
        ));
    }
    let options = ftl_options(config, &superblock)?;
    erase_superblock(&store).await?;
    let zones = zones(store.clone(), &superblock)?;
    let ftl = Ftl::format(zones, options).await?;
    ftl.sync().await?;
    write_copies(&store, &superblock).await?;
    Ok(superblock)
}

/// Writes `superblock` to `store`, which thereby becomes this volume.
pub(crate) async fn write_copies<S: BlockStore>(store: &S, superblock: &Superblock) -> Result<()> {
    let mut copies = store.buffer(COPIES * SUPERBLOCK_BYTES);
    for copy in copies.chunks_mut(SUPERBLOCK_BYTES) {
        copy.copy_from_slice(&superblock.encode());
    }
    store.write(0, copies, true).await.context(|| "writing the superblock")?;
    store.sync().await
}

/// Opens the volume on `store` with `options`, and starts its background tasks on `runtime`. If it is opened for writing, a
/// damaged copy of the superblock is rewritten.
///
/// # Errors
/// `Unsupported` if `config` is of another kind; `Format` if the store is no volume, has another version, or has other sizes than
/// `config`; `Corrupt` from the FTL's recovery, or if the copies of the superblock contradict each other.
pub async fn open_flash<S: BlockStore + Clone>(
    runtime: &impl Runtime,
    store: S,
    config: &VolumeConfig,
    options: OpenOptions,
) -> Result<(Rc<FlashVolume<S>>, OpenReport)> {
    if config.kind != Kind::Flash {
        let context = "a tiered volume cannot be opened without its home, and has no SHARE";
        return Err(Error::new(ErrorKind::Unsupported, context));
    }
    let within = within_data(config);
    let copies = read_copies(&store).await.map_err(&within)?;
    let superblock = copies.in_force().map_err(&within)?;
    let config = &as_grown(config, &superblock)?;
    check_sizes(&superblock, &store, config).map_err(within)?;
    let zones = zones(store.clone(), &superblock)?;
    let ftl_options = ftl_options(config, &superblock)?;
    let OpenOptions { read_only, accept_loss, .. } = options;
    let ftl_options = FtlOptions { read_only, accept_loss, ..ftl_options };
    let (ftl, recovery) = Ftl::recover(zones, ftl_options).await?;
    // Recovery succeeded, so the superblock describes these zones correctly.
    let superblocks_mended = match options.read_only {
        true => 0,
        false => mend_copies(&store, &copies, &superblock).await?,
    };
    let staging_pages = superblock.staging_pages();
    let ssd_options = SsdOptions { staging_pages, ..config.ssd_options()? };
    let ssd = Rc::new(Ssd::new(ftl, ssd_options)?);
    let buffered = Buffered::new(ssd, config.buffer_policy()?);
    let room = Room::of(store, spare_bytes(config)?);
    let recorded = Recorded::new(buffered, config.begin_recording()?, room);
    let volume = Rc::new(Tracked::new(recorded));
    volume.start(runtime);
    Ok((volume, OpenReport { superblock, recovery, superblocks_mended, ends: Ends::default() }))
}

/// Bytes that a sparse store reserves for accepted writes in case its file system is full: the write cache and two zones for
/// cleaning, but at most a quarter of a small volume.
pub(crate) fn spare_bytes(config: &VolumeConfig) -> Result<u64> {
    let page = PAGE_BYTES as u64;
    let zones = 2 * u64::from(config.zone_slots()?) * page;
    let cache = u64::from(config.ssd_options()?.cache_pages) * page;
    Ok((cache + zones).min(config.capacity_pages()? * page / 4))
}

/// Refuses a configuration that contradicts the superblock, and a store that is too short.
pub(crate) fn check_sizes<S: BlockStore>(
    superblock: &Superblock,
    store: &S,
    config: &VolumeConfig,
) -> Result<()> {
    let format = |refusal: Refusal, context: String| Err(refusal.error(ErrorKind::Format, context));
    if superblock.is_cache != (config.kind == Kind::Tiered) {
        let kinds = ["flash", "tiered"];
        let is = kinds[usize::from(superblock.is_cache)];
        let context = format!(
            "{OTHER_KIND} \"{is}\", and the configuration has another kind: name its own \
             configuration, or put the volume's own flash back"
        );
        return format(OTHER_KIND, context);
    }
    let pages = config.capacity_pages()?;
    if pages != superblock.pages {
        let page = PAGE_BYTES as u64;
        let has = if superblock.growths > 0 { "has" } else { "was created with" };
        let way_out = match pages > superblock.pages && !superblock.is_cache {
            true => " (`tantalum resize` makes it larger)",
            false => " (set it to that, or put the volume's own file back)",
        };
        return format(
            OTHER_CAPACITY,
            format!(
                "{OTHER_CAPACITY} {} bytes, but the volume {has} {}{way_out}",
                pages * page,
                superblock.pages * page
            ),
        );
    }
    let planned = plan_as(config, superblock.volume_id, superblock.is_staged)?;
    let Superblock { growths, pages_before, .. } = *superblock;
    if (Superblock { growths, pages_before, ..planned }) != *superblock {
        return format(
            OTHER_ZONES,
            format!(
                "media.zone or device.over_provisioning {OTHER_ZONES} ({} zones of {} pages then, \
             {} of {} now): set them, or media.size, back",
                superblock.zones, superblock.slots_per_zone, planned.zones, planned.slots_per_zone
            ),
        );
    }
    if store.bytes() < superblock.store_bytes() {
        let otherwise = match is_ordered(config) {
            true => " (without one, `tantalum rescue --force` brings home to its last epoch)",
            false => "",
        };
        return format(
            CUT_SHORT,
            format!(
                "the volume needs {} bytes and the store has {}: {CUT_SHORT}; put all of it back, from a copy{otherwise}",
                superblock.store_bytes(),
                store.bytes()
            ),
        );
    }
    Ok(())
}
