//! The speed of the simulation of a whole device: pages written per second of one core's time,
//! including cleaning.
use rustix::time::{ClockId, clock_gettime};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Payload, Result, Rng, Stamp};
use tantalum_models::{DeviceConfig, DeviceSpec, SimulatedSsd};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual, spawn_all};
use tantalum_trace::{OpenOptions, shared};

use crate::device_replay::{Age, DeviceReplayOptions, DeviceTrace, Expected, age_bare, replay};

/// The simulated device: an SSD with its link.
pub(crate) type Device = SimulatedSsd<Virtual, Stamp>;

/// The name of the main task in a report of a deadlock.
pub(crate) const A_LOAD: &str = "a simulated load";

/// The target for random writes with cleaning active.
pub const TARGET_PAGES_PER_S: f64 = 1e6;

/// The options of a measurement.
#[derive(Clone, Debug)]
pub struct DeviceSpeedOptions {
    /// The device, in the form that [`DeviceConfig::parse`] accepts.
    pub device: String,
    /// Random single-page writes.
    pub writes: u64,
    /// Closed-loop clients.
    pub clients: u32,
    /// Whether the writes go over the simulated link.
    pub link: bool,
    /// Number of runs, of which the fastest counts.
    pub rounds: u32,
}

/// One measurement.
#[derive(Clone, Debug)]
pub struct DeviceSpeed {
    /// The options of the measurement.
    pub options: DeviceSpeedOptions,
    /// Pages written per second of processor time.
    pub pages_per_s: f64,
    /// Virtual time of the writes, in seconds.
    pub virtual_seconds: f64,
    /// Slots programmed per written page.
    pub write_amplification: f64,
    /// Zones cleaned meanwhile.
    pub zones_cleaned: u64,
    /// Pages moved meanwhile.
    pub pages_moved: u64,
}

/// Ages the device until cleaning is steady, measures random writes, and reads every page back and
/// checks it; the time includes only the writes.
pub fn measure(options: &DeviceSpeedOptions) -> Result<DeviceSpeed> {
    let config = DeviceConfig::parse(&options.device)?;
    let runtime = Virtual::new(Schedule::Fifo);
    let build = {
        let (runtime, config) = (runtime.clone(), config.clone());
        async move {
            let device: Rc<Device> = config.build(&runtime, 1).await?;
            let expected = Rc::new(RefCell::new(Expected::new(device.limits().pages)));
            age_bare(&runtime, device.device(), &expected, &Age::default(), 1).await?;
            Ok::<_, Error>((device, expected))
        }
    };
    let (device, expected) = runtime.finish(A_LOAD, build)?;
    let mut best = None::<DeviceSpeed>;
    for round in 0..options.rounds {
        let speed = measure_round(&runtime, &device, &expected, options, u64::from(round))?;
        if best.as_ref().is_none_or(|best| speed.pages_per_s > best.pages_per_s) {
            best = Some(speed);
        }
    }
    runtime.finish(A_LOAD, read_back(Rc::clone(&device), expected))?;
    runtime.drop_tasks();
    best.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "a measurement needs a round"))
}

fn measure_round(
    runtime: &Virtual,
    device: &Rc<Device>,
    expected: &Rc<RefCell<Expected>>,
    options: &DeviceSpeedOptions,
    round: u64,
) -> Result<DeviceSpeed> {
    let (start, start_ns) = (device.device().ftl().statistics(), runtime.now_ns());
    let load = {
        let (device, expected) = (Rc::clone(device), Rc::clone(expected));
        let (runtime, options) = (runtime.clone(), options.clone());
        async move {
            if options.link {
                write_at_random(&runtime, &device, &expected, &options, round).await
            } else {
                write_at_random(&runtime, device.device(), &expected, &options, round).await
            }
        }
    };
    let start_s = cpu_seconds(ClockId::ProcessCPUTime);
    runtime.finish(A_LOAD, load)?;
    let seconds = cpu_seconds(ClockId::ProcessCPUTime) - start_s;
    let end = device.device().ftl().statistics();
    Ok(DeviceSpeed {
        options: options.clone(),
        pages_per_s: options.writes as f64 / seconds,
        virtual_seconds: (runtime.now_ns() - start_ns) as f64 / 1e9,
        write_amplification: (end.slots_programmed - start.slots_programmed) as f64
            / options.writes as f64,
        zones_cleaned: end.zones_cleaned - start.zones_cleaned,
        pages_moved: end.pages_moved - start.pages_moved,
    })
}

