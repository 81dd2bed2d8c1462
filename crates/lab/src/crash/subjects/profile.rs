//! SSDs of the papers, as `replay` and `serve` take them: DuraSSD, SSD-A, SSD-B, OpenSSD, X25-M.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result, Spec};
use tantalum_ftl::{DumpOptions, Ftl};
use tantalum_media::ZoneMedia;
use tantalum_models::nand::NandGeometry;
use tantalum_models::{DeviceConfig, DeviceSpec, HostQueueOptions};
use tantalum_runtime::Virtual;
use tantalum_ssd::{CacheKind, Ssd};

use crate::crash::rig::{SMALL, SMALL_ZONES};
use crate::crash::subject::{ArrayShape, Coverage, Opening, Subject};

/// Pages of the write cache of a device that is scaled down.
const CACHE_PAGES: u32 = 24;
/// Pages of a device of a size that was asked for, at the most: every one is read at every power-on.
const PAGES_MAX: u64 = 1 << 20;

/// An SSD of a profile, without its link. Where neither `pages` nor `capacity` is given it is scaled down
/// to the lab's array, cache and least energy, and keeps all else: kind of cache, what a flush means,
/// quota, sharers, cleaning, durations.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileSubject {
    text: String,
    config: DeviceConfig,
    is_scaled: bool,
}

impl ProfileSubject {
    /// The profiles.
    pub const NAMES: [&str; 5] = ["durassd", "ssd-a", "ssd-b", "openssd", "x25-m"];

    /// The SSD that `text` names.
    ///
    /// # Errors
    /// `InvalidInput`, which lists what is accepted; also where flushes do not reach a cache that needs
    /// them: such a device promises nothing that could be checked.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse =
            |problem: &str| Err(Error::new(ErrorKind::InvalidInput, format!("{text}: {problem}")));
        let spec = DeviceSpec::parse(text)?;
        if spec.drops_flushes() {
            return refuse("no flush reaches the device, so that it promises nothing to check");
        }
        let DeviceSpec::Ssd(config) = spec else { return refuse("no SSD of a profile") };
        let mut given = Spec::parse(text)?;
        let sizes = [given.text("pages", ""), given.text("capacity", "")];
        let is_scaled = sizes.iter().all(Option::is_none);
        if !is_scaled && config.ftl.pages > PAGES_MAX {
            return refuse("too large to read all of it at every power-on; at most 1048576 pages");
        }
        Ok(ProfileSubject { text: text.to_owned(), config, is_scaled })
    }

    /// Its link.
    pub fn link(&self) -> HostQueueOptions {
        self.config.link
    }

    /// The device with `pages` pages.
    fn config(&self, pages: u64) -> Result<DeviceConfig> {
        let mut config = self.config.clone();
        if !self.is_scaled {
            if pages == config.ftl.pages {
                return Ok(config);
            }
            let context = format!("{} has {} pages, not {pages}", self.text, config.ftl.pages);
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        config.ftl.dump = None;
        config = config.with_cache_pages(CACHE_PAGES);
        config.nand.geometry = SMALL;
        config.zones = SMALL_ZONES;
        config.ftl.pages = pages;
        // Often enough that a small load crosses several.
        config.ftl.checkpoint_interval_slots = 64;
        config.ssd.write_back_start_pages = config.ssd.write_back_start_pages.min(8);
        config.ssd.write_back_pages_max = 16;
        config.ssd.recharge_ns = config.ssd.recharge_ns.min(1_000_000);
        if self.config.ftl.dump.is_some() {
            let geometry = config.geometry();
            config.ftl.dump = Some(DumpOptions::least(&geometry, pages, CACHE_PAGES));
            let blocks_per_plane = SMALL.blocks_per_plane + config.ftl.dump_zones(&geometry)?;
            config.nand.geometry = NandGeometry { blocks_per_plane, ..SMALL };
        }
        Ok(config)
    }
}

impl<M: ZoneMedia> Subject<M> for ProfileSubject {
    type Device = Ssd<M>;
    type Kept = ();

    const HAS_STORED_ENERGY: bool = true;

    fn array(&self, pages: u64) -> Result<Option<ArrayShape>> {
        let DeviceConfig { nand, zones, .. } = self.config(pages)?;
        Ok(Some(ArrayShape { nand, zones }))
    }

    fn pages(&self) -> Option<u64> {
        (!self.is_scaled).then_some(self.config.ftl.pages)
    }

    fn acknowledges_early(&self) -> bool {
        self.config.ssd.cache == CacheKind::Durable
    }

    fn text(&self) -> String {
        self.text.clone()
    }

    fn kept(&self) -> Self::Kept {}

    async fn format(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Ssd<M>>> {
        let config = self.config(opening.pages)?;
        let ftl = Ftl::format(opening.media, config.ftl).await?;
        Ssd::new(ftl, config.ssd).map(Rc::new)
    }

    async fn reopen(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Ssd<M>>> {
        let config = self.config(opening.pages)?;
        if config.ssd.cache == CacheKind::Durable {
            let rebooted = Ssd::reboot(opening.media, config.ftl, config.ssd, &opening.runtime);
            return rebooted.await.map(|(ssd, _)| ssd);
        }
        let (ftl, _) = Ftl::recover(opening.media, config.ftl).await?;
        Ssd::new(ftl, config.ssd).map(Rc::new)
    }

    fn start(&self, runtime: &Virtual, device: &Rc<Ssd<M>>) {
        device.start(runtime);
    }

    async fn close(&self, device: &Ssd<M>) -> Result<()> {
        device.close().await
    }

    fn validate(&self, device: &Ssd<M>) {
        device.ftl().validate();
    }

    fn coverage(&self, device: &Ssd<M>) -> Coverage {
        let ftl = device.statistics().ftl;
        Coverage { cleaned: ftl.zones_cleaned, checkpoints: ftl.checkpoints, spilled: 0 }
    }

    async fn on_stored_energy(
        &self,
        device: Rc<Ssd<M>>,
        opening: Opening<M, Self::Kept>,
    ) -> Result<()> {
        if self.config.ssd.cache != CacheKind::Durable {
            return Ok(());
        }
        device.power_loss(opening.media).await.map(|_| ())
    }
}
