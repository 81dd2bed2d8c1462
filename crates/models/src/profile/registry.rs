//! Every named device. To add a device, add an entry to [`DEVICES`]; for a new kind of device, also
//! add a variant to [`DeviceFamily`] and [`DeviceSpec`].
use crate::personality::PersonalityConfig;
use std::pin::Pin;
use std::rc::Rc;
use tantalum_base::{Durability, PageBuf, Payload, Result, Spec, Stamp};
use tantalum_media::ErasedZones;
use tantalum_runtime::{DeviceKind, LifeCycle, Runtime, Virtual};

use super::simulated::PastLink;
use super::{
    BaselineConfig, BaselineKind, CloudConfig, CloudProfile, DeviceConfig, DiskConfig, DiskProfile,
    HybridConfig, HybridProfile, Profile, Simulated, SimulatedDevice, TxSsdConfig,
};
use crate::NandZones;
use crate::baselines::Clustering;
use crate::disk::Platters;
use crate::metered::Blocks;

/// How a named device is made.
#[derive(Clone, Copy, Debug)]
pub enum DeviceFamily {
    /// Flash with page mapping and a write cache.
    Ssd(fn() -> Profile),
    /// A disk with platters and an arm.
    Disk(fn() -> DiskProfile),
    /// Flash with page mapping and a cache in NVRAM; made from its number of pages and its cache
    /// size in pages.
    TxSsd(fn(u64, u32) -> TxSsdConfig),
    /// The same flash with a redo log or with shadow pages.
    Baseline(BaselineKind),
    /// Flash with log blocks, behind a link.
    Hybrid(fn() -> HybridProfile),
    /// A translation layer of an earlier device, on flash.
    Personality,
    /// Cloud storage.
    Cloud(fn() -> CloudProfile),
}

/// A named device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceEntry {
    /// Its name for users.
    pub name: &'static str,
    /// How it is made.
    pub family: DeviceFamily,
}

/// The devices.
pub const DEVICES: &[DeviceEntry] = &[
    entry("durassd", DeviceFamily::Ssd(Profile::durassd)),
    entry("ssd-a", DeviceFamily::Ssd(Profile::ssd_a)),
    entry("ssd-b", DeviceFamily::Ssd(Profile::ssd_b)),
    entry("openssd", DeviceFamily::Ssd(Profile::open_ssd)),
    entry("cheetah-15k6", DeviceFamily::Disk(DiskProfile::cheetah_15k6)),
    entry("x25-m", DeviceFamily::Ssd(Profile::x25_m)),
    entry("mtron", DeviceFamily::Hybrid(HybridProfile::mtron)),
    entry("wd800aajs", DeviceFamily::Disk(DiskProfile::wd800aajs)),
    entry("wd1500hlfs", DeviceFamily::Disk(DiskProfile::wd1500hlfs)),
    entry("mba3147rc", DeviceFamily::Disk(DiskProfile::mba3147rc)),
    entry("txssd", DeviceFamily::TxSsd(TxSsdConfig::new)),
    entry("nvcache", DeviceFamily::TxSsd(TxSsdConfig::nv_cache)),
    entry("wal", DeviceFamily::Baseline(BaselineKind::Wal)),
    entry("tx-flash", DeviceFamily::Baseline(BaselineKind::Shadow(Clustering::Cycles))),
    entry("atomic-log", DeviceFamily::Baseline(BaselineKind::Shadow(Clustering::LogFlags))),
    entry("block-map", DeviceFamily::Personality),
    entry("bast", DeviceFamily::Personality),
    entry("fast", DeviceFamily::Personality),
    entry("dftl", DeviceFamily::Personality),
    entry("nvme-tlc", DeviceFamily::Ssd(Profile::nvme_tlc)),
    entry("nvme-qlc", DeviceFamily::Ssd(Profile::nvme_qlc)),
    entry("nvme-plp", DeviceFamily::Ssd(Profile::nvme_plp)),
    entry("cloud-local-ssd", DeviceFamily::Cloud(CloudProfile::local_ssd)),
    entry("cloud-volume", DeviceFamily::Cloud(CloudProfile::volume)),
];

