//! A device with a durable cache, its power losses and reboots.
#![allow(dead_code, reason = "each test binary uses its part")]
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageDevice, PageNo, PageRange, Payload, Result, Rng, ZoneNo};
use tantalum_ftl::{DumpOptions, DumpReport, Ftl, FtlOptions};
use tantalum_media::wrappers::UntilCut;
use tantalum_media::{CutPlan, ErasedZones, Fate, PowerCut, ZoneMedia};
use tantalum_models::rig::{NandRig, Rig};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};
use tantalum_ssd::{CacheKind, RebootReport, Ssd, SsdOptions};

pub const PAGES: u64 = 140;
pub const CACHE_PAGES: u32 = 24;
pub const RECHARGE_NS: u64 = 20_000_000;
/// Zones for the dump area and the delta pages.
pub const MORE_ZONES: u32 = 9;

pub fn content<P: Payload>(page: u64, count: u64) -> P {
    if count == 0 {
        return P::zero();
    }
    let mut bytes = [count as u8; 4096];
    bytes[..8].copy_from_slice(&(page + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&count.to_le_bytes());
    P::from_bytes(&bytes)
}

pub fn settled() -> Virtual {
    Virtual::new(Schedule::Fifo)
}

pub fn ssd_options() -> SsdOptions {
    SsdOptions {
        write_back_start_pages: 12,
        write_backs_in_flight: 3,
        write_pages_max: 12,
        recharge_ns: RECHARGE_NS,
        ..SsdOptions::new(CacheKind::Durable, CACHE_PAGES)
    }
}

/// The minimum energy plus `more_pages` pages.
pub fn ftl_options<M: ZoneMedia>(media: &M, more_pages: u64) -> FtlOptions {
    let least = DumpOptions::least(&media.geometry(), PAGES, CACHE_PAGES);
    let dump = DumpOptions { budget_bytes: least.budget_bytes + 4096 * more_pages, ..least };
    FtlOptions { dump: Some(dump), checkpoint_interval_slots: 1 << 40, ..FtlOptions::new(PAGES) }
}

/// Opens the medium; no code runs after its power cut.
pub fn open<R: Rig>(rig: &mut R, runtime: &Virtual) -> ErasedZones<R::Page> {
    let media = rig.open(runtime);
    ErasedZones::new(UntilCut::new(media, rig.cut_watch()))
}

/// Runs `main` to its end; `None` if power is cut before.
pub fn until_cut<T: 'static>(
    runtime: &Virtual,
    main: impl Future<Output = T> + 'static,
) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(|| runtime.run(main))) {
        Ok(done) => Some(done.unwrap()),
        Err(payload) if PowerCut::is(&*payload) => None,
        Err(payload) => std::panic::resume_unwind(payload),
    }
}

/// A device with power.
pub struct Device<R: Rig> {
    pub rig: R,
    pub runtime: Virtual,
    pub ssd: Rc<Ssd<ErasedZones<R::Page>>>,
    pub report: RebootReport,
}

impl<R: Rig> Device<R> {
    pub fn format(seed: u64, more_pages: u64) -> Self {
        Self::format_with(seed, more_pages, ssd_options())
    }

    pub fn format_with(seed: u64, more_pages: u64, options: SsdOptions) -> Self {
        Self::format_on(R::with_more_zones(seed, MORE_ZONES), seed, more_pages, options)
    }

    pub fn format_on(mut rig: R, seed: u64, more_pages: u64, options: SsdOptions) -> Self {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let media = open(&mut rig, &runtime);
        let ftl_options = ftl_options(&media, more_pages);
        let rt = runtime.clone();
        let ssd = runtime.run(async move {
            let ftl = Ftl::format(media, ftl_options).await?;
            let ssd = Rc::new(Ssd::new(ftl, options)?);
            ssd.start(&rt);
            Ok::<_, tantalum_base::Error>(ssd)
        });
        let ssd = ssd.unwrap().unwrap();
        Device { rig, runtime, ssd, report: RebootReport::default() }
    }

