//! An array of simulated flash, with power loss.
use super::{ArrayShape, LARGE_PAGES_PER_BLOCK, LARGE_ZONES, Rig, SMALL, SMALL_ZONES, Size};
use crate::nand::{Nand, NandFaults, NandGeometry, NandOptions, NandTiming};
use crate::nand_zones::{NandZones, NandZonesOptions};
use std::rc::Rc;
use tantalum_base::{Payload, Result, Rng};
use tantalum_media::wrappers::Flaky;
use tantalum_media::{CutPlan, Episodes, ErasedZones, Fate};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

/// Simulated NAND, small enough to be cut at every operation.
pub struct NandRig<P> {
    nand: Nand<P>,
    options: NandZonesOptions,
    zones: Option<NandZones<Virtual, P>>,
    episodes: Option<Episodes<Virtual>>,
    operations_before: u64,
    cuts_before: u64,
    rng: Rng,
}

impl<P: Payload> NandRig<P> {
    /// The array.
    pub fn nand(&self) -> &Nand<P> {
        &self.nand
    }
}

impl<P: Payload> Rig for NandRig<P> {
    type Page = P;

    fn of_size(seed: u64, size: Size, more: u32) -> Self {
        let (blocks_per_plane, pages_per_block) = match size {
            Size::Small => (SMALL.blocks_per_plane, SMALL.pages_per_block),
            Size::Large => {
                (LARGE_ZONES + SMALL_ZONES.spare_blocks_per_plane, LARGE_PAGES_PER_BLOCK)
            }
        };
        let blocks_per_plane = blocks_per_plane + more;
        let geometry = NandGeometry { blocks_per_plane, pages_per_block, ..SMALL };
        let timing = NandTiming {
            read_ns: 50_000,
            program_ns: 500_000,
            program_upper_ns: 500_000,
            erase_ns: 2_000_000,
            channel_bytes_per_second: 200_000_000,
        };
        let nand = NandOptions { geometry, timing, faults: NandFaults::default(), seed };
        Self::of_shape(seed, &ArrayShape { nand, zones: SMALL_ZONES })
            .unwrap_or_else(|error| panic!("the rig's geometry is legal: {error}"))
    }

    fn of_shape(seed: u64, shape: &ArrayShape) -> Result<Self> {
        let nand = Nand::new(&NandOptions { seed, ..shape.nand })?;
        // Invalid shapes are refused here, and not only when the array is opened.
        NandZones::new(Virtual::new(Schedule::Fifo), nand.clone(), shape.zones)?;
        let (options, rng) = (shape.zones, Rng::split(seed, "rig"));
        Ok(NandRig {
            nand,
            options,
            zones: None,
            episodes: None,
            operations_before: 0,
            cuts_before: 0,
            rng,
        })
    }

    fn open(&mut self, runtime: &Virtual) -> ErasedZones<P> {
        let zones = match self.zones.take() {
            Some(zones) => zones,
            None => NandZones::new(runtime.clone(), self.nand.clone(), self.options)
                .unwrap_or_else(|error| panic!("the rig's options are legal: {error}")),
        };
        // Each opening invalidates the handles before it. The handle that is kept is only used to
        // open the array again.
        let opened = zones.reopen(runtime.clone());
        self.zones = Some(zones);
        self.operations_before = self.nand.mutations();
        self.cuts_before = self.nand.power_cuts();
        let episodes = Episodes::new(runtime.clone());
        self.episodes = Some(episodes.clone());
        ErasedZones::new(Flaky::new(Rc::new(opened), episodes))
    }

    fn episodes(&self) -> Option<Episodes<Virtual>> {
        self.episodes.clone()
    }

    fn plan(&mut self, plan: CutPlan) {
        self.nand.plan_cut(Some(plan));
    }

    fn operations_watch(&self) -> impl Fn() -> u64 + 'static {
        let (nand, before) = (self.nand.clone(), self.operations_before);
        move || nand.mutations() - before
    }

    fn fail_programs(&mut self, programs: &[u64]) {
        self.nand.call_off_failing_programs();
        programs.iter().for_each(|program| self.nand.fail_program(*program));
    }

    fn is_cut(&self) -> bool {
        self.nand.power_cuts() > self.cuts_before
    }

    fn cut_watch(&self) -> impl Fn() -> bool + 'static {
        let (nand, before) = (self.nand.clone(), self.cuts_before);
        move || nand.power_cuts() > before
    }

    fn power_off(&mut self, runtime: &Virtual) -> Result<()> {
        self.nand.plan_cut(None);
        if !self.is_cut() {
            let rng = &mut self.rng;
            self.nand.power_cut(runtime.now_ns(), |_| Fate::ALL[rng.below(3) as usize]);
        }
        Ok(())
    }
}
