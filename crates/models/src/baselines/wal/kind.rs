//! How a device with a redo log is made and opened.
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_ftl::FtlOptions;
use tantalum_media::ZoneMedia;
use tantalum_runtime::{DeviceKind, Opening, Runtime};

use super::options::WalOptions;
use super::recovery::WalRecovery;
use super::{RedoLog, Wal};

/// A [`Wal`] on zones of any kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WalKind {
    /// The FTL of the home locations; its pages are those that the host sees.
    pub ftl: FtlOptions,
    /// The log.
    pub wal: WalOptions,
}

impl<R: Runtime, M: ZoneMedia> DeviceKind<R, M> for WalKind {
    type Device = Wal<M::Page>;
    type Kept = ();
    type Report = WalRecovery;

    async fn format(&self, on: Opening<R, M, ()>) -> Result<Rc<Wal<M::Page>>> {
        RedoLog::format(Rc::new(on.media), self.ftl, self.wal).await.map(Rc::new)
    }

    async fn open(&self, on: Opening<R, M, ()>) -> Result<(Rc<Wal<M::Page>>, WalRecovery)> {
        let media = Rc::new(on.media);
        let (wal, report) = RedoLog::recover(media, self.ftl, self.wal, &on.runtime).await?;
        Ok((Rc::new(wal), report))
    }
}
