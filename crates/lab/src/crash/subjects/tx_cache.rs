//! A TxCache: NVRAM survives, and power is cut at its stores too.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_ftl::Ftl;
use tantalum_media::ZoneMedia;
use tantalum_models::Nvram;
use tantalum_models::tx_cache::TxNvram;
use tantalum_models::{TxCache, TxCacheOptions};
use tantalum_runtime::Virtual;

use super::ssd::ftl_options;
use crate::crash::subject::{Coverage, Opening, Subject};

/// Frames of the page cache, and pages of the extended cache: so few that three open transactions
/// are moved out of the one, and four fill the other.
const CACHE_PAGES: u32 = 14;
const EXTENDED_PAGES: u32 = 16;

/// What the extended cache takes on the lab's media.
const EXTENDED_ZONES: u32 = 2;

/// [`TxCache`], with transactions or as the paper's NVCache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxCacheSubject {
    /// Whether it has transactions.
    pub transactions: bool,
}

/// The NVRAM of a device, once that is made.
pub type KeptNvram<P> = Rc<RefCell<Option<TxNvram<P>>>>;

impl TxCacheSubject {
    fn options(self) -> TxCacheOptions {
        let options = if self.transactions {
            TxCacheOptions::new(CACHE_PAGES)
        } else {
            TxCacheOptions::nv_cache(CACHE_PAGES)
        };
        TxCacheOptions {
            extended_pages: EXTENDED_PAGES,
            headers: options.headers.min(8),
            transactions_max: options.transactions_max.min(8),
            write_pages_max: 6,
            write_backs_in_flight: 2,
            ..options
        }
    }
}

impl<M: ZoneMedia> Subject<M> for TxCacheSubject {
    type Device = TxCache<Virtual, M>;
    type Kept = KeptNvram<M::Page>;

    /// Open transactions share the page cache and the extended cache; one that finds both full is told.
    const TRANSACTIONS_MAY_FILL: bool = true;

    fn more_zones(&self) -> u32 {
        EXTENDED_ZONES
    }

    fn acknowledges_early(&self) -> bool {
        true
    }

    fn text(&self) -> String {
        if self.transactions { "txcache" } else { "nvcache" }.to_owned()
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
        let nvram = opening.kept.borrow().clone().ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, "the device was never made: it has no NVRAM")
        })?;
        let recovered = TxCache::recover(opening.runtime, ftl, self.options(), nvram).await;
        recovered.map(|(device, _)| Rc::new(device))
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
        let counts = device.statistics();
        Coverage {
            cleaned: counts.ftl.zones_cleaned,
            checkpoints: counts.ftl.checkpoints,
            spilled: counts.pages_spilled,
        }
    }
}
