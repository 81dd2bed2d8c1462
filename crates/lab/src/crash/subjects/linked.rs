//! A device behind its link: the queue in which commands take effect as they were issued.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_media::ZoneMedia;
use tantalum_models::Nvram;
use tantalum_models::personality::PersonalitySpec;
use tantalum_models::{DeviceSpec, HostQueue, HostQueueOptions};
use tantalum_runtime::Virtual;

use super::{PersonalitySubject, ProfileSubject, TxCacheSubject};
use crate::crash::subject::{ArrayShape, Coverage, Damaged, FailedProgram, Opening, Subject};

/// [`HostQueue`] over a device of the lab.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkedSubject<S> {
    /// What is behind the link.
    pub below: S,
    /// The link.
    pub link: HostQueueOptions,
    text: String,
}

impl LinkedSubject<ProfileSubject> {
    /// The SSD that `text` names.
    ///
    /// # Errors
    /// `InvalidInput`, which lists what is accepted.
    pub fn profile(text: &str) -> Result<Self> {
        let below = ProfileSubject::parse(text)?;
        let link = below.link();
        Ok(LinkedSubject { below, link, text: text.to_owned() })
    }
}

impl LinkedSubject<TxCacheSubject> {
    /// A TxSSD: its link before the lab's TxCache. It has no parameters here.
    ///
    /// # Errors
    /// `InvalidInput`, where some are given.
    pub fn tx_ssd(text: &str) -> Result<Self> {
        let link = match DeviceSpec::parse(plain(text)?)? {
            DeviceSpec::TxSsd(config) => config.link,
            other => return Err(refused(other.name())),
        };
        let below = TxCacheSubject { transactions: true };
        Ok(LinkedSubject { below, link, text: text.to_owned() })
    }
}

impl LinkedSubject<PersonalitySubject> {
    /// An MTRON: its link before BAST with as few logs as the lab's has. It has no parameters here.
    ///
    /// # Errors
    /// `InvalidInput`, where some are given.
    pub fn mtron(text: &str) -> Result<Self> {
        let link = match DeviceSpec::parse(plain(text)?)? {
            DeviceSpec::Hybrid(config) => config.link,
            other => return Err(refused(other.name())),
        };
        let below = PersonalitySubject { spec: PersonalitySpec::parse("bast:logs=2")? };
        Ok(LinkedSubject { below, link, text: text.to_owned() })
    }
}

/// `text`, which must be a name alone.
fn plain(text: &str) -> Result<&str> {
    if text.contains(':') { Err(refused(text)) } else { Ok(text) }
}

fn refused(text: &str) -> Error {
    let context = format!("{text}: this device has no parameters in the crash lab");
    Error::new(ErrorKind::InvalidInput, context)
}

impl<M: ZoneMedia, S: Subject<M>> Subject<M> for LinkedSubject<S> {
    type Device = HostQueue<Virtual, S::Device>;
    type Kept = S::Kept;

    const HAS_STORED_ENERGY: bool = S::HAS_STORED_ENERGY;
    const TRIMS_ARE_ATOMIC: bool = S::TRIMS_ARE_ATOMIC;
    const TRANSACTIONS_MAY_FILL: bool = S::TRANSACTIONS_MAY_FILL;
    const FAILED_PROGRAM: FailedProgram = S::FAILED_PROGRAM;
    const DAMAGED: Damaged = S::DAMAGED;

    fn array(&self, pages: u64) -> Result<Option<ArrayShape>> {
        self.below.array(pages)
    }

    fn pages(&self) -> Option<u64> {
        self.below.pages()
    }

    fn more_zones(&self) -> u32 {
        self.below.more_zones()
    }

    fn acknowledges_early(&self) -> bool {
        self.below.acknowledges_early()
    }

    fn text(&self) -> String {
        self.text.clone()
    }

    fn kept(&self) -> Self::Kept {
        self.below.kept()
    }

    fn nvram(&self, kept: &Self::Kept) -> Option<Nvram> {
        self.below.nvram(kept)
    }

    async fn format(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Self::Device>> {
        let runtime = opening.runtime.clone();
        let device = self.below.format(opening).await?;
        HostQueue::new(runtime, device, self.link).map(Rc::new)
    }

    async fn reopen(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Self::Device>> {
        let runtime = opening.runtime.clone();
        let device = self.below.reopen(opening).await?;
        HostQueue::new(runtime, device, self.link).map(Rc::new)
    }

    fn start(&self, runtime: &Virtual, device: &Rc<Self::Device>) {
        self.below.start(runtime, device.device());
    }

    async fn close(&self, device: &Self::Device) -> Result<()> {
        self.below.close(device.device()).await
    }

    fn validate(&self, device: &Self::Device) {
        self.below.validate(device.device());
    }

    fn coverage(&self, device: &Self::Device) -> Coverage {
        self.below.coverage(device.device())
    }

    async fn on_stored_energy(
        &self,
        device: Rc<Self::Device>,
        opening: Opening<M, Self::Kept>,
    ) -> Result<()> {
        self.below.on_stored_energy(Rc::clone(device.device()), opening).await
    }
}
