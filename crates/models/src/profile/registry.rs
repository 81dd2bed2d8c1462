//! Every device that has a name. A new one is an entry of [`DEVICES`]; a new kind of device is a
//! variant of [`DeviceKind`], [`DeviceSpec`] and [`SimulatedDevice`] besides.
use crate::NandOptions;
use crate::nand::Nand;
use crate::personality::{PersonalityConfig, SimulatedPersonality};
use std::rc::Rc;
use tantalum_base::{
    Durability, Limits, PageDevice, PageNo, PageRange, Payload, Result, Spec, TxId,
};
use tantalum_runtime::Runtime;

use super::{
    BaselineConfig, BaselineKind, DeviceConfig, DiskConfig, DiskProfile, HybridConfig,
    HybridProfile, Profile, SimulatedBaseline, SimulatedDisk, SimulatedHybrid, SimulatedSsd,
    SimulatedTxSsd, TxSsdConfig,
};
use crate::baselines::Clustering;

/// How a device of a name is made.
#[derive(Clone, Copy, Debug)]
pub enum DeviceKind {
    /// Flash behind a page mapping and a write cache.
    Ssd(fn() -> Profile),
    /// An arm over platters.
    Disk(fn() -> DiskProfile),
    /// Flash behind a page mapping and a cache in NVRAM; made of pages and pages of the cache.
    TxSsd(fn(u64, u32) -> TxSsdConfig),
    /// The same flash behind a redo log, or with shadow pages.
    Baseline(BaselineKind),
    /// Flash behind log blocks and a link.
    Hybrid(fn() -> HybridProfile),
    /// A translation layer of an earlier device, over flash.
    Personality,
}

/// A device's name.
#[derive(Clone, Copy, Debug)]
pub struct DeviceEntry {
    /// What users call it.
    pub name: &'static str,
    /// How it is made.
    pub kind: DeviceKind,
}

/// The devices.
pub const DEVICES: &[DeviceEntry] = &[
    DeviceEntry { name: "durassd", kind: DeviceKind::Ssd(Profile::durassd) },
    DeviceEntry { name: "ssd-a", kind: DeviceKind::Ssd(Profile::ssd_a) },
    DeviceEntry { name: "ssd-b", kind: DeviceKind::Ssd(Profile::ssd_b) },
    DeviceEntry { name: "openssd", kind: DeviceKind::Ssd(Profile::open_ssd) },
    DeviceEntry { name: "cheetah-15k6", kind: DeviceKind::Disk(DiskProfile::cheetah_15k6) },
    DeviceEntry { name: "x25-m", kind: DeviceKind::Ssd(Profile::x25_m) },
    DeviceEntry { name: "mtron", kind: DeviceKind::Hybrid(HybridProfile::mtron) },
    DeviceEntry { name: "wd800aajs", kind: DeviceKind::Disk(DiskProfile::wd800aajs) },
    DeviceEntry { name: "wd1500hlfs", kind: DeviceKind::Disk(DiskProfile::wd1500hlfs) },
    DeviceEntry { name: "mba3147rc", kind: DeviceKind::Disk(DiskProfile::mba3147rc) },
    DeviceEntry { name: "txssd", kind: DeviceKind::TxSsd(TxSsdConfig::new) },
    DeviceEntry { name: "nvcache", kind: DeviceKind::TxSsd(TxSsdConfig::nv_cache) },
    DeviceEntry { name: "wal", kind: DeviceKind::Baseline(BaselineKind::Wal) },
    DeviceEntry {
        name: "tx-flash",
        kind: DeviceKind::Baseline(BaselineKind::Shadow(Clustering::Cycles)),
    },
    DeviceEntry {
        name: "atomic-log",
        kind: DeviceKind::Baseline(BaselineKind::Shadow(Clustering::LogFlags)),
    },
    DeviceEntry { name: "block-map", kind: DeviceKind::Personality },
    DeviceEntry { name: "bast", kind: DeviceKind::Personality },
    DeviceEntry { name: "fast", kind: DeviceKind::Personality },
    DeviceEntry { name: "dftl", kind: DeviceKind::Personality },
];

/// What a device is made with, whatever its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceSpec {
    /// An SSD.
    Ssd(DeviceConfig),
    /// A disk.
    Disk(DiskConfig),
    /// A TxSSD.
    TxSsd(TxSsdConfig),
    /// A device that TxCache was measured against.
    Baseline(BaselineConfig),
    /// A translation layer behind a link.
    Hybrid(HybridConfig),
    /// A translation layer.
    Personality(PersonalityConfig),
}

