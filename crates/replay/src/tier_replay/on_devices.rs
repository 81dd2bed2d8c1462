//! The tiers on simulated devices: each operation that they decide on is carried out in virtual time, one after
//! the other, as by one client that waits for it.
//!
//! Source: "Caching for flash-based databases and flash-based caching for databases" (Ou, 2012), section 6.4.2.
use std::rc::Rc;
use std::sync::Arc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Result, Stamp};
use tantalum_models::DeviceSpec;
use tantalum_policy::tier::Operation;
use tantalum_runtime::{Runtime, Virtual};

use super::contents::Contents;
use super::tiers::Tiers;
use super::{TierOutcome, TierRun};
use crate::cache_replay::CacheTrace;
use crate::device_replay::Device;

/// The devices of the tiers.
#[derive(Clone, Debug)]
pub struct TierDevices {
    /// The flash, new; `None` if the middle tier never writes to flash.
    pub flash: Option<DeviceSpec>,
    /// The home. Every page of the trace is on it at the start, at its own number.
    pub home: DeviceSpec,
    /// Number of device pages for a page of the trace.
    pub device_pages: u32,
    /// Computing time per request.
    pub cpu_ns: u64,
    /// Seed of the random choices of the devices.
    pub seed: u64,
}

/// The client's waiting times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierWaits {
    /// For reads of flash: `t_FR`.
    pub flash_read_ns: u64,
    /// For writes to flash: `t_FW`.
    pub flash_write_ns: u64,
    /// For reads from home: `t_HR`.
    pub home_read_ns: u64,
    /// For writes home, including the final wait until all of them are on the medium: `t_HW`.
    pub home_write_ns: u64,
}

/// The decisions of a run, and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct TierMeasured {
    /// The result of [`replay`](super::replay) for the same run.
    pub outcome: TierOutcome,
    /// Execution time.
    pub took_ns: u64,
    /// The part of it in which the client waited.
    pub waits: TierWaits,
}

/// Runs `trace` through the two tiers, both empty at the start, on new devices.
///
/// # Errors
/// `InvalidInput` if the devices are too small, or there is no flash for a tier that writes to it;
/// `Unsupported` for a tier that does not report its operations; `Corrupt` if a page does not hold the content
/// that was written; those of the devices.
pub fn replay_on_devices(
    trace: &Arc<CacheTrace>,
    run: &TierRun,
    devices: &TierDevices,
) -> Result<TierMeasured> {
    let what = format!("{} through {} on {}", trace.name, run.middle, devices.home.name());
    let (trace, run, devices) = (Arc::clone(trace), run.clone(), devices.clone());
    Virtual::alone(what, |runtime| async move {
        let tiers = Tiers::new(&trace, &run)?;
        run_tiers(&runtime, &trace, &run, &devices, tiers).await
    })
}

/// The same with existing deciders.
pub(super) async fn run_tiers(
    runtime: &Virtual,
    trace: &CacheTrace,
    run: &TierRun,
    devices: &TierDevices,
    mut tiers: Tiers,
) -> Result<TierMeasured> {
    if !tiers.middle.tell_operations() {
        let context = format!("{} does not manage slots, and cannot run on a device", run.middle);
        return Err(Error::new(ErrorKind::Unsupported, context));
    }
    let mut media = Media::new(runtime, trace, run, devices).await?;
    media.fill_home().await?;
    let start_ns = runtime.now_ns();
    let top_hits = media.serve(trace, &mut tiers).await?;
    if run.flush {
        tiers.flush();
        media.carry_out(&mut tiers).await?;
    }
    media.settle_home().await?;
    let (took_ns, waits) = (runtime.now_ns() - start_ns, media.waits);
    if run.flush {
        media.check_home().await?;
    }
    Ok(TierMeasured { outcome: TierOutcome::of(trace, &tiers, top_hits), took_ns, waits })
}

/// The devices below memory, and their content.
struct Media {
    runtime: Virtual,
    flash: Option<Rc<Device>>,
    home: Rc<Device>,
    device_pages: u64,
    pages_end: u64,
    cpu_ns: u64,
    contents: Contents,
    /// Buffer for a page being moved.
    page: Vec<Stamp>,
    operations: Vec<Operation>,
    waits: TierWaits,
}

