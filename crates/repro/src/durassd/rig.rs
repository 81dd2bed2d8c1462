//! A device of the paper, used before, with a file on it.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, PageDevice, Result};
use tantalum_models::DeviceSpec;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

use super::super::Scale;
use super::super::load::{self, Access, FILE_SYSTEM, Load};
use tantalum_replay::device_replay::{Age, Device, Expected, age_device};

/// Share of an SSD that the test file occupies; it was overwritten until cleaning was steady. The
/// paper does not state it. Set by table 2, write-only with 128 threads and no barrier, 4 KiB:
/// 49,009 per second are the part of the flash's rate that cleaning leaves.
const FILLED: f64 = 0.86;

/// The name of the main task in a report of a deadlock.
const A_LOAD: &str = "a load on a simulated device";

/// The number of requests to measure.
#[derive(Clone, Copy)]
pub(super) struct Requests {
    pub(super) warm_up: u64,
    pub(super) measured: u64,
}

/// A device, and its expected content.
pub(super) struct Rig {
    runtime: Virtual,
    device: Rc<Device>,
    expected: Rc<RefCell<Expected>>,
    pages: u64,
    seed: u64,
}

impl Rig {
    /// The device called `name`, with `parameters` and the capacity for `scale`. SSDs keep their
    /// channels and planes at every scale; a disk keeps its stroke.
    pub(super) fn new(name: &str, parameters: &str, scale: Scale, seed: u64) -> Result<Rig> {
        let capacity = match (name, scale) {
            ("cheetah-15k6", _) => "8GiB",
            (_, Scale::Small) => "1GiB",
            (_, Scale::Full | Scale::Paper) => "2GiB",
        };
        let spec = DeviceSpec::parse(&format!("{name}:capacity={capacity}{parameters}"))?;
        let age = Age {
            fill: FILLED,
            rounds_max: if scale == Scale::Small { 2 } else { 20 },
            ..Age::default()
        };
        let is_disk = matches!(spec, DeviceSpec::Disk(_));
        let runtime = Virtual::new(Schedule::Fifo);
        let build = {
            let runtime = runtime.clone();
            async move {
                let simulated = spec.build(&runtime, seed).await?;
                let device = Rc::clone(&simulated.device);
                let pages = device.limits().pages;
                let expected = Rc::new(RefCell::new(Expected::new(pages)));
                age_device(&runtime, &simulated, &expected, &age, seed).await?;
                // Cleaning ends.
                runtime.sleep(1_000_000_000).await;
                Ok::<_, Error>((device, expected))
            }
        };
        let (device, expected) = runtime.finish(A_LOAD, build)?;
        let pages = match is_disk {
            true => device.limits().pages,
            false => (device.limits().pages as f64 * FILLED) as u64,
        };
        Ok(Rig { runtime, device, expected, pages, seed })
    }

    /// Number of pages of file and journal.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// Requests per second, after earlier cached writes are written back.
    pub(super) fn iops(
        &self,
        access: Access,
        clients: u32,
        pages_per_request: u32,
        requests: Requests,
    ) -> Result<f64> {
        let load = Load {
            access,
            clients,
            pages_per_request,
            warm_up: requests.warm_up,
            requests: requests.measured,
            pages: self.pages,
            file_system: FILE_SYSTEM,
        };
        let (runtime, seed) = (self.runtime.clone(), self.seed);
        let (device, expected) = (Rc::clone(&self.device), Rc::clone(&self.expected));
        self.runtime.finish(A_LOAD, async move {
            device.flush().await?;
            load::run(&runtime, &device, &expected, load, seed).await
        })
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // Tasks hold the device, and the device holds the runtime: without this neither would be
        // freed.
        self.runtime.drop_tasks();
    }
}
