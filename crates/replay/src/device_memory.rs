//! The memory of the simulation of a whole device that is full and being cleaned.
use rustix::time::ClockId;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Payload, Result, Stamp};
use tantalum_media::ZoneMedia;
use tantalum_models::DeviceConfig;
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

use crate::device_bench::{A_LOAD, Device, cpu_seconds};

/// Maximum memory for a full device: 4 GB for the 480 GB of the DuraSSD paper (section 3.1.2).
pub const TARGET_BYTES: u64 = 4_000_000_000;

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct DeviceMemory {
    /// Logical pages, all of them written and read back.
    pub pages: u64,
    /// Number of slots for pages on the medium.
    pub slots: u64,
    /// After the first write of every page, the share of pages that was written again, in random order.
    pub rewritten: f64,
    /// Peak memory of the process.
    pub peak_bytes: u64,
    /// Growth of the process's memory since before the device was made, without code.
    pub grown_bytes: u64,
    /// Pages moved by cleaning.
    pub pages_moved: u64,
    /// Processor time of writing.
    pub write_seconds: f64,
    /// Processor time of reading every page back.
    pub read_seconds: f64,
}

/// Pages in one write or read.
const PAGES_AT_ONCE: u64 = 256;

/// Writes every page of `device` in order, then `rewritten` of them once more, in random order, and
/// reads every page back and checks it. The content of a page follows from its number, so that the check
/// itself needs no memory.
pub fn measure(device: &str, rewritten: f64) -> Result<DeviceMemory> {
    let config = DeviceConfig::parse(device)?;
    let before_bytes = process_bytes("RssAnon:")?;
    let runtime = Virtual::new(Schedule::Fifo);
    let build = {
        let runtime = runtime.clone();
        async move { config.build(&runtime, 1).await }
    };
    let device: Rc<Device> = runtime.finish(A_LOAD, build)?;
    let pages = device.limits().pages;
    let plan = Plan { pages, rewritten };
    let start_s = cpu_seconds(ClockId::ProcessCPUTime);
    runtime.finish(A_LOAD, write(Rc::clone(&device), plan))?;
    let written_s = cpu_seconds(ClockId::ProcessCPUTime);
    runtime.finish(A_LOAD, read_back(Rc::clone(&device), plan))?;
    let read_s = cpu_seconds(ClockId::ProcessCPUTime);
    let geometry = device.device().ftl().media().geometry();
    let measured = DeviceMemory {
        pages,
        slots: u64::from(geometry.zones) * u64::from(geometry.slots_per_zone),
        rewritten,
        peak_bytes: process_bytes("VmHWM:")?,
        grown_bytes: process_bytes("RssAnon:")?.saturating_sub(before_bytes),
        pages_moved: device.device().ftl().statistics().pages_moved,
        write_seconds: written_s - start_s,
        read_seconds: read_s - written_s,
    };
    runtime.drop_tasks();
    Ok(measured)
}

/// The pages that are written twice.
#[derive(Clone, Copy)]
struct Plan {
    pages: u64,
    rewritten: f64,
}

/// The page at `rank` in a random order of all `pages`: a Feistel network of four rounds over the
/// smallest even number of bits, applied again if the result is not a page.
fn shuffled(pages: u64, rank: u64) -> u64 {
    let half = (64 - pages.leading_zeros()).div_ceil(2);
    let mask = (1 << half) - 1;
    let mut page = rank;
    loop {
        let (mut left, mut right) = (page >> half, page & mask);
        for round in 1..=4 {
            let mixed = (right << 3 | round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            (left, right) = (right, left ^ (mixed & mask));
        }
        page = left << half | right;
        if page < pages {
            return page;
        }
    }
}

impl Plan {
    fn is_rewritten(&self, page: u64) -> bool {
        let mixed = (page + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (mixed as f64) < self.rewritten * (1u64 << 32) as f64
    }

    /// The content of `page` at the end.
    fn content(&self, page: u64) -> Stamp {
        Stamp::new(PageNo(page), 1 + u64::from(self.is_rewritten(page)))
    }

    /// The pages written again, in random order.
    fn rewrites(&self) -> impl Iterator<Item = u64> {
        let plan = *self;
        (0..plan.pages)
            .map(move |rank| shuffled(plan.pages, rank))
            .filter(move |page| plan.is_rewritten(*page))
    }
}

async fn write(device: Rc<Device>, plan: Plan) -> Result<()> {
    let device = device.device();
    let mut contents = Vec::with_capacity(PAGES_AT_ONCE as usize);
    let most = PAGES_AT_ONCE.min(u64::from(device.limits().atomic_write_pages_max));
    for first in (0..plan.pages).step_by(most as usize) {
        let end = plan.pages.min(first + most);
        contents.clear();
        contents.extend((first..end).map(|page| Stamp::new(PageNo(page), 1)));
        device.write(PageNo(first), &contents, None).await?;
    }
    for page in plan.rewrites() {
        device.write(PageNo(page), &[plan.content(page)], None).await?;
    }
    Ok(())
}

async fn read_back(device: Rc<Device>, plan: Plan) -> Result<()> {
    let device = device.device();
    for first in (0..plan.pages).step_by(PAGES_AT_ONCE as usize) {
        let mut found = [(); PAGES_AT_ONCE as usize].map(|()| Stamp::zero());
        let len = PAGES_AT_ONCE.min(plan.pages - first) as usize;
        device.read(PageNo(first), &mut found[..len], None).await?;
        for (page, found) in (first..).zip(&found[..len]) {
            if *found != plan.content(page) {
                let context = format!("page {page} holds {found:?}, not {:?}", plan.content(page));
                return Err(Error::new(ErrorKind::Checksum, context));
            }
        }
    }
    Ok(())
}

/// A memory figure of this process: `VmHWM:` is its peak, `RssAnon:` is its present memory without code.
fn process_bytes(field: &str) -> Result<u64> {
    let path = "/proc/self/status";
    let status = std::fs::read_to_string(path).map_err(|error| Error::io("reading", error))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| Error::new(ErrorKind::Unsupported, format!("{path} has no {field}")))
}

/// Measures the DuraSSD profile at its full size, with a fifth of it written again and with all of it, a
/// line of text each.
pub fn bench(mut print: impl FnMut(String)) -> Result<()> {
    // In ascending order: the peak memory of the process never decreases.
    for rewritten in [0.2, 1.0] {
        let memory = measure("durassd", rewritten)?;
        print(format!(
            "480 GB durassd, every page written, {rewritten} of them again: {:.2} GB of memory  {:.2}x of \
             {:.0} GB  {:.1} bytes a page of {:.1} M  {} pages moved  written in {:.0} s, read back and \
             checked in {:.0} s",
            memory.peak_bytes as f64 / 1e9,
            memory.peak_bytes as f64 / TARGET_BYTES as f64,
            TARGET_BYTES as f64 / 1e9,
            memory.peak_bytes as f64 / memory.pages as f64,
            memory.pages as f64 / 1e6,
            memory.pages_moved,
            memory.write_seconds,
            memory.read_seconds,
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_comes_once() {
        for pages in [1, 2, 5, 1000, 4096] {
            let mut seen: Vec<u64> = (0..pages).map(|rank| shuffled(pages, rank)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..pages), "{pages} pages");
        }
    }

    #[test]
    fn a_small_device_cleans_and_reads_back() {
        let memory = measure("durassd:capacity=64MiB,op=0.1", 0.5).unwrap();
        assert!(memory.pages_moved > 0, "{memory:?}");
        assert!(memory.peak_bytes > memory.slots * 16, "{memory:?}");
    }
}
