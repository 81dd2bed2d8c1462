//! How a TxCache is made and opened.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_ftl::{Ftl, FtlOptions, RecoveryReport};
use tantalum_media::ZoneMedia;
use tantalum_runtime::{DeviceKind, Opening, Runtime};

use super::device::TxCache;
use super::metadata::TxNvram;
use super::options::TxCacheOptions;
use super::recovery::TxRecoveryReport;

/// A [`TxCache`] on zones of any kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TxCacheKind {
    /// The FTL. Its logical pages include the extended cache.
    pub ftl: FtlOptions,
    /// The transactional cache.
    pub cache: TxCacheOptions,
}

/// The NVRAM of a device, after the device is made.
pub type KeptNvram<P> = Rc<RefCell<Option<TxNvram<P>>>>;

impl<R: Runtime, M: ZoneMedia> DeviceKind<R, M> for TxCacheKind {
    type Device = TxCache<R, M>;
    type Kept = KeptNvram<M::Page>;
    type Report = (RecoveryReport, TxRecoveryReport);

    async fn format(&self, on: Opening<R, M, Self::Kept>) -> Result<Rc<Self::Device>> {
        let ftl = Ftl::format(on.media, self.ftl).await?;
        let device = TxCache::new(on.runtime, ftl, self.cache)?;
        *on.kept.borrow_mut() = Some(device.nvram());
        Ok(Rc::new(device))
    }

    async fn open(
        &self,
        on: Opening<R, M, Self::Kept>,
    ) -> Result<(Rc<Self::Device>, Self::Report)> {
        let (ftl, recovery) = Ftl::recover(on.media, self.ftl).await?;
        let nvram = on.kept.borrow().clone().ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, "the device was never made: it has no NVRAM")
        })?;
        let (device, cache) = TxCache::recover(on.runtime, ftl, self.cache, nvram).await?;
        Ok((Rc::new(device), (recovery, cache)))
    }
}