const fn entry(name: &'static str, family: DeviceFamily) -> DeviceEntry {
    DeviceEntry { name, family }
}

/// The configuration of a device of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceSpec {
    /// An SSD.
    Ssd(DeviceConfig),
    /// A disk.
    Disk(DiskConfig),
    /// A TxSSD.
    TxSsd(TxSsdConfig),
    /// A device with which TxCache was compared.
    Baseline(BaselineConfig),
    /// A translation layer behind a link.
    Hybrid(HybridConfig),
    /// A translation layer.
    Personality(PersonalityConfig),
    /// Cloud storage.
    Cloud(CloudConfig),
}

impl DeviceSpec {
    /// Parses the device in `text`: a name in [`DEVICES`], alone or with parameters, such as
    /// `durassd:capacity=4GiB,barrier=on`. Every device accepts `capacity` (bytes with a unit) or
    /// `pages`; its page in `docs/devices/` has its other parameters. Case and hyphens of names do
    /// not matter.
    ///
    /// # Errors
    /// `InvalidInput`, with a list of the accepted values.
    pub fn parse(text: &str) -> Result<DeviceSpec> {
        let names: Vec<&str> = DEVICES.iter().map(|entry| entry.name).collect();
        let text = &*Spec::spelled(text, &names);
        let spec = Spec::parse(text)?;
        let entry = DEVICES.iter().find(|entry| entry.name == spec.name());
        let entry = entry.ok_or_else(|| spec.unknown_name("simulated device", &names))?;
        Ok(match entry.family {
            DeviceFamily::Ssd(profile) => {
                DeviceSpec::Ssd(DeviceConfig::of_profile(&profile(), spec)?)
            }
            DeviceFamily::Disk(profile) => {
                DeviceSpec::Disk(DiskConfig::of_profile(&profile(), spec)?)
            }
            DeviceFamily::TxSsd(kind) => DeviceSpec::TxSsd(TxSsdConfig::of_spec(kind, spec)?),
            DeviceFamily::Baseline(kind) => {
                DeviceSpec::Baseline(BaselineConfig::of_spec(kind, spec)?)
            }
            DeviceFamily::Hybrid(profile) => {
                DeviceSpec::Hybrid(HybridConfig::of_profile(&profile(), spec)?)
            }
            DeviceFamily::Personality => DeviceSpec::Personality(PersonalityConfig::of_spec(spec)?),
            DeviceFamily::Cloud(profile) => {
                DeviceSpec::Cloud(CloudConfig::of_profile(&profile(), spec)?)
            }
        })
    }

    /// Its name as requested, with every parameter.
    pub fn name(&self) -> &str {
        match self {
            DeviceSpec::Ssd(config) => &config.name,
            DeviceSpec::Disk(config) => &config.name,
            DeviceSpec::TxSsd(config) => &config.name,
            DeviceSpec::Baseline(config) => &config.name,
            DeviceSpec::Hybrid(config) => &config.name,
            DeviceSpec::Personality(config) => &config.name,
            DeviceSpec::Cloud(config) => &config.name,
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
            DeviceSpec::Cloud(config) => config.metered.pages,
        }
    }

    /// Size of its write cache in pages; 0 if it has none.
    pub fn cache_pages(&self) -> u32 {
        match self {
            DeviceSpec::Ssd(config) => config.ssd.cache_pages,
            DeviceSpec::Disk(config) => config.disk.cache_pages,
            DeviceSpec::TxSsd(config) => config.cache.cache_pages,
            DeviceSpec::Baseline(_)
            | DeviceSpec::Hybrid(_)
            | DeviceSpec::Personality(_)
            | DeviceSpec::Cloud(_) => 0,
        }
    }

    /// Whether a flush is acknowledged without effect although it would matter: it does not reach
    /// the device (`barrier=off`), whose cache can lose acknowledged writes.
    pub fn drops_flushes(&self) -> bool {
        match self {
            DeviceSpec::Ssd(config) => {
                !config.link.barrier && config.ssd.cache.durability() != Durability::OnAck
            }
            DeviceSpec::Disk(config) => !config.link.barrier && config.disk.cache_pages > 0,
            // Their links have no such option, or they have no link.
            DeviceSpec::TxSsd(_)
            | DeviceSpec::Baseline(_)
            | DeviceSpec::Hybrid(_)
            | DeviceSpec::Personality(_)
            | DeviceSpec::Cloud(_) => false,
        }
    }

