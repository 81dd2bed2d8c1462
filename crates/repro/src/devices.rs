//! The devices of the dissertation's chapters 3 to 5, measured as in their data sheets: random and sequential reads and
//! writes.
//!
//! ```text
//! sweep   the MTRON's free parameters, compared with its data sheet and with the gains of buffer policies on it
//! shapes  the agreement that is required
//! ```
mod shapes;
mod sweep;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageDevice, PageNo, Payload, Result, Rng, Stamp};
use tantalum_models::DeviceSpec;
use tantalum_runtime::{Runtime, Virtual, spawn_all};

use super::{Progress, Row, Scale};
pub(super) use shapes::SHAPES;
use tantalum_replay::device_replay::{Age, Device, Expected, age_device};

/// The places of pages that are requested one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Random,
    Sequential,
}

/// A measurement of a device.
struct Figure {
    device: &'static str,
    metric: &'static str,
    order: Order,
    write: bool,
    /// Number of single-page requests in flight.
    in_flight: u64,
    published: Option<f64>,
    calibrated: bool,
    /// Whether the latency of one request on an idle device is measured, instead of requests per second.
    latency: bool,
}

const FIGURES: [Figure; 16] = {
    use Order::{Random, Sequential};
    const fn figure(
        device: &'static str,
        metric: &'static str,
        (order, write, in_flight): (Order, bool, u64),
        published: Option<f64>,
    ) -> Figure {
        Figure {
            device,
            metric,
            order,
            write,
            in_flight,
            published,
            calibrated: false,
            latency: false,
        }
    }
    const fn calibrated(figure: Figure) -> Figure {
        Figure { calibrated: true, ..figure }
    }
    const fn latency(figure: Figure) -> Figure {
        Figure { latency: true, ..figure }
    }
    const READ: &str = "random read";
    const WRITE: &str = "random write";
    const READ_IN_ORDER: &str = "sequential read";
    const WRITE_IN_ORDER: &str = "sequential write";
    [
        calibrated(figure("mtron", READ, (Random, false, 1), Some(12_000.0))),
        calibrated(figure("mtron", WRITE, (Random, true, 1), Some(130.0))),
        figure("mtron", READ_IN_ORDER, (Sequential, false, 2), None),
        figure("mtron", WRITE_IN_ORDER, (Sequential, true, 32), None),
        calibrated(figure("x25-m", READ, (Random, false, 32), Some(35_000.0))),
        figure("x25-m", WRITE, (Random, true, 32), Some(3_300.0)),
        calibrated(figure("x25-m", READ_IN_ORDER, (Sequential, false, 2), Some(250.0))),
        figure("x25-m", WRITE_IN_ORDER, (Sequential, true, 32), Some(70.0)),
        calibrated(latency(figure("x25-m", "read latency", (Random, false, 1), Some(85.0)))),
        calibrated(latency(figure("x25-m", "write latency", (Sequential, true, 1), Some(115.0)))),
        figure("wd800aajs", READ, (Random, false, 1), None),
        // Table A.1: 15 ms.
        figure("wd800aajs", WRITE, (Random, true, 1), Some(1e3 / 15.0)),
        figure("wd1500hlfs", READ, (Random, false, 1), None),
        figure("wd1500hlfs", WRITE, (Random, true, 1), None),
        figure("mba3147rc", READ, (Random, false, 1), None),
        figure("mba3147rc", WRITE, (Random, true, 1), None),
    ]
};

impl Figure {
    /// Pages per second in the unit of data sheets: random as requests, sequential as bytes; a latency as the time of
    /// one request.
    fn in_its_unit(&self, per_second: f64) -> (&'static str, f64) {
        match self.order {
            _ if self.latency => ("us", 1e6 / per_second),
            Order::Random => ("IOPS", per_second),
            Order::Sequential => ("MB/s", per_second * PAGE_BYTES as f64 / 1e6),
        }
    }
}