/// Makes a device of at least `pages` pages.
async fn build(
    runtime: &Virtual,
    spec: &DeviceSpec,
    seed: u64,
    (pages, of): (u64, &str),
) -> Result<Rc<Device>> {
    let device: Rc<Device> = spec.build(runtime, seed).await?.device;
    if device.limits().pages < pages {
        let context = format!("{} has no {pages} pages for {of}", spec.name());
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    Ok(device)
}

impl Media {
    async fn new(
        runtime: &Virtual,
        trace: &CacheTrace,
        run: &TierRun,
        devices: &TierDevices,
    ) -> Result<Media> {
        let device_pages = u64::from(devices.device_pages);
        if device_pages == 0 {
            let context = "a page of a trace takes at least one page of a device";
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let needed = (trace.pages_end * device_pages, "the trace");
        let home = build(runtime, &devices.home, devices.seed, needed).await?;
        let mut flash = None;
        if let Some(spec) = &devices.flash {
            let needed = (u64::from(run.middle_pages) * device_pages, "the flash cache");
            flash = Some(build(runtime, spec, devices.seed, needed).await?);
        }
        let contents = Contents::new(trace.pages_end, devices.device_pages);
        Ok(Media {
            runtime: runtime.clone(),
            flash,
            home,
            device_pages,
            pages_end: trace.pages_end,
            cpu_ns: devices.cpu_ns,
            page: contents.blank(),
            contents,
            operations: Vec::new(),
            waits: TierWaits::default(),
        })
    }

    /// Ranges of as many pages of the trace as fit into one command of the home, from the first to the last.
    fn stretches(&self) -> impl Iterator<Item = std::ops::Range<u64>> + use<> {
        let most = u64::from(self.home.limits().atomic_write_pages_max) / self.device_pages;
        let (step, end) = (most.max(1), self.pages_end);
        (0..end).step_by(step as usize).map(move |first| first..end.min(first + step))
    }

    /// Writes the database to the home before the first request.
    async fn fill_home(&self) -> Result<()> {
        for pages in self.stretches() {
            let first = PageNo(pages.start * self.device_pages);
            self.home.write(first, &self.contents.first(pages), None).await?;
        }
        self.home.flush().await
    }

    /// Runs every request of `trace`, one after the other; returns the number of hits in the top tier.
    async fn serve(&mut self, trace: &CacheTrace, tiers: &mut Tiers) -> Result<u64> {
        let (mut top_hits, mut effects) = (0, Vec::new());
        // Computing affects nobody else: that time is added up, and passes before the next wait.
        let mut computed_ns = 0;
        for request in &trace.requests {
            computed_ns += self.cpu_ns;
            let hit = tiers.access(*request, &mut effects);
            if !hit || !effects.is_empty() {
                self.runtime.sleep(std::mem::take(&mut computed_ns)).await;
            }
            self.carry_out(tiers).await?;
            self.contents.serve(request.page(), request.is_write())?;
            for effect in effects.drain(..) {
                tiers.leaves(effect);
                self.carry_out(tiers).await?;
                if effect.leaves() {
                    self.contents.left(effect.page());
                }
            }
            top_hits += u64::from(hit);
        }
        self.runtime.sleep(computed_ns).await;
        Ok(top_hits)
    }

    /// Carries out the operations of the middle tier.
    async fn carry_out(&mut self, tiers: &mut Tiers) -> Result<()> {
        let mut operations = std::mem::take(&mut self.operations);
        tiers.middle.take_operations(&mut operations);
        for operation in operations.drain(..) {
            match operation {
                Operation::ReadFlash { slot, page } => {
                    self.read_flash(slot, page).await?;
                    self.contents.came_up(page);
                }
                Operation::ReadHome { page } => {
                    self.read_home(page).await?;
                    self.contents.came_up(page);
                }
                Operation::WriteFlash { slot, page } => {
                    self.contents.goes_down(page, &mut self.page)?;
                    self.write_flash(slot).await?;
                }
                Operation::WriteHome { page } => {
                    self.contents.goes_down(page, &mut self.page)?;
                    self.write_home(page).await?;
                }
                Operation::Destage { slot, page } => {
                    self.read_flash(slot, page).await?;
                    self.write_home(page).await?;
                }
            }
        }
        self.operations = operations;
        Ok(())
    }

    fn flash(&self) -> Result<Rc<Device>> {
        let context = "a tier that writes to flash needs a device for it";
        self.flash.clone().ok_or_else(|| Error::new(ErrorKind::InvalidInput, context))
    }

    async fn read_flash(&mut self, slot: u32, page: PageNo) -> Result<()> {
        let (flash, start_ns) = (self.flash()?, self.runtime.now_ns());
        let first = PageNo(u64::from(slot) * self.device_pages);
        flash.read(first, &mut self.page, None).await?;
        self.waits.flash_read_ns += self.runtime.now_ns() - start_ns;
        self.contents.check(page, &self.page)
    }

    async fn write_flash(&mut self, slot: u32) -> Result<()> {
        let (flash, start_ns) = (self.flash()?, self.runtime.now_ns());
        let first = PageNo(u64::from(slot) * self.device_pages);
        flash.write(first, &self.page, None).await?;
        self.waits.flash_write_ns += self.runtime.now_ns() - start_ns;
        Ok(())
    }

    async fn read_home(&mut self, page: PageNo) -> Result<()> {
        let start_ns = self.runtime.now_ns();
        self.home.read(PageNo(page.0 * self.device_pages), &mut self.page, None).await?;
        self.waits.home_read_ns += self.runtime.now_ns() - start_ns;
        self.contents.check(page, &self.page)
    }

    async fn write_home(&mut self, page: PageNo) -> Result<()> {
        let start_ns = self.runtime.now_ns();
        self.home.write(PageNo(page.0 * self.device_pages), &self.page, None).await?;
        self.waits.home_write_ns += self.runtime.now_ns() - start_ns;
        Ok(())
    }

    /// Waits until the writes to the home are on the medium, and not only in a cache of the device.
    async fn settle_home(&mut self) -> Result<()> {
        let start_ns = self.runtime.now_ns();
        self.home.flush().await?;
        self.waits.home_write_ns += self.runtime.now_ns() - start_ns;
        Ok(())
    }

    /// Compares the whole home with the newest contents.
    async fn check_home(&self) -> Result<()> {
        for pages in self.stretches() {
            let mut found =
                vec![Stamp::default(); ((pages.end - pages.start) * self.device_pages) as usize];
            self.home.read(PageNo(pages.start * self.device_pages), &mut found, None).await?;
            self.contents.check_newest(pages.start, &found)?;
        }
        Ok(())
    }
}