    /// Makes the device in virtual time, with stamps as contents, formats it and starts its tasks. `seed` determines everything
    /// random.
    ///
    /// # Errors
    /// `InvalidInput` if the device cannot be made with this configuration.
    // Boxed here, so that the device kinds are compiled in this crate.
    #[inline(never)]
    pub fn build<'a>(&'a self, runtime: &'a Virtual, seed: u64) -> Building<'a, Stamp> {
        Box::pin(self.build_with(runtime, seed))
    }

    /// As [`build`](Self::build), with real bytes as contents.
    ///
    /// # Errors
    /// `InvalidInput` if the device cannot be made with this configuration.
    #[inline(never)]
    pub fn build_bytes<'a>(&'a self, runtime: &'a Virtual, seed: u64) -> Building<'a, PageBuf> {
        Box::pin(self.build_with(runtime, seed))
    }

    /// As [`build`](Self::build), for any runtime and any contents. The device kinds are compiled
    /// again in the caller's crate.
    ///
    /// # Errors
    /// `InvalidInput` if the device cannot be made with this configuration.
    pub async fn build_with<R: Runtime, P: Payload>(
        &self,
        runtime: &R,
        seed: u64,
    ) -> Result<Simulated<P>> {
        match self {
            DeviceSpec::Ssd(config) => {
                let zones = config.new_zones(runtime, seed, u64::from(config.ssd.cache_pages))?;
                on_flash(runtime, zones, config.kind(seed)).await
            }
            DeviceSpec::Disk(config) => {
                let disk = config.kind().make(runtime, Platters::default()).await?;
                Ok(Simulated { device: SimulatedDevice::new(disk), ages: None, array: None })
            }
            DeviceSpec::TxSsd(config) => {
                let zones = config.new_zones(runtime, seed)?;
                on_flash(runtime, zones, config.kind(seed)?).await
            }
            DeviceSpec::Baseline(config) => {
                let device = config.device()?;
                let zones = device.new_zones(runtime, seed, 0)?;
                match config.kind {
                    BaselineKind::Wal => on_flash(runtime, zones, config.wal(device.ftl)).await,
                    BaselineKind::Shadow(clustering) => {
                        on_flash(runtime, zones, config.shadow(device.ftl, clustering)).await
                    }
                }
            }
            DeviceSpec::Hybrid(config) => {
                let zones = config.layer.new_zones(runtime, seed)?;
                on_flash(runtime, zones, config.kind()).await
            }
            DeviceSpec::Personality(config) => {
                let zones = config.new_zones(runtime, seed)?;
                let array = Some(zones.nand().clone());
                let device = config.kind().make(runtime, ErasedZones::new(zones)).await?;
                let device = SimulatedDevice::new(device);
                Ok(Simulated { ages: Some(Rc::clone(&device)), device, array })
            }
            DeviceSpec::Cloud(config) => {
                let device = config.metered.make(runtime, Blocks::default()).await?;
                Ok(Simulated { device: SimulatedDevice::new(device), ages: None, array: None })
            }
        }
    }
}

/// A device that is being made.
type Building<'a, P> = Pin<Box<dyn Future<Output = Result<Simulated<P>>> + 'a>>;

/// Makes a device of `kind`, which has a link, on these zones.
async fn on_flash<R: Runtime, P: Payload, K>(
    runtime: &R,
    zones: NandZones<R, P>,
    kind: K,
) -> Result<Simulated<P>>
where
    K: DeviceKind<R, ErasedZones<P>, Device: LifeCycle<Page = P> + PastLink<P>>,
{
    let array = Some(zones.nand().clone());
    let made = kind.make(runtime, ErasedZones::new(zones)).await?;
    let ages = Some(made.past_link());
    Ok(Simulated { device: SimulatedDevice::new(made), ages, array })
}
