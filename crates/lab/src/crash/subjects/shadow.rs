//! TxFlash and the atomic-write log, devices that TxCache was measured against.
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_ftl::Ftl;
use tantalum_media::ZoneMedia;
use tantalum_models::baselines::{Clustering, ShadowDevice, ShadowLog, ShadowOptions};
use tantalum_runtime::Virtual;

use super::ssd::ftl_options;
use crate::crash::subject::{Coverage, Opening, Subject};

/// Few, so that clients meet the limit.
const TRANSACTIONS_MAX: u32 = 2;

/// A [`ShadowDevice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowSubject {
    /// How transactions are told.
    pub clustering: Clustering,
}

impl ShadowSubject {
    fn options(self) -> ShadowOptions {
        ShadowOptions { clustering: self.clustering, transactions_max: TRANSACTIONS_MAX }
    }
}

impl<M: ZoneMedia> Subject<M> for ShadowSubject {
    type Device = ShadowDevice<M>;
    type Kept = ();

    fn text(&self) -> String {
        match self.clustering {
            Clustering::Cycles => "tx-flash",
            Clustering::LogFlags => "atomic-log",
        }
        .to_owned()
    }

    fn kept(&self) -> Self::Kept {}

    async fn format(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Self::Device>> {
        let ftl = Ftl::format(opening.media, ftl_options(opening.pages)).await?;
        Ok(Rc::new(ShadowLog::device(ftl, self.options())))
    }

    async fn reopen(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Self::Device>> {
        let options = ftl_options(opening.pages);
        let recovered = ShadowLog::recover(opening.media, options, self.options()).await;
        recovered.map(|(device, ..)| Rc::new(device))
    }

    fn start(&self, runtime: &Virtual, device: &Rc<Self::Device>) {
        device.device().start(runtime);
    }

    async fn close(&self, device: &Self::Device) -> Result<()> {
        device.close().await
    }

    fn validate(&self, device: &Self::Device) {
        device.ftl().validate();
    }

    fn coverage(&self, device: &Self::Device) -> Coverage {
        let ftl = device.statistics().ftl;
        Coverage { cleaned: ftl.zones_cleaned, checkpoints: ftl.checkpoints, spilled: 0 }
    }
}