impl DeviceSpec {
    /// The device that `text` names: a name of [`DEVICES`], alone or with parameters, such as
    /// `durassd:capacity=4GiB,barrier=on`. Every device takes `capacity` (bytes with a unit) or
    /// `pages`; what else it takes its own page in `docs/devices/` says.
    ///
    /// # Errors
    /// `InvalidInput`, which lists what is accepted.
    pub fn parse(text: &str) -> Result<DeviceSpec> {
        let spec = Spec::parse(text)?;
        let entry = DEVICES.iter().find(|entry| entry.name == spec.name()).ok_or_else(|| {
            let names: Vec<&str> = DEVICES.iter().map(|entry| entry.name).collect();
            spec.unknown_name("simulated device", &names)
        })?;
        Ok(match entry.kind {
            DeviceKind::Ssd(profile) => {
                DeviceSpec::Ssd(DeviceConfig::of_profile(&profile(), spec)?)
            }
            DeviceKind::Disk(profile) => {
                DeviceSpec::Disk(DiskConfig::of_profile(&profile(), spec)?)
            }
            DeviceKind::TxSsd(kind) => DeviceSpec::TxSsd(TxSsdConfig::of_spec(kind, spec)?),
            DeviceKind::Baseline(kind) => {
                DeviceSpec::Baseline(BaselineConfig::of_spec(kind, spec)?)
            }
            DeviceKind::Hybrid(profile) => {
                DeviceSpec::Hybrid(HybridConfig::of_profile(&profile(), spec)?)
            }
            DeviceKind::Personality => DeviceSpec::Personality(PersonalityConfig::of_spec(spec)?),
        })
    }

    /// As it was asked for, with every parameter.
    pub fn name(&self) -> &str {
        match self {
            DeviceSpec::Ssd(config) => &config.name,
            DeviceSpec::Disk(config) => &config.name,
            DeviceSpec::TxSsd(config) => &config.name,
            DeviceSpec::Baseline(config) => &config.name,
            DeviceSpec::Hybrid(config) => &config.name,
            DeviceSpec::Personality(config) => &config.name,
        }
    }

    /// Pages that hosts see.
    pub fn pages(&self) -> u64 {
        match self {
            DeviceSpec::Ssd(config) => config.ftl.pages,
            DeviceSpec::Disk(config) => config.disk.pages,
            DeviceSpec::TxSsd(config) => config.capacity_pages,
            DeviceSpec::Baseline(config) => config.capacity_pages,
            DeviceSpec::Hybrid(config) => config.layer.pages,
            DeviceSpec::Personality(config) => config.pages,
        }
    }

    /// Pages of its write cache; 0 where it has none.
    pub fn cache_pages(&self) -> u32 {
        match self {
            DeviceSpec::Ssd(config) => config.ssd.cache_pages,
            DeviceSpec::Disk(config) => config.disk.cache_pages,
            DeviceSpec::TxSsd(config) => config.cache.cache_pages,
            DeviceSpec::Baseline(_) | DeviceSpec::Hybrid(_) | DeviceSpec::Personality(_) => 0,
        }
    }

    /// Whether a flush is answered without being done, and makes a difference: it does not reach the
    /// device (`barrier=off`), whose cache loses what was acknowledged.
    pub fn drops_flushes(&self) -> bool {
        match self {
            DeviceSpec::Ssd(config) => {
                !config.link.barrier && config.ssd.cache.durability() != Durability::OnAck
            }
            DeviceSpec::Disk(config) => !config.link.barrier && config.disk.cache_pages > 0,
            // Their links have no such setting.
            DeviceSpec::TxSsd(_)
            | DeviceSpec::Baseline(_)
            | DeviceSpec::Hybrid(_)
            | DeviceSpec::Personality(_) => false,
        }
    }

