//! A redo log in flash, the device that TxCache was measured against.
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_media::ZoneMedia;
use tantalum_models::baselines::{RedoLog, Wal, WalOptions};
use tantalum_runtime::Virtual;

use super::ssd::ftl_options;
use crate::crash::subject::{Coverage, Damaged, FailedProgram, Opening, Subject};

/// Less memory than log, so that contents are read back, and few transactions, so that clients meet
/// the limit.
const OPTIONS: WalOptions = WalOptions { log_pages: 64, memory_pages: 8, transactions_max: 2 };

/// What the log takes on the lab's media.
const LOG_ZONES: u32 = 4;

/// A [`Wal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalSubject;

impl<M: ZoneMedia> Subject<M> for WalSubject {
    type Device = Wal<M>;
    type Kept = ();

    /// A failed program in the log is not written elsewhere.
    const FAILED_PROGRAM: FailedProgram = FailedProgram::Latches;

    /// Nothing behind a transaction in its log says that the one before it was durable.
    const DAMAGED: Damaged = Damaged::IsNotTold;

    fn more_zones(&self) -> u32 {
        LOG_ZONES
    }

    fn text(&self) -> String {
        "wal".to_owned()
    }

    fn kept(&self) -> Self::Kept {}

    async fn format(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Self::Device>> {
        let media = Rc::new(opening.media);
        RedoLog::format(media, ftl_options(opening.pages), OPTIONS).await.map(Rc::new)
    }

    async fn reopen(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Self::Device>> {
        let (media, options) = (Rc::new(opening.media), ftl_options(opening.pages));
        let recovered = RedoLog::recover(media, options, OPTIONS, &opening.runtime).await;
        recovered.map(|(device, _)| Rc::new(device))
    }

    fn start(&self, runtime: &Virtual, device: &Rc<Self::Device>) {
        device.device().start(runtime);
    }

    /// The log stays as it is: what is in it is read from there when the device is opened again.
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
