//! Loads on a personality: compared with a map, and with power cuts.
use std::collections::BTreeMap;
use tantalum_base::{PAGE_BYTES, PageDevice, PageNo, PageRange, Payload, Result, Rng, Stamp};
use tantalum_models::nand::{Nand, NandFaults, NandGeometry, NandOptions, NandTiming};
use tantalum_models::nand_zones::{NandZones, NandZonesOptions};
use tantalum_runtime::Virtual;

pub type Zones = NandZones<Virtual, Stamp>;

/// The distribution of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Sequential,
    Uniform,
    /// Nine of ten requests go to a tenth of the pages.
    HotCold,
    /// Runs from the first page of a block, of random length.
    Runs,
}

pub const ORDERS: [Order; 4] = [Order::Sequential, Order::Uniform, Order::HotCold, Order::Runs];

/// The requests to a device.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub seed: u64,
    pub order: Order,
    pub requests: u64,
    /// Probability that a request is a trim.
    pub trims: f64,
    /// Whether all pages are written first.
    pub fill: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Request {
    Write(u64, u64),
    Trim(u64, u64),
}

/// The requests of a load on `pages` pages.
pub fn requests(load: &Load, pages: u64, block: u64) -> Vec<Request> {
    let mut rng = Rng::split(load.seed, "requests");
    let mut requests: Vec<Request> = Vec::new();
    if load.fill {
        requests.extend((0..pages).map(|page| Request::Write(page, page + 1)));
    }
    let mut at = 0;
    for count in 0..load.requests {
        let page = match load.order {
            Order::Sequential => count % pages,
            Order::Uniform => rng.below(pages),
            Order::HotCold if rng.chance(0.9) => rng.below(pages.div_ceil(10)),
            Order::HotCold => rng.below(pages),
            Order::Runs => {
                at = match rng.chance(0.15) {
                    true => rng.below(pages.div_ceil(block)) * block,
                    false => (at + 1) % pages,
                };
                at
            }
        };
        if rng.chance(load.trims) {
            let len = 1 + rng.below((2 * block).min(pages - page));
            requests.push(Request::Trim(page, len));
        } else {
            requests.push(Request::Write(page, 1_000_000 + count));
        }
    }
    requests
}

/// The content of the pages, as the count of their last write.
#[derive(Clone, Debug, Default)]
pub struct Known(BTreeMap<u64, u64>);

impl Known {
    pub fn apply(&mut self, request: Request) {
        match request {
            Request::Write(page, count) => {
                self.0.insert(page, count);
            }
            Request::Trim(first, len) => {
                for page in first..first + len {
                    self.0.remove(&page);
                }
            }
        }
    }

    pub fn get(&self, page: u64) -> u64 {
        self.0.get(&page).copied().unwrap_or(0)
    }
}

/// The content of `page` after write number `count`; for stamps a stamp.
pub fn stamp<P: Payload>(page: u64, count: u64) -> P {
    if count == 0 {
        return P::zero();
    }
    let mut bytes = [0; PAGE_BYTES];
    bytes[..8].copy_from_slice(&(page + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&count.to_le_bytes());
    P::from_bytes(&bytes)
}

pub async fn perform<D: PageDevice>(device: &D, request: Request) -> Result<()> {
    match request {
        Request::Write(page, count) => {
            device.write(PageNo(page), &[stamp(page, count)], None).await
        }
        Request::Trim(first, len) => device.trim(PageRange::new(PageNo(first), len)).await,
    }
}

pub async fn read<D: PageDevice>(device: &D, page: u64) -> Result<D::Page> {
    let mut out = [D::Page::zero()];
    device.read(PageNo(page), &mut out, None).await?;
    let [content] = out;
    Ok(content)
}

/// Checks that every page has its expected content, or that of the request in flight; the content
/// found is expected from then on.
pub async fn verify<D: PageDevice>(
    device: &D,
    known: &mut Known,
    in_flight: Option<Request>,
) -> std::result::Result<(), String> {
    let mut after = known.clone();
    in_flight.into_iter().for_each(|request| after.apply(request));
    for page in 0..device.limits().pages {
        let found = read(device, page).await.map_err(|error| format!("page {page}: {error:?}"))?;
        if found == stamp(page, known.get(page)) {
            continue;
        }
        if found != stamp(page, after.get(page)) {
            let (old, new) = (known.get(page), after.get(page));
            return Err(format!("page {page} should be write {old} or {new} and is {found:?}"));
        }
        match after.get(page) {
            0 => known.apply(Request::Trim(page, 1)),
            count => known.apply(Request::Write(page, count)),
        }
    }
    Ok(())
}

pub fn nand(planes: u32, blocks: u32, pages_per_block: u32, page_bytes: u32) -> Nand<Stamp> {
    let geometry = NandGeometry {
        channels: planes,
        packages_per_channel: 1,
        planes_per_package: 1,
        blocks_per_plane: blocks,
        pages_per_block,
        page_bytes,
        spare_bytes: 64,
    };
    let timing = NandTiming {
        read_ns: 25_000,
        program_ns: 200_000,
        program_upper_ns: 200_000,
        erase_ns: 1_500_000,
        channel_bytes_per_second: 40_000_000,
    };
    let faults = NandFaults::default();
    Nand::new(&NandOptions { geometry, timing, faults, seed: 1 }).unwrap()
}

pub fn zones(runtime: &Virtual, nand: &Nand<Stamp>) -> Zones {
    NandZones::new(runtime.clone(), nand.clone(), NandZonesOptions::default()).unwrap()
}
