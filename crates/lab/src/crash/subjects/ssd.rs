//! An SSD with a write cache of any kind.
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_ftl::{DumpOptions, Ftl, FtlOptions};
use tantalum_media::{ZoneGeometry, ZoneMedia};
use tantalum_runtime::Virtual;
use tantalum_ssd::{CacheKind, Ssd, SsdOptions};

use crate::crash::subject::{Coverage, Opening, Subject};

/// Pages of the write cache: small, so that it fills.
const CACHE_PAGES: u32 = 24;

/// What the dump area and delta pages take on the lab's media.
const DUMP_ZONES: u32 = 7;

/// [`Ssd`] with one kind of write cache. A durable one has the least energy that its dump can do
/// with, so that changed mapping entries are backed up all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SsdSubject {
    /// How the write cache keeps its promise.
    pub cache: CacheKind,
}

impl SsdSubject {
    fn options(&self) -> SsdOptions {
        let mut options = SsdOptions::new(self.cache, CACHE_PAGES);
        options.write_back_start_pages = 8;
        options.write_backs_in_flight = 2;
        options.recharge_ns = 1_000_000;
        options
    }

    fn ftl_options(&self, geometry: &ZoneGeometry, pages: u64) -> FtlOptions {
        let durable = self.cache == CacheKind::Durable;
        let dump = durable.then(|| DumpOptions::least(geometry, pages, CACHE_PAGES));
        FtlOptions { dump, ..ftl_options(pages) }
    }
}

/// Checkpoints often enough that a small load crosses several.
pub(super) fn ftl_options(pages: u64) -> FtlOptions {
    FtlOptions { checkpoint_interval_slots: 64, ..FtlOptions::new(pages) }
}

impl<M: ZoneMedia> Subject<M> for SsdSubject {
    type Device = Ssd<M>;
    type Kept = ();

    const HAS_STORED_ENERGY: bool = true;

    fn more_zones(&self) -> u32 {
        if self.cache == CacheKind::Durable { DUMP_ZONES } else { 0 }
    }

    fn acknowledges_early(&self) -> bool {
        self.cache == CacheKind::Durable
    }

    fn text(&self) -> String {
        let cache = match self.cache {
            CacheKind::Durable => "durable",
            CacheKind::WriteThrough => "through",
            CacheKind::Ordered => "ordered",
            CacheKind::Volatile => "volatile",
        };
        format!("ssd:cache={cache}")
    }

    fn kept(&self) -> Self::Kept {}

    async fn format(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Ssd<M>>> {
        let options = self.ftl_options(&opening.media.geometry(), opening.pages);
        let ftl = Ftl::format(opening.media, options).await?;
        Ssd::new(ftl, self.options()).map(Rc::new)
    }

    async fn reopen(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Ssd<M>>> {
        let options = self.ftl_options(&opening.media.geometry(), opening.pages);
        if self.cache == CacheKind::Durable {
            let rebooted = Ssd::reboot(opening.media, options, self.options(), &opening.runtime);
            return rebooted.await.map(|(ssd, _)| ssd);
        }
        let (ftl, _) = Ftl::recover(opening.media, options).await?;
        Ssd::new(ftl, self.options()).map(Rc::new)
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
        if self.cache != CacheKind::Durable {
            return Ok(());
        }
        device.power_loss(opening.media).await.map(|_| ())
    }
}
