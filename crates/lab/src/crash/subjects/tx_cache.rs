//! TxCache: a write cache with transactions in NVRAM, over an FTL.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_ftl::Ftl;
use tantalum_media::{Nvram, ZoneMedia};
use tantalum_runtime::Virtual;
use tantalum_ssd::tx_cache::TxNvram;
use tantalum_ssd::{TxCache, TxCacheOptions};

use super::ssd::ftl_options;
use crate::crash::subject::{Coverage, Opening, Subject};

/// Pages of the cache: small, so that it fills and transactions spill into the extended one.
const CACHE_PAGES: u32 = 24;
const EXTENDED_PAGES: u32 = 12;

/// Zones for the extended cache.
const MORE_ZONES: u32 = 2;

/// [`TxCache`] with few frames and few headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxCacheSubject;

impl TxCacheSubject {
    fn options(&self) -> TxCacheOptions {
        TxCacheOptions {
            extended_pages: EXTENDED_PAGES,
            transactions_max: 3,
            headers: 4,
            write_pages_max: 6,
            free_frames: 3,
            write_backs_in_flight: 2,
            ..TxCacheOptions::new(CACHE_PAGES)
        }
    }
}

impl<M: ZoneMedia> Subject<M> for TxCacheSubject {
    type Device = TxCache<Virtual, M>;
    /// The NVRAM, once there is a device.
    type Kept = Rc<RefCell<Option<TxNvram<M::Page>>>>;

    fn more_zones(&self) -> u32 {
        MORE_ZONES
    }

    fn text(&self) -> String {
        "txcache".to_owned()
    }

    fn kept(&self) -> Self::Kept {
        Rc::default()
    }

    fn nvram(&self, kept: &Self::Kept) -> Option<Nvram> {
        kept.borrow().as_ref().map(|nvram| nvram.region().clone())
    }

    async fn format(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Self::Device>> {
        let options = ftl_options(opening.pages + u64::from(EXTENDED_PAGES));
        let ftl = Ftl::format(opening.media, options).await?;
        let device = TxCache::new(opening.runtime, ftl, self.options())?;
        *opening.kept.borrow_mut() = Some(device.nvram());
        Ok(Rc::new(device))
    }

    async fn reopen(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Self::Device>> {
        let options = ftl_options(opening.pages + u64::from(EXTENDED_PAGES));
        let (ftl, _) = Ftl::recover(opening.media, options).await?;
        let nvram = opening.kept.borrow().clone();
        let nvram = nvram.ok_or_else(|| Error::new(ErrorKind::Format, "there is no NVRAM yet"))?;
        let (device, _) = TxCache::recover(opening.runtime, ftl, self.options(), nvram).await?;
        Ok(Rc::new(device))
    }

    fn start(&self, _runtime: &Virtual, device: &Rc<Self::Device>) {
        device.start();
    }

    async fn close(&self, device: &Self::Device) -> Result<()> {
        device.close().await
    }

    fn validate(&self, device: &Self::Device) {
        device.validate();
        device.ftl().validate();
    }

    fn coverage(&self, device: &Self::Device) -> Coverage {
        let ftl = device.ftl().statistics();
        Coverage { cleaned: ftl.zones_cleaned, checkpoints: ftl.checkpoints }
    }
}
