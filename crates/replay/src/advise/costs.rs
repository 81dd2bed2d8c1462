//! The cost of one physical read and one physical write on a device in steady use.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, Payload, Result, Rng, Stamp};
use tantalum_models::{DeviceSpec, SimulatedDevice};
use tantalum_runtime::{Runtime, Virtual};

use crate::device_replay::{Age, Expected, age_device};

/// Pages of a cluster: the unit of the dissertation's clustered writes (section 3.3).
pub const CLUSTER_PAGES: u64 = 16;
/// Minimum number of requests of each kind.
const REQUESTS_MIN: u64 = 4_000;
/// A round of writes is at least this part of a device that ages.
const PARTS: u64 = 2;
/// Rounds of writes of a kind: at least, and at most.
const ROUNDS: (u32, u32) = (3, 8);
/// Relative difference between two rounds at which the time of a write is steady.
const STEADY: f64 = 0.03;
/// Number of write caches' worth of pages that a measurement of writes must exceed.
const CACHES: u64 = 3;

/// Time per page for one client, which waits for each request; virtual time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceCosts {
    /// A page read at random places.
    pub read_ns: f64,
    /// A page written at random places, including cleaning and emptying the write cache, on a device that has had only such writes for long.
    pub write_ns: f64,
    /// A page written together with its neighbours in a cluster, one after the other, on a device that has had only such writes for
    /// long.
    pub clustered_write_ns: f64,
}

impl DeviceCosts {
    /// Measures a new device of `spec`, which is aged until cleaning is steady. Every read is
    /// checked.
    ///
    /// # Errors
    /// Those of the device; `Corrupt` if a read does not return the content that was written.
    pub fn measure(spec: &DeviceSpec, seed: u64) -> Result<DeviceCosts> {
        let what = format!("measuring {}", spec.name());
        let spec = spec.clone();
        Virtual::alone(what, move |runtime| async move {
            Measurement::on(&runtime, &spec, seed).await?.costs().await
        })
    }

    /// Seconds for this many physical reads and scattered writes, one after the other.
    pub fn seconds(&self, reads: u64, writes: u64) -> f64 {
        (reads as f64 * self.read_ns + writes as f64 * self.write_ns) / 1e9
    }

    /// The cost of a write, in reads.
    pub fn write_in_reads(&self) -> f64 {
        self.write_ns / self.read_ns
    }
}

struct Measurement {
    runtime: Virtual,
    device: Rc<SimulatedDevice<Stamp>>,
    expected: Rc<RefCell<Expected>>,
    rng: Rng,
    requests: u64,
}

impl Measurement {
    async fn on(runtime: &Virtual, spec: &DeviceSpec, seed: u64) -> Result<Measurement> {
        let simulated = spec.build(runtime, seed).await?;
        let device = Rc::clone(&simulated.device);
        let expected = Rc::new(RefCell::new(Expected::new(device.limits().pages)));
        age_device(runtime, &simulated, &expected, &Age::default(), seed).await?;
        device.flush().await?;
        let aged_pages = simulated.ages.as_ref().map_or(0, |_| device.limits().pages);
        let cached = CACHES * u64::from(spec.cache_pages());
        Ok(Measurement {
            runtime: runtime.clone(),
            device,
            expected,
            rng: Rng::split(seed, "device costs"),
            requests: REQUESTS_MIN.max(cached).max(aged_pages / PARTS),
        })
    }

    async fn costs(mut self) -> Result<DeviceCosts> {
        let start_ns = self.runtime.now_ns();
        for _ in 0..REQUESTS_MIN {
            let page = PageNo(self.rng.below(self.device.limits().pages));
            let mut found = [Stamp::zero()];
            self.device.read(page, &mut found, None).await?;
            self.expected.borrow().check(page, &found)?;
        }
        let read_ns = (self.runtime.now_ns() - start_ns) as f64 / REQUESTS_MIN as f64;
        let write_ns = self.steady(1).await?;
        let clustered_write_ns = self.steady(CLUSTER_PAGES).await?;
        Ok(DeviceCosts { read_ns, write_ns, clustered_write_ns })
    }

    /// The time per page of runs of `run` neighbours when it no longer changes. The first writes after a pause, such as the reads
    /// before, are cheap: they use zones that were cleaned meanwhile. And the pages lie on the device as earlier writes of another kind
    /// left them, which determines the cost of cleaning until most are written anew.
    async fn steady(&mut self, run: u64) -> Result<f64> {
        let (least, most) = ROUNDS;
        let mut before = f64::INFINITY;
        for round in 1..=most {
            let now = self.write(run).await?;
            let is_steady = (now / before - 1.0).abs() < STEADY;
            before = now;
            if round >= least && is_steady {
                break;
            }
        }
        Ok(before)
    }

    /// Writes runs of `run` neighbours, one page after the other, at changing places; returns the
    /// time per page.
    async fn write(&mut self, run: u64) -> Result<f64> {
        let start_ns = self.runtime.now_ns();
        let pages = self.device.limits().pages;
        let runs = self.requests.div_ceil(run);
        for _ in 0..runs {
            let first = self.rng.below((pages / run).max(1)) * run;
            for page in (first..pages.min(first + run)).map(PageNo) {
                let stamp = self.expected.borrow_mut().write_one(page);
                self.device.write(page, &[stamp], None).await?;
            }
        }
        // Pages that wait in a cache are not written yet.
        self.device.flush().await?;
        Ok((self.runtime.now_ns() - start_ns) as f64 / (runs * run) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(device: &str) -> DeviceCosts {
        DeviceCosts::measure(&DeviceSpec::parse(device).unwrap(), 1).unwrap()
    }

    #[test]
    fn a_disk_seeks_and_flash_that_merges_minds_scattered_writes() {
        let disk = costs("cheetah-15k6:capacity=4GiB,storage-cache=off");
        assert!((3e6..9e6).contains(&disk.read_ns), "{disk:?}");
        let merging = costs("bast:capacity=64MiB");
        assert!(merging.write_in_reads() > 4.0, "{merging:?}");
        assert!(merging.clustered_write_ns < merging.write_ns / 2.0, "{merging:?}");
        let mapped = costs("ssd-b:capacity=128MiB,storage-cache=off");
        assert!(mapped.write_ns < merging.write_ns, "{mapped:?} {merging:?}");
        assert_eq!(costs("bast:capacity=64MiB"), merging);
    }

    /// Once the first kind to be measured was the cheaper one.
    #[test]
    fn writes_among_neighbours_cost_no_more_than_scattered_ones_on_flash() {
        for device in ["nvme-plp", "ssd-a", "durassd"] {
            let costs = costs(&format!("{device}:pages=16384"));
            assert!(costs.clustered_write_ns < 0.97 * costs.write_ns, "{device}: {costs:?}");
        }
    }
}
