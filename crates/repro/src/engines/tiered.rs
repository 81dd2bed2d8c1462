//! The engine's own cache on flash over a disk, in virtual time: as in a tiered volume, but with the home and the journal on a simulated
//! disk.
use std::path::Path;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf, Result, Stamp};
use tantalum_cache::journal::{Journal, Pair};
use tantalum_cache::{Image, OpenJournal, Tiered, TieredParts, recover_flash};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::Fate;
use tantalum_models::disk::Platters;
use tantalum_models::profile::DiskConfig;
use tantalum_models::{DeviceConfig, DeviceSpec, Linked};
use tantalum_runtime::{DeviceKind, LifeCycle, Opening, Runtime, Virtual};
use tantalum_ssd::{Drive, SsdOptions, Transactional};
use tantalum_volume::{HomeConfig, VolumeConfig};

use super::measure::Zones;
use super::partition::{Disk, Partition};

/// The disk that DuraSSD's paper compares with its drives.
const DISK: &str = "cheetah-15k6";

/// Pages of an epoch whose contents stay in memory: as in a tiered volume, 64 MiB.
const JOURNAL_MEMORY_PAGES: u32 = 16_384;

/// Identity of the only volume.
const VOLUME_ID: u128 = 14;

/// The device.
pub(super) type TieredDevice =
    Transactional<Tiered<Virtual, Zones, Image<Partition, Stamp>, Partition>>;

/// A cache on zones over a disk.
pub(super) struct TieredKind {
    ftl: FtlOptions,
    ssd: SsdOptions,
    home: HomeConfig,
    disk: DiskConfig,
    journal_pages: u64,
}

/// The default settings of a tiered volume.
fn home_config() -> Result<HomeConfig> {
    let text = "kind = \"tiered\"\n[media]\ntype = \"file\"\npath = \"flash\"\nsize = \"1GiB\"\n\
                [home]\npath = \"home\"\n[device]\ncapacity = \"1GiB\"\n";
    let config = VolumeConfig::parse(text, Path::new("tiered.toml"))?;
    Ok(config.home.unwrap_or_else(|| unreachable!("a tiered volume has a home")))
}

impl TieredKind {
    /// A cache over a home of `pages` pages, on the flash of `config` and behind its link.
    ///
    /// # Errors
    /// `InvalidInput` if the text of the disk is not valid.
    pub(super) fn new(config: &DeviceConfig, pages: u64, seed: u64) -> Result<Linked<Self>> {
        let home = home_config()?;
        let cache = home.cache_options(&config.geometry())?;
        let journal_pages = home.journal_bytes(&cache) / PAGE_BYTES as u64;
        let Linked { below, link } = config.kind(seed);
        let ftl = FtlOptions { pages, cache: Some(cache), ..below.ftl };
        let disk = match DeviceSpec::parse(&format!("{DISK}:pages={}", pages + journal_pages))? {
            DeviceSpec::Disk(disk) => disk,
            other => unreachable!("{} is a disk", other.name()),
        };
        Ok(Linked { below: TieredKind { ftl, ssd: below.ssd, home, disk, journal_pages }, link })
    }

    fn pair(&self) -> Pair {
        Pair { volume_id: VOLUME_ID, pages: self.ftl.home_pages() }
    }

    /// Spins the disk up. The page under the head at the power cut is torn.
    async fn disk(&self, runtime: &Virtual, platters: Platters<PageBuf>) -> Result<Rc<Disk>> {
        platters.power_cut(Fate::Tear);
        let on = Opening { runtime: runtime.clone(), media: platters, kept: () };
        let (disk, ()) = self.disk.kind().open(on).await?;
        disk.start(runtime);
        Ok(disk)
    }

    fn journal(&self, disk: &Rc<Disk>) -> Partition {
        Partition::new(disk, self.ftl.home_pages(), self.journal_pages)
    }

    fn home(&self, disk: &Rc<Disk>) -> Result<Image<Partition, Stamp>> {
        let pages = self.ftl.home_pages();
        Image::new(Partition::new(disk, 0, pages), pages)
    }

    async fn put_together(
        &self,
        runtime: Virtual,
        ftl: Rc<Ftl<Zones>>,
        home: Image<Partition, Stamp>,
        journal: OpenJournal<Partition, Stamp>,
    ) -> Result<Rc<TieredDevice>> {
        let drive = Rc::new(Drive::new(ftl, self.ssd)?);
        let ssd = *drive.options();
        let dirty = self.ftl.cache.map_or(0, |cache| cache.dirty_pages_max);
        let options = self.home.tiered_options(dirty, &ssd)?;
        let clock = runtime.clone();
        let tiered = Tiered::new(TieredParts {
            runtime,
            drive,
            home: Rc::new(home),
            journal: Some(journal),
            unix_ms: Box::new(move || clock.now_ns() / 1_000_000),
            options,
        })?;
        if let Some(journal) = tiered.home_journal() {
            journal.own_home().await?;
        }
        let (most, pages) = (ssd.transactions_max, ssd.transaction_pages_max);
        Ok(Rc::new(Transactional::over(tiered, most, pages)))
    }
}

impl DeviceKind<Virtual, Zones> for TieredKind {
    type Device = TieredDevice;
    /// The content of the disk.
    type Kept = Platters<PageBuf>;
    type Report = ();

    async fn format(
        &self,
        on: Opening<Virtual, Zones, Platters<PageBuf>>,
    ) -> Result<Rc<TieredDevice>> {
        let disk = self.disk(&on.runtime, on.kept).await?;
        let journal =
            Journal::format(self.journal(&disk), self.pair(), JOURNAL_MEMORY_PAGES).await?;
        let ftl = Ftl::format(on.media, self.ftl).await?;
        self.put_together(on.runtime, ftl, self.home(&disk)?, (journal, None)).await
    }

    async fn open(
        &self,
        on: Opening<Virtual, Zones, Platters<PageBuf>>,
    ) -> Result<(Rc<TieredDevice>, ())> {
        let disk = self.disk(&on.runtime, on.kept).await?;
        let home = self.home(&disk)?;
        let journal = self.journal(&disk);
        let mut journal = Journal::open(journal, self.pair(), JOURNAL_MEMORY_PAGES).await?;
        let (ftl, _) = recover_flash(on.media, self.ftl, &home, Some(&mut journal)).await?;
        Ok((self.put_together(on.runtime, ftl, home, journal).await?, ()))
    }
}
