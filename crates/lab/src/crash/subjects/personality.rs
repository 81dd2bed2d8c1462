//! The translation layers of earlier devices: block mapping, BAST, FAST and DFTL.
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_media::ZoneMedia;
use tantalum_models::personality::{Personality, PersonalitySpec};
use tantalum_runtime::Virtual;

use crate::crash::subject::{Coverage, Damaged, FailedProgram, Opening, Subject};

/// A [`Personality`], without any cache before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonalitySubject {
    /// The layer and its parameters.
    pub spec: PersonalitySpec,
}

impl PersonalitySubject {
    /// Parameters with which a small load reaches merges and misses of the cached map.
    pub const NAMES: [&str; 4] = ["block-map", "bast:logs=2", "fast:logs=2", "dftl:cmt=5"];
}

impl<M: ZoneMedia> Subject<M> for PersonalitySubject {
    type Device = Personality<M>;
    type Kept = ();

    /// A trim writes or erases page by page.
    const TRIMS_ARE_ATOMIC: bool = false;
    /// There is no log to go on in elsewhere.
    const FAILED_PROGRAM: FailedProgram = FailedProgram::Latches;

    const DAMAGED: Damaged = Damaged::IsNotTold;

    /// A page takes a whole flash page, half of which is left.
    fn more_zones(&self) -> u32 {
        match self.spec {
            PersonalitySpec::BlockMap | PersonalitySpec::Bast { .. } => 0,
            PersonalitySpec::Fast { .. } => 1,
            PersonalitySpec::Dftl { .. } => 3,
        }
    }

    fn text(&self) -> String {
        self.spec.to_string()
    }

    fn kept(&self) -> Self::Kept {}

    async fn format(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Self::Device>> {
        Personality::format(&opening.runtime, opening.media, self.spec, opening.pages).await
    }

    async fn reopen(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Self::Device>> {
        Personality::recover(&opening.runtime, opening.media, self.spec, opening.pages).await
    }

    /// Its commands run on what it was opened with, and nothing beside them.
    fn start(&self, _runtime: &Virtual, _device: &Rc<Self::Device>) {}

    /// What was acknowledged is durable: there is nothing to close.
    async fn close(&self, _device: &Self::Device) -> Result<()> {
        Ok(())
    }

    /// Recovery builds all structures from the spare areas, and checks them against each other there.
    fn validate(&self, _device: &Self::Device) {}

    fn coverage(&self, device: &Self::Device) -> Coverage {
        let counts = device.statistics();
        let merges = counts.merges_switch + counts.merges_partial + counts.merges_full;
        let cleaned = counts.blocks_cleaned + merges;
        Coverage { cleaned, checkpoints: counts.map_writes, spilled: 0 }
    }
}