/// Measures every figure. The write cache of disks is off, as in chapter 5.
pub fn devices(scale: Scale, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    for figure in &FIGURES {
        let case = format!("{}, {} in flight", figure.device, figure.in_flight);
        progress(&format!("{case}: {}", figure.metric));
        let per_second = measure(figure, "", scale, seed)?;
        let (unit, measured) = figure.in_its_unit(per_second);
        let what = (figure.metric, unit);
        let row = Row::new("data sheets", case, what, figure.published, measured);
        let row = row.at("", "", ("device", figure.device));
        rows.push(Row { calibrated: figure.calibrated, ..row });
    }
    sweep::mtron(scale, seed, progress, rows)
}

/// Pages per second, for a device with `more` parameters in addition to its size, each after a comma.
fn measure(figure: &Figure, more: &str, scale: Scale, seed: u64) -> Result<f64> {
    let disk = figure.device.starts_with(['w', 'm']) && figure.device != "mtron";
    let (parameters, requests) = match (figure.device, scale) {
        // Over the whole stroke.
        _ if disk => (":storage-cache=off", 2_000),
        ("mtron", Scale::Small) => (":capacity=256MiB", 2_000),
        ("mtron", _) => (":capacity=1GiB", 10_000),
        (_, Scale::Small) => (":capacity=256MiB", 30_000),
        _ => (":capacity=1GiB", 200_000),
    };
    let spec = DeviceSpec::parse(&format!("{}{parameters}{more}", figure.device))?;
    // The cost of a mapping by blocks does not depend on earlier writes, and sequential access is measured on a new device.
    let used = figure.device == "x25-m" && figure.order == Order::Random && !figure.latency;
    let rounds_max = if used { 20 } else { 0 };
    let age = Age { rounds_max, ..Age::default() };
    let load = Load { order: figure.order, write: figure.write, requests };
    let in_flight = figure.in_flight;
    Virtual::alone("a load on a simulated device", move |runtime| async move {
        let simulated = spec.build(&runtime, seed).await?;
        let device = &simulated.device;
        // A disk has too many pages to remember, and it needs no aging.
        let known = if disk { 0 } else { device.limits().pages };
        let expected = Rc::new(RefCell::new(Expected::new(known)));
        age_device(&runtime, &simulated, &expected, &age, seed).await?;
        device.flush().await?;
        if !load.write {
            // Cleaning that is still in progress belongs to the writes before.
            runtime.sleep(REST_NS).await;
        }
        load.run(&runtime, device, in_flight, seed).await
    })
}

/// Time for which a device is left idle before it is read.
const REST_NS: u64 = 10_000_000_000;
/// Number of pages of a sequential read; a sequential write is the same number of concurrent single-page commands.
const READ_PAGES: u64 = 32;

/// Single-page requests, except sequential reads.
#[derive(Clone, Copy)]
struct Load {
    order: Order,
    write: bool,
    requests: u64,
}

impl Load {
    /// Pages per second, with this many requests in flight.
    async fn run(
        self,
        runtime: &Virtual,
        device: &Rc<Device>,
        in_flight: u64,
        seed: u64,
    ) -> Result<f64> {
        let pages = device.limits().pages;
        let start_ns = runtime.now_ns();
        let next = Rc::new(Cell::new(0));
        let rng = Rc::new(RefCell::new(Rng::split(seed, "data sheet")));
        let client = |_| {
            let (device, next, rng) = (Rc::clone(device), Rc::clone(&next), Rc::clone(&rng));
            async move {
                while next.get() < self.requests {
                    let in_order = self.order == Order::Sequential;
                    let len = if in_order && !self.write { READ_PAGES } else { 1 };
                    let count = next.replace(next.get() + len);
                    let page = match self.order {
                        Order::Random => rng.borrow_mut().below(pages),
                        Order::Sequential => count % (pages - len + 1),
                    };
                    let page = PageNo(page);
                    if self.write {
                        device.write(page, &[Stamp::new(page, count)], None).await?;
                    } else {
                        let mut out = vec![Stamp::zero(); len as usize];
                        device.read(page, &mut out, None).await?;
                    }
                }
                Ok(())
            }
        };
        spawn_all(runtime, "client", (0..in_flight).map(client)).await?;
        Ok(self.requests as f64 * 1e9 / (runtime.now_ns() - start_ns) as f64)
    }
}
