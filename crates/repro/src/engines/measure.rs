//! One cell: a load on an engine on a device, and power cuts in the middle of it, in virtual time.
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageDevice, Result, Rng, Stamp};
use tantalum_hosts::values::ValueStamp;
use tantalum_media::{ErasedZones, Fate};
use tantalum_models::nand::{Nand, NandCounters};
use tantalum_models::{DeviceConfig, NandOptions, NandZones, SimulatedDevice};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{DeviceKind, LifeCycle, Opening, Runtime, Virtual};

use super::cell::{Cell, Device};
use super::clients::Clients;
use super::flash::flash;
use super::load::Load;
use super::served::{Served, Service, Serving};
use super::sizes::Sizes;
use super::store::{Codecs, Stamps};
use super::tiered::TieredKind;

/// The zones with the content of a cell.
pub(super) type Zones = ErasedZones<Stamp>;

/// Number of YCSB operations between two checks of how much was written to the device while it ages.
const AGEING_OPERATIONS: u64 = 4_096;

/// The result of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) service: Service,
    pub(super) wear: Wear,
    pub(super) recovery: Recovery,
}

/// The wear of the flash meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wear {
    /// Bytes programmed, for any reason.
    pub(super) programmed_bytes: f64,
    /// Bytes erased.
    pub(super) erased_bytes: f64,
    /// Duration in seconds.
    pub(super) seconds: f64,
}

/// Recovery times after the power comes back: means of all cuts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Recovery {
    /// Time until the device is open.
    pub(super) device_ms: f64,
    /// Time until the engine is open.
    pub(super) engine_ms: f64,
}

/// Measures a cell under a load.
///
/// # Errors
/// Those of device, engine and load; `Corrupt` if a read returns a wrong result, also after a cut.
pub(super) fn measure(cell: Cell, load: Load, sizes: &Sizes, seed: u64) -> Result<Outcome> {
    let config = flash(cell.device, sizes.drive_pages)?;
    match cell.device {
        Device::Tiered => {
            let kind = TieredKind::new(&config, sizes.drive_pages, seed)?;
            measure_on(kind, &config, (cell, load), sizes, seed)
        }
        _ => measure_on(config.kind(seed), &config, (cell, load), sizes, seed),
    }
}

/// Measures a cell on a device of this kind over the flash of `config`.
///
/// # Errors
/// As for [`measure`].
pub(super) fn measure_on<K>(
    kind: K,
    config: &DeviceConfig,
    (cell, load): (Cell, Load),
    sizes: &Sizes,
    seed: u64,
) -> Result<Outcome>
where
    K: DeviceKind<Virtual, Zones>,
    K::Device: PageDevice<Page = Stamp>,
{
    let measured = Bench::new(kind, config, (cell, load), sizes, seed)?.run();
    measured.map_err(|error| error.wrap(cell.name()))
}

/// The state that survives a power cut.
struct Bench<K: DeviceKind<Virtual, Zones>> {
    kind: K,
    kept: K::Kept,
    nand: Nand<Stamp>,
    zones: NandZones<Virtual, Stamp>,
    codecs: Codecs<Stamps>,
    clients: Clients,
    cell: Cell,
    load: Load,
    sizes: Sizes,
    seed: u64,
}

/// The engine of a cell. It is compiled once for all kinds of devices.
type Engine = Serving<Virtual, SimulatedDevice<Stamp>, Stamps>;

