//! An SSD behind a buffer.
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_buffer::Buffered;
use tantalum_media::ZoneMedia;
use tantalum_policy::{PolicySpec, Workload};
use tantalum_runtime::Virtual;
use tantalum_ssd::Ssd;

use super::SsdSubject;
use crate::crash::subject::{Coverage, Opening, Subject};

/// Pages of the buffer: fewer than the device has, so that pages come and go.
const BUFFER_PAGES: u32 = 16;

/// [`Buffered`] over an [`SsdSubject`]'s device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferedSubject {
    /// What is below the buffer.
    pub ssd: SsdSubject,
}

fn buffered<M: ZoneMedia>(ssd: Rc<Ssd<M>>, pages: u64) -> Result<Rc<Buffered<Ssd<M>>>> {
    let workload = Workload { pages_end: pages, future: &[] };
    let policy = PolicySpec::parse("lru")?.build(BUFFER_PAGES, workload)?;
    Ok(Rc::new(Buffered::new(ssd, Some(policy))))
}

impl<M: ZoneMedia> Subject<M> for BufferedSubject {
    type Device = Buffered<Ssd<M>>;
    type Kept = ();

    const HAS_STORED_ENERGY: bool = <SsdSubject as Subject<M>>::HAS_STORED_ENERGY;

    fn more_zones(&self) -> u32 {
        <SsdSubject as Subject<M>>::more_zones(&self.ssd)
    }

    fn acknowledges_early(&self) -> bool {
        <SsdSubject as Subject<M>>::acknowledges_early(&self.ssd)
    }

    fn text(&self) -> String {
        let text = <SsdSubject as Subject<M>>::text(&self.ssd);
        text.replacen("ssd", "buffered", 1)
    }

    fn kept(&self) -> Self::Kept {}

    async fn format(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Self::Device>> {
        let pages = opening.pages;
        buffered(self.ssd.format(opening).await?, pages)
    }

    async fn reopen(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Self::Device>> {
        let pages = opening.pages;
        buffered(self.ssd.reopen(opening).await?, pages)
    }

    fn start(&self, runtime: &Virtual, device: &Rc<Self::Device>) {
        self.ssd.start(runtime, device.device());
    }

    async fn close(&self, device: &Self::Device) -> Result<()> {
        self.ssd.close(device.device()).await
    }

    fn validate(&self, device: &Self::Device) {
        device.validate();
        self.ssd.validate(device.device());
    }

    fn coverage(&self, device: &Self::Device) -> Coverage {
        self.ssd.coverage(device.device())
    }

    async fn on_stored_energy(
        &self,
        device: Rc<Self::Device>,
        opening: Opening<M, Self::Kept>,
    ) -> Result<()> {
        self.ssd.on_stored_energy(Rc::clone(device.device()), opening).await
    }
}