    /// Makes the device, formats it and starts its tasks. What is left to chance comes from
    /// `seed`.
    pub async fn build<R: Runtime, P: Payload>(
        &self,
        runtime: &R,
        seed: u64,
    ) -> Result<SimulatedDevice<R, P>> {
        Ok(match self {
            DeviceSpec::Ssd(config) => SimulatedDevice::Ssd(config.build(runtime, seed).await?),
            DeviceSpec::Disk(config) => SimulatedDevice::Disk(config.build(runtime)?),
            DeviceSpec::TxSsd(config) => SimulatedDevice::TxSsd(config.build(runtime, seed).await?),
            DeviceSpec::Baseline(config) => {
                let nand = config.nand(seed)?;
                let device = config.build_on(runtime, nand.clone()).await?;
                SimulatedDevice::Baseline { device, nand }
            }
            DeviceSpec::Hybrid(config) => {
                let nand = Nand::new(&NandOptions { seed, ..config.layer.nand })?;
                let device = config.build_on(runtime, nand.clone()).await?;
                SimulatedDevice::Hybrid { device, nand }
            }
            DeviceSpec::Personality(config) => {
                let nand = Nand::new(&NandOptions { seed, ..config.nand })?;
                let device = config.build_on(runtime, nand.clone()).await?;
                SimulatedDevice::Personality { device, nand }
            }
        })
    }
}

/// A simulated device of any kind, behind its link if it has one; itself a device. Clones name the
/// same one.
pub enum SimulatedDevice<R: Runtime, P: Payload> {
    /// An SSD.
    Ssd(Rc<SimulatedSsd<R, P>>),
    /// A disk.
    Disk(Rc<SimulatedDisk<R, P>>),
    /// A TxSSD.
    TxSsd(Rc<SimulatedTxSsd<R, P>>),
    /// A redo log or shadow pages, behind its link.
    Baseline {
        /// The link, and the device behind it.
        device: Rc<SimulatedBaseline<R, P>>,
        /// The array below it.
        nand: Nand<P>,
    },
    /// A translation layer behind its link.
    Hybrid {
        /// The link, and the layer behind it.
        device: Rc<SimulatedHybrid<R, P>>,
        /// The array below it.
        nand: Nand<P>,
    },
    /// A translation layer, without a link.
    Personality {
        /// The layer.
        device: Rc<SimulatedPersonality<R, P>>,
        /// The array below it.
        nand: Nand<P>,
    },
}

impl<R: Runtime, P: Payload> Clone for SimulatedDevice<R, P> {
    fn clone(&self) -> Self {
        match self {
            SimulatedDevice::Ssd(device) => SimulatedDevice::Ssd(Rc::clone(device)),
            SimulatedDevice::Disk(device) => SimulatedDevice::Disk(Rc::clone(device)),
            SimulatedDevice::TxSsd(device) => SimulatedDevice::TxSsd(Rc::clone(device)),
            SimulatedDevice::Baseline { device, nand } => {
                SimulatedDevice::Baseline { device: Rc::clone(device), nand: nand.clone() }
            }
            SimulatedDevice::Hybrid { device, nand } => {
                SimulatedDevice::Hybrid { device: Rc::clone(device), nand: nand.clone() }
            }
            SimulatedDevice::Personality { device, nand } => {
                let (device, nand) = (Rc::clone(device), nand.clone());
                SimulatedDevice::Personality { device, nand }
            }
        }
    }
}

/// The same call on whichever device it is.
macro_rules! on_each {
    ($self:ident, $device:ident => $call:expr) => {
        match $self {
            SimulatedDevice::Ssd($device) => $call,
            SimulatedDevice::Disk($device) => $call,
            SimulatedDevice::TxSsd($device) => $call,
            SimulatedDevice::Baseline { device: $device, .. } => $call,
            SimulatedDevice::Hybrid { device: $device, .. } => $call,
            SimulatedDevice::Personality { device: $device, .. } => $call,
        }
    };
}

impl<R: Runtime, P: Payload> PageDevice for SimulatedDevice<R, P> {
    type Page = P;

    fn limits(&self) -> &Limits {
        on_each!(self, device => device.limits())
    }

    async fn read(&self, first: PageNo, out: &mut [P], tx: Option<TxId>) -> Result<()> {
        on_each!(self, device => device.read(first, out, tx).await)
    }

    async fn write(&self, first: PageNo, pages: &[P], tx: Option<TxId>) -> Result<()> {
        on_each!(self, device => device.write(first, pages, tx).await)
    }

    async fn flush(&self) -> Result<()> {
        on_each!(self, device => device.flush().await)
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        on_each!(self, device => device.trim(range).await)
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        on_each!(self, device => device.share(pairs).await)
    }

    async fn begin(&self) -> Result<TxId> {
        on_each!(self, device => device.begin().await)
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        on_each!(self, device => device.commit(tx).await)
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        on_each!(self, device => device.abort(tx).await)
    }
}