impl<K> Bench<K>
where
    K: DeviceKind<Virtual, Zones>,
    K::Device: PageDevice<Page = Stamp>,
{
    fn new(
        kind: K,
        config: &DeviceConfig,
        (cell, load): (Cell, Load),
        sizes: &Sizes,
        seed: u64,
    ) -> Result<Rc<Self>> {
        let nand = Nand::new(&NandOptions { seed, ..config.nand })?;
        let zones = NandZones::new(Virtual::new(Schedule::Fifo), nand.clone(), config.zones)?;
        Ok(Rc::new(Bench {
            kind,
            kept: K::Kept::default(),
            nand,
            zones,
            codecs: Codecs::default(),
            clients: Clients::new::<ValueStamp>(load, sizes, seed)?,
            cell,
            load,
            sizes: *sizes,
            seed,
        }))
    }

    /// Loads, ages, measures, and cuts the power.
    fn run(self: Rc<Self>) -> Result<Outcome> {
        let (device, (served, wear)) = self.life(0, |bench, on| async move {
            let device = bench.kind.format(bench.opening(&on)).await?;
            device.start(&on);
            let engine = (bench.cell.host, bench.load, &bench.sizes);
            let clients = &bench.clients;
            let any = SimulatedDevice::new(Rc::clone(&device));
            let serving = Serving::make((&on, &any), &bench.codecs, engine, clients).await?;
            let measured = bench.measured(&serving).await?;
            bench.leave(&serving, measured.0.elapsed_ns(), 0).await?;
            Ok((device, measured))
        })?;
        let load_ns = served.elapsed_ns();
        let (mut recovery, mut device) = (Recovery::default(), device);
        for cut in 1..=self.sizes.cuts {
            self.dump(device)?;
            let (reopened, took) = self.life(cut, move |bench, on| async move {
                let (device, serving, took) = bench.reopen(&on).await?;
                bench.leave(&serving, load_ns, cut).await?;
                Ok((device, took))
            })?;
            device = reopened;
            recovery.device_ms += took.device_ms / self.sizes.cuts as f64;
            recovery.engine_ms += took.engine_ms / self.sizes.cuts as f64;
        }
        Ok(Outcome { service: served.service(), wear, recovery })
    }

    /// One power-on period of the device, which ends with a power cut: programs in progress meet a fate of their
    /// own.
    fn life<T: 'static, F: Future<Output = Result<T>> + 'static>(
        self: &Rc<Self>,
        number: u64,
        life: impl FnOnce(Rc<Self>, Virtual) -> F,
    ) -> Result<T> {
        let runtime = Virtual::new(Schedule::Fifo);
        let lived = runtime.finish(self.cell.name(), life(Rc::clone(self), runtime.clone()));
        runtime.drop_tasks();
        let mut fates = Rng::split(self.seed ^ number << 32, "fates");
        self.nand.power_cut(runtime.now_ns(), |_| Fate::ALL[fates.below(3) as usize]);
        lived
    }

    fn opening(&self, runtime: &Virtual) -> Opening<Virtual, Zones, K::Kept> {
        let media = ErasedZones::new(self.zones.reopen(runtime.clone()));
        Opening { runtime: runtime.clone(), media, kept: self.kept.clone() }
    }

    /// Ages the device by the load, then measures it.
    async fn measured(&self, serving: &Engine) -> Result<(Served, Wear)> {
        let aged = (self.sizes.drive_pages as f64 * self.sizes.ageing) as u64;
        let mut seed = self.seed;
        while serving.written_pages() < aged {
            seed = seed.wrapping_add(1 << 32);
            serving.age(AGEING_OPERATIONS / self.load.weight(), seed).await?;
        }
        let before = self.nand.counters();
        let served = serving.serve(self.sizes.operations / self.load.weight(), self.seed).await?;
        let wear = self.wear(&before, &served);
        Ok((served, wear))
    }

    fn wear(&self, before: &NandCounters, served: &Served) -> Wear {
        let now = self.nand.counters();
        let block_bytes = f64::from(self.nand.geometry().slots_per_block()) * PAGE_BYTES as f64;
        Wear {
            programmed_bytes: (now.bytes_in - before.bytes_in) as f64,
            erased_bytes: (now.erases - before.erases) as f64 * block_bytes,
            seconds: served.elapsed_ns() as f64 / 1e9,
        }
    }

    /// Continues the load until some moment, and stops there.
    async fn leave(&self, serving: &Engine, load_ns: u64, cut: u64) -> Result<()> {
        let seed = self.seed ^ (1 + cut) << 48;
        let moment_ns = load_ns / 4 + Rng::split(seed, "cuts").below(load_ns * 3 / 4);
        serving.leave_after(seed, moment_ns).await
    }

    /// The device's work on stored energy, if it has any; then its memory is gone.
    fn dump(self: &Rc<Self>, device: Rc<K::Device>) -> Result<()> {
        if !K::HAS_STORED_ENERGY {
            return Ok(());
        }
        let (bench, runtime) = (Rc::clone(self), Virtual::new(Schedule::Fifo));
        let on = self.opening(&runtime);
        let dumping = async move { bench.kind.on_stored_energy(device, on).await };
        let dumped = runtime.finish(self.cell.name(), dumping);
        runtime.drop_tasks();
        dumped
    }

    /// The power is back: opens the device and the engine, and reads all content of the load.
    async fn reopen(&self, runtime: &Virtual) -> Result<(Rc<K::Device>, Engine, Recovery)> {
        let (device, _) = self.kind.open(self.opening(runtime)).await?;
        device.start(runtime);
        let device_ms = runtime.now_ns() as f64 / 1e6;
        let any = SimulatedDevice::new(Rc::clone(&device));
        let engine = (self.cell.host, self.load, &self.sizes);
        let serving = Serving::open((runtime, &any), &self.codecs, engine, &self.clients).await?;
        let engine_ms = runtime.now_ns() as f64 / 1e6;
        serving.check().await?;
        Ok((device, serving, Recovery { device_ms, engine_ms }))
    }
}
