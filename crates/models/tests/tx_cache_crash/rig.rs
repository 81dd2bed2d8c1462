//! NAND and NVRAM that lose power together.
use std::rc::Rc;
use tantalum_base::{Error, Result, Rng, Stamp};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::{CutPlan, ErasedZones, Fate};
use tantalum_models::nand::{Nand, NandFaults, NandGeometry, NandTiming};
use tantalum_models::tx_cache::{TxNvram, TxRecoveryReport};
use tantalum_models::{NandOptions, NandZones, NandZonesOptions};
use tantalum_models::{TxCache, TxCacheOptions};
use tantalum_runtime::{Runtime, Virtual};

pub type Device = TxCache<Virtual, ErasedZones<Stamp>>;

pub const FATES: [Fate; 3] = Fate::ALL;

/// The place of a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// At the store to NVRAM after this many more.
    Store(u64),
    /// At the operation of the medium after this many more.
    Operation(u64),
}

/// A cut. The fate applies to the medium's operations in flight, and to the store or operation
/// itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    pub at: At,
    pub fate: Fate,
}

pub struct Rig {
    nand: Nand<Stamp>,
    zones: Option<NandZones<Virtual, Stamp>>,
    pub nvram: Option<TxNvram<Stamp>>,
    options: TxCacheOptions,
    pages: u64,
    cuts_before: u64,
    operations_before: u64,
    stores_before: u64,
    rng: Rng,
}

impl Rig {
    pub fn new(options: TxCacheOptions, pages: u64, seed: u64) -> Rig {
        let nand = NandOptions {
            geometry: NandGeometry {
                channels: 2,
                packages_per_channel: 1,
                planes_per_package: 1,
                blocks_per_plane: 14,
                pages_per_block: 8,
                page_bytes: 4096,
                spare_bytes: 128,
            },
            timing: NandTiming {
                read_ns: 25_000,
                program_ns: 200_000,
                program_upper_ns: 200_000,
                erase_ns: 1_500_000,
                channel_bytes_per_second: 40_000_000,
            },
            faults: NandFaults::default(),
            seed,
        };
        Rig {
            nand: Nand::new(&nand).unwrap(),
            zones: None,
            nvram: None,
            options,
            pages,
            cuts_before: 0,
            operations_before: 0,
            stores_before: 0,
            rng: Rng::split(seed, "rig"),
        }
    }

    fn ftl_options(&self) -> FtlOptions {
        let pages = self.pages + u64::from(self.options.extended_pages);
        FtlOptions { checkpoint_interval_slots: 64, ..FtlOptions::new(pages) }
    }

    fn open_zones(&mut self, runtime: &Virtual) -> ErasedZones<Stamp> {
        let zones = self.zones.take().unwrap_or_else(|| {
            let options = NandZonesOptions { spare_blocks_per_plane: 0, append_pages_max: 4 };
            NandZones::new(runtime.clone(), self.nand.clone(), options).unwrap()
        });
        let opened = zones.reopen(runtime.clone());
        self.zones = Some(zones);
        self.mark();
        ErasedZones::new(opened)
    }

    /// Starts to count from here.
    fn mark(&mut self) {
        self.cuts_before = self.nand.power_cuts();
        self.operations_before = self.nand.mutations();
        self.stores_before = self.nvram.as_ref().map_or(0, |nvram| nvram.region().stores());
    }

    /// A new device.
    pub fn format(&mut self, runtime: &Virtual) -> Rc<Device> {
        let zones = self.open_zones(runtime);
        let (ftl_options, options, handle) = (self.ftl_options(), self.options, runtime.clone());
        let made = runtime.run(async move {
            let ftl = Ftl::format(zones, ftl_options).await?;
            TxCache::new(handle, ftl, options)
        });
        let device = Rc::new(made.unwrap().unwrap());
        self.nvram = Some(device.nvram());
        self.mark();
        device
    }

    /// Powers on and recovers, with `cut` during the recovery.
    pub fn recover(
        &mut self,
        runtime: &Virtual,
        cut: Option<Cut>,
    ) -> Result<(Rc<Device>, TxRecoveryReport)> {
        let zones = self.open_zones(runtime);
        self.plan(runtime, cut);
        let (ftl_options, options, handle) = (self.ftl_options(), self.options, runtime.clone());
        let nvram = self.nvram.clone().unwrap();
        let recovered = runtime.run(async move {
            let (ftl, _) = Ftl::recover(zones, ftl_options).await?;
            ftl.validate();
            TxCache::recover(handle, ftl, options, nvram).await
        });
        let deadlock =
            |deadlock| Error::with_source(tantalum_base::ErrorKind::Corrupt, "recovery", deadlock);
        let (device, report) = recovered.map_err(deadlock)??;
        Ok((Rc::new(device), report))
    }

    pub fn plan(&mut self, runtime: &Virtual, cut: Option<Cut>) {
        let Some(Cut { at, fate }) = cut else { return };
        match at {
            At::Operation(after_operations) => {
                self.nand.plan_cut(Some(CutPlan { after_operations, fate }));
            }
            At::Store(after_operations) => {
                let region = self.nvram.as_ref().unwrap().region();
                let (nand, runtime) = (self.nand.clone(), runtime.clone());
                region.on_cut(move || nand.power_cut(runtime.now_ns(), |_| fate));
                region.plan_cut(Some(CutPlan { after_operations, fate }));
            }
        }
    }

    /// Whether the power has been cut since the last opening; results that a task receives after
    /// that reach nobody.
    pub fn is_cut(&self) -> bool {
        self.nand.power_cuts() > self.cuts_before
    }

    /// A function for tasks that returns the same as `is_cut`.
    pub fn watch(&self) -> impl Fn() -> bool + Clone + 'static {
        let (nand, before) = (self.nand.clone(), self.cuts_before);
        move || nand.power_cuts() > before
    }

    /// Numbers of stores and operations since the last opening.
    pub fn counts(&self) -> (u64, u64) {
        let stores = self.nvram.as_ref().map_or(0, |nvram| nvram.region().stores());
        (stores - self.stores_before, self.nand.mutations() - self.operations_before)
    }

    /// After the power cut: drops the tasks and applies the effects of the cut.
    pub fn power_off(&mut self, runtime: &Virtual) {
        runtime.drop_tasks();
        self.nand.plan_cut(None);
        if !self.is_cut() {
            let rng = &mut self.rng;
            self.nand.power_cut(runtime.now_ns(), |_| FATES[rng.below(3) as usize]);
        }
        if let Some(nvram) = &self.nvram {
            nvram.region().power_on();
        }
    }
}
