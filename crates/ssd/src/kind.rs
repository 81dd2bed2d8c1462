//! Makes and opens an SSD.
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::ZoneMedia;
use tantalum_runtime::{DeviceKind, Opening, Runtime};

use crate::options::SsdOptions;
use crate::power_loss::RebootReport;
use crate::ssd::Ssd;

/// An [`Ssd`] on zones of any kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SsdKind {
    /// The FTL.
    pub ftl: FtlOptions,
    /// Write cache and transactions.
    pub ssd: SsdOptions,
}

impl<R: Runtime, M: ZoneMedia> DeviceKind<R, M> for SsdKind {
    type Device = Ssd<M>;
    type Kept = ();
    type Report = RebootReport;

    const HAS_STORED_ENERGY: bool = true;

    async fn format(&self, on: Opening<R, M, ()>) -> Result<Rc<Ssd<M>>> {
        let ftl = Ftl::format(on.media, self.ftl).await?;
        Ssd::new(ftl, self.ssd).map(Rc::new)
    }

    /// Opens the device; [reboots](Ssd::reboot) it if it has energy for a dump.
    async fn open(&self, on: Opening<R, M, ()>) -> Result<(Rc<Ssd<M>>, RebootReport)> {
        if self.ftl.dump.is_some() {
            return Ssd::reboot(on.media, self.ftl, self.ssd, &on.runtime).await;
        }
        let (ftl, recovery) = Ftl::recover(on.media, self.ftl).await?;
        let ssd = Ssd::new(ftl, self.ssd).map(Rc::new)?;
        Ok((ssd, RebootReport { recovery, ..RebootReport::default() }))
    }

    /// Dumps the parts of cache and mapping that are only in memory.
    async fn on_stored_energy(&self, device: Rc<Ssd<M>>, on: Opening<R, M, ()>) -> Result<()> {
        if self.ftl.dump.is_some() {
            device.power_loss(on.media).await?;
        }
        Ok(())
    }
}