    /// Reboots the device.
    pub fn try_reopen(mut rig: R, seed: u64, more_pages: u64) -> Result<Self> {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let media = open(&mut rig, &runtime);
        let ftl_options = ftl_options(&media, more_pages);
        let rt = runtime.clone();
        let reboot = async move { Ssd::reboot(media, ftl_options, ssd_options(), &rt).await };
        let (ssd, report) = runtime.run(reboot).unwrap()?;
        Ok(Device { rig, runtime, ssd, report })
    }

    pub fn reopen(rig: R, seed: u64, more_pages: u64) -> Self {
        Self::try_reopen(rig, seed, more_pages).unwrap()
    }

    pub fn run<T: 'static, F: Future<Output = Result<T>> + 'static>(
        &mut self,
        main: impl FnOnce(Rc<Ssd<ErasedZones<R::Page>>>) -> F,
    ) -> T {
        self.runtime.run(main(Rc::clone(&self.ssd))).unwrap().unwrap()
    }

    /// Cuts power without a dump.
    pub fn off(&mut self) {
        self.runtime.drop_tasks();
        self.rig.power_off(&self.runtime).unwrap();
    }

    /// Cuts power; the capacitors power the dump.
    pub fn power_loss(&mut self) -> Result<DumpReport> {
        self.off();
        let runtime = settled();
        let media = open(&mut self.rig, &runtime);
        let ssd = Rc::clone(&self.ssd);
        let dumped = runtime.run(async move { ssd.power_loss(media).await }).unwrap();
        self.rig.power_off(&runtime).unwrap();
        dumped
    }

    /// Cuts the dump short; returns true if it had ended before.
    pub fn power_loss_cut(&mut self, plan: CutPlan) -> bool {
        self.off();
        let runtime = settled();
        let media = open(&mut self.rig, &runtime);
        self.rig.plan(plan);
        let ssd = Rc::clone(&self.ssd);
        let dumped = until_cut(&runtime, async move { ssd.power_loss(media).await });
        let done = !self.rig.is_cut();
        assert_eq!(matches!(dumped, Some(Ok(_))), done, "{dumped:?}");
        runtime.drop_tasks();
        self.rig.power_off(&runtime).unwrap();
        done
    }

    pub fn dump_zones(&self) -> Vec<ZoneNo> {
        self.ssd.ftl().dump_zones()
    }
}

/// Makes the `nth` flash page of `zone` decay.
pub fn decay<P: Payload>(rig: &mut NandRig<P>, zone: ZoneNo, nth: u32) {
    let runtime = settled();
    let media = rig.open(&runtime);
    let slot = media.geometry().slot(zone, nth * media.geometry().append_unit_slots);
    rig.nand().fail_read(0);
    let read = runtime.run(async move { media.read_meta(slot).await.map(|_| ()) }).unwrap();
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Uncorrectable);
    rig.power_off(&runtime).unwrap();
}

pub async fn read_all<M: ZoneMedia>(ssd: &Ssd<M>, pages: u64) -> Result<Vec<M::Page>> {
    let mut found = vec![M::Page::zero(); pages as usize];
    for (page, out) in (0..).map(PageNo).zip(&mut found) {
        ssd.read(page, std::slice::from_mut(out), None).await?;
    }
    Ok(found)
}