async fn write_at_random<D: PageDevice<Page = Stamp>>(
    runtime: &Virtual,
    device: &Rc<D>,
    expected: &Rc<RefCell<Expected>>,
    options: &DeviceSpeedOptions,
    round: u64,
) -> Result<()> {
    let left = Rc::new(Cell::new(options.writes));
    let pages = device.limits().pages;
    let client = |client| {
        let (device, expected) = (Rc::clone(device), Rc::clone(expected));
        let left = Rc::clone(&left);
        let mut rng = Rng::split(round << 32 | u64::from(client), "random writes");
        async move {
            while let Some(rest) = left.get().checked_sub(1) {
                left.set(rest);
                let page = PageNo(rng.below(pages));
                // Link and device serve writes in the order of their arrival.
                let stamp = expected.borrow_mut().write_one(page);
                device.write(page, std::slice::from_ref(&stamp), None).await?;
            }
            Ok(())
        }
    };
    spawn_all(runtime, "client", (0..options.clients).map(client)).await
}

async fn read_back(device: Rc<Device>, expected: Rc<RefCell<Expected>>) -> Result<()> {
    let pages = device.limits().pages;
    let mut found = Vec::new();
    let mut first = 0;
    while first < pages {
        let len = (pages - first).min(1024);
        found.clear();
        found.resize(len as usize, Stamp::zero());
        device.device().read(PageNo(first), &mut found, None).await?;
        expected.borrow().check(PageNo(first), &found)?;
        first += len;
    }
    Ok(())
}

/// Processor time by `clock`, the process's or the thread's: it does not include other work on the
/// machine.
pub(crate) fn cpu_seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Random writes on the DuraSSD profile scaled to 8 GiB, with and without the link, and the speed
/// of replaying a trace: a line of text each.
pub fn bench(mut print: impl FnMut(String)) -> Result<()> {
    for (op, link) in [("0.145", true), ("0.145", false), ("0.07", true), ("0.28", true)] {
        let speed = measure(&DeviceSpeedOptions {
            device: format!("durassd:capacity=8GiB,op={op}"),
            writes: 4_000_000,
            clients: 32,
            link,
            rounds: 3,
        })?;
        print(format!(
            "virtual writes durassd 8 GiB op={op:<5} {:<9} {:>6.3} M pages/s  {:>5.2}x of {:.0} M  \
             WA {:.2}  {} zones cleaned  {} pages moved  {:.1} virtual s",
            if link { "over link" } else { "raw" },
            speed.pages_per_s / 1e6,
            speed.pages_per_s / TARGET_PAGES_PER_S,
            TARGET_PAGES_PER_S / 1e6,
            speed.write_amplification,
            speed.zones_cleaned,
            speed.pages_moved,
            speed.virtual_seconds,
        ));
    }
    let large = shared::find("traces/databases/tpcc-pg-logical.csv.zst");
    let made = "zipf:pages=200k,requests=2m,theta=0.9,writes=0.3,commit=16";
    let path = large.as_deref().unwrap_or(Path::new(made));
    let trace = Rc::new(DeviceTrace::load(path, &OpenOptions::default())?);
    let config = DeviceSpec::parse("durassd:capacity=1GiB")?;
    for clients in [1, 32] {
        let options = DeviceReplayOptions { clients, ..DeviceReplayOptions::default() };
        let start_s = cpu_seconds(ClockId::ProcessCPUTime);
        let row = replay(&trace, &config, &options, &Arc::default())?;
        let seconds = cpu_seconds(ClockId::ProcessCPUTime) - start_s;
        print(format!(
            "device replay  {:<16} {clients:>3} clients  {:>6.3} M requests/s  ({:.0} a virtual s)",
            row.trace,
            row.requests as f64 / seconds / 1e6,
            row.requests_per_s,
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_cleans_and_reads_back_what_was_written() {
        for link in [true, false] {
            let options = DeviceSpeedOptions {
                device: "durassd:capacity=64MiB,op=0.15".into(),
                writes: 20_000,
                clients: 32,
                link,
                rounds: 1,
            };
            let speed = measure(&options).unwrap();
            assert!(speed.zones_cleaned > 0 && speed.write_amplification > 1.5, "{speed:?}");
            assert!(speed.pages_per_s > 0.0 && speed.virtual_seconds > 0.0);
        }
    }
}