/// Drives four futures together, in this order.
pub async fn join4(
    a: impl Future<Output = Result<()>>,
    b: impl Future<Output = Result<()>>,
    c: impl Future<Output = Result<()>>,
    d: impl Future<Output = Result<()>>,
) -> Result<()> {
    use std::pin::{Pin, pin};
    use std::task::Poll;
    let (mut a, mut b, mut c, mut d) = (pin!(a), pin!(b), pin!(c), pin!(d));
    let mut done = [false; 4];
    std::future::poll_fn(|context| {
        let all: [Pin<&mut dyn Future<Output = Result<()>>>; 4] =
            [a.as_mut(), b.as_mut(), c.as_mut(), d.as_mut()];
        for (future, done) in all.into_iter().zip(&mut done) {
            if !*done && let Poll::Ready(result) = future.poll(context) {
                result?;
                *done = true;
            }
        }
        if done.iter().all(|done| *done) { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

/// A medium after a power loss, with the dump of a device that had pages 0 to 9 in its cache. Pages
/// 40 to 59 were written back, and some of them trimmed.
pub fn dumped<R: Rig>(seed: u64) -> R {
    let mut device = Device::<R>::format(seed, 0);
    device.run(|ssd| async move {
        for page in 40..60 {
            ssd.write(PageNo(page), &[content(page, 1)], None).await?;
        }
        ssd.close().await?;
        ssd.trim(PageRange::new(PageNo(40), 5)).await?;
        for page in 0..10 {
            ssd.write(PageNo(page), &[content(page, 2)], None).await?;
        }
        Ok(())
    });
    let report = device.power_loss().unwrap();
    assert_eq!(report.frames, 10);
    assert!(report.bytes <= report.budget_bytes && report.number > 0, "{report:?}");
    device.rig
}

/// Checks the content of the device that [`dumped`] left.
pub fn verify_dumped<R: Rig>(rig: R) {
    let mut device = Device::reopen(rig, 99, 0);
    let found = device.run(|ssd| async move { read_all(&ssd, 60).await });
    for (page, found) in (0..60).zip(found) {
        let count = match page {
            0..10 => 2,
            45..60 => 1,
            _ => 0,
        };
        assert_eq!(found, content(page, count), "page {page}");
    }
}

/// Totals of many power losses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cycles {
    pub writes: u64,
    pub dumps: u64,
    pub merged: u64,
    pub reboots_cut: u64,
    pub delta_pages: u64,
    pub cleaned: u64,
    pub bytes_max: u64,
}

/// The page whose content a page has, and the number of that write; 0 for none.
type Held = (u64, u64);

/// The knowledge of the host: the content of each page by the last acknowledged command, and the
/// command in flight.
#[derive(Default)]
struct Host {
    known: RefCell<Vec<Held>>,
    pending: RefCell<Vec<(u64, Held)>>,
    count: Cell<u64>,
}

/// Writes, trims and shares until power is cut.
async fn load<M: ZoneMedia>(ssd: Rc<Ssd<M>>, host: Rc<Host>, mut rng: Rng) -> Result<()> {
    loop {
        let first = rng.below(PAGES);
        let len = if rng.chance(0.6) { 1 } else { 1 + rng.below(12) }.min(PAGES - first);
        host.count.set(host.count.get() + 1);
        let count = host.count.get();
        let (trim, share) = (rng.chance(0.1), rng.chance(0.3));
        let from = rng.below(PAGES - len + 1);
        let held: Vec<Held> = match (trim, share) {
            (true, _) => vec![(0, 0); len as usize],
            (_, true) => host.known.borrow()[from as usize..(from + len) as usize].to_vec(),
            _ => (first..first + len).map(|page| (page, count)).collect(),
        };
        let can_share = from.abs_diff(first) >= len && held.iter().all(|(_, count)| *count > 0);
        if share && !trim && !can_share {
            continue;
        }
        *host.pending.borrow_mut() = (first..).zip(held.iter().copied()).collect();
        match (trim, share) {
            (true, _) => ssd.trim(PageRange::new(PageNo(first), len)).await?,
            (_, true) => ssd.share_range(PageNo(first), PageNo(from), len).await?,
            _ => {
                let pages: Vec<M::Page> =
                    held.iter().map(|(page, count)| content(*page, *count)).collect();
                ssd.write(PageNo(first), &pages, None).await?;
            }
        }
        for (page, held) in host.pending.take() {
            host.known.borrow_mut()[page as usize] = held;
        }
    }
}

/// Checks that acknowledged changes are present, and that the command in flight is present
/// completely or not at all.
async fn verify<M: ZoneMedia>(ssd: &Ssd<M>, host: &Host, place: &str) -> Result<()> {
    let found = read_all(ssd, PAGES).await?;
    let pending = host.pending.take();
    let is = |page: u64, (of, count): Held| found[page as usize] == content::<M::Page>(of, count);
    let known = &mut *host.known.borrow_mut();
    if !pending.is_empty() && pending.iter().all(|(page, held)| is(*page, *held)) {
        pending.iter().for_each(|(page, held)| known[*page as usize] = *held);
    }
    for (page, held) in (0..).zip(known.iter()) {
        assert!(
            is(page, *held),
            "{place}: page {page} is {:?}, not {held:?}; in flight {pending:?}",
            found[page as usize]
        );
    }
    Ok(())
}

/// Runs a device through `cycles` power losses, at random operations; some reboots are cut too.
pub fn cycles<R: Rig>(seed: u64, cycles: u32, more_pages: u64) -> Cycles {
    let mut rng = Rng::split(seed, "power losses");
    let mut total = Cycles::default();
    let host = Rc::new(Host::default());
    *host.known.borrow_mut() = vec![(0, 0); PAGES as usize];
    let mut device = Device::<R>::format(seed, more_pages);
    for cycle in 0..cycles {
        let fate = Fate::ALL[rng.below(3) as usize];
        device.rig.plan(CutPlan { after_operations: rng.below(120), fate });
        let (ssd, of_load) = (Rc::clone(&device.ssd), Rc::clone(&host));
        let load = load(ssd, of_load, Rng::new(rng.next_u64()));
        let ended = until_cut(&device.runtime, load);
        assert!(ended.is_none(), "seed {seed} cycle {cycle}: {ended:?}");
        let statistics = device.ssd.statistics();
        assert!(statistics.dump_bytes_max <= statistics.ftl.dump_budget_bytes);
        total.delta_pages += statistics.ftl.delta_pages;
        total.cleaned += statistics.ftl.zones_cleaned;
        let report = device.power_loss().unwrap();
        total.bytes_max = total.bytes_max.max(report.bytes);
        total.dumps += u64::from(report.number > 0);
        let mut rig = device.rig;
        while rng.chance(0.4) {
            let fate = Fate::ALL[rng.below(3) as usize];
            let plan = CutPlan { after_operations: rng.below(25), fate };
            total.reboots_cut += u64::from(cut_reboot(&mut rig, plan, more_pages));
        }
        device = Device::reopen(rig, seed ^ u64::from(cycle), more_pages);
        total.merged += u64::from(device.report.recovery.merged);
        let (of_check, place) = (Rc::clone(&host), format!("seed {seed} cycle {cycle}"));
        device.run(|ssd| async move { verify(&ssd, &of_check, &place).await });
    }
    total.writes = host.count.get();
    println!("seed {seed}: {total:?}");
    assert!(total.merged > 0 && total.dumps > 0 && total.cleaned > 0, "{total:?}");
    total
}

/// Cuts a reboot; returns false if it had ended before.
pub fn cut_reboot<R: Rig>(rig: &mut R, plan: CutPlan, more_pages: u64) -> bool {
    let runtime = Virtual::new(Schedule::Fifo);
    let media = open(rig, &runtime);
    rig.plan(plan);
    let (options, rt) = (ftl_options(&media, more_pages), runtime.clone());
    let reboot = async move { Ssd::reboot(media, options, ssd_options(), &rt).await.map(|_| ()) };
    let rebooted = until_cut(&runtime, reboot);
    let cut = rebooted.is_none();
    if let Some(rebooted) = rebooted {
        rebooted.unwrap();
    }
    runtime.drop_tasks();
    rig.power_off(&runtime).unwrap();
    cut
}
