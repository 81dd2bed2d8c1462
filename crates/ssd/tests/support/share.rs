//! Devices for the tests of shares.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, PageDevice, PageNo, Payload, Rng, Stamp};
use tantalum_ftl::{DumpOptions, Ftl, FtlOptions};
use tantalum_media::wrappers::{Faults, FaultsOptions};
use tantalum_media::{ErasedZones, ZoneMedia};
use tantalum_models::rig::{NandRig, Rig};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};
use tantalum_ssd::{CacheKind, Ssd, SsdOptions};

/// Logical pages of the devices.
pub const PAGES: u64 = 120;

/// Pages of their write caches.
const CACHE_PAGES: u32 = 48;

type Media = ErasedZones<Stamp>;

/// An open device.
pub struct Session {
    pub ssd: Rc<Ssd<Media>>,
    pub runtime: Virtual,
}

/// Content of `page`, write `count`.
pub fn stamp(page: u64, count: u64) -> Stamp {
    Stamp::new(PageNo(page), count)
}

impl Session {
    /// Writes `pages` pages from `first` on for the `count`th time.
    pub async fn write(&self, first: u64, pages: u64, count: u64) -> Result<(), Error> {
        let pages: Vec<Stamp> = (first..first + pages).map(|page| stamp(page, count)).collect();
        self.ssd.write(PageNo(first), &pages, None).await
    }

    /// Reads `page` and compares.
    pub async fn expect(&self, page: u64, held: Stamp) -> Result<(), Error> {
        let mut out = [Stamp::zero()];
        self.ssd.read(PageNo(page), &mut out, None).await?;
        assert_eq!(out[0], held, "page {page}, {:?}", self.ssd.options().cache);
        Ok(())
    }
}

fn in_session<T: 'static>(
    rig: &mut NandRig<Stamp>,
    seed: u64,
    session: impl AsyncFnOnce(Virtual, Media) -> Result<T, Error> + 'static,
) -> T {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let media = rig.open(&runtime);
    let rt = runtime.clone();
    let result = runtime.run(async move { session(rt, media).await }).unwrap().unwrap();
    runtime.drop_tasks();
    rig.power_off(&runtime).unwrap();
    result
}

/// A medium for a device with a cache of `kind`: a dump needs zones of its own.
fn rig(kind: CacheKind, seed: u64) -> NandRig<Stamp> {
    NandRig::with_more_zones(seed, if kind == CacheKind::Durable { 10 } else { 0 })
}

/// `options`, with a dump if the cache is durable.
fn with_dump(kind: CacheKind, options: FtlOptions, media: &Media) -> FtlOptions {
    let dump = DumpOptions::least(&media.geometry(), PAGES, CACHE_PAGES);
    FtlOptions { dump: (kind == CacheKind::Durable).then_some(dump), ..options }
}

/// Runs `test` on a new device and validates it.
pub fn session(
    kind: CacheKind,
    options: FtlOptions,
    test: impl AsyncFnOnce(Session) -> Result<(), Error> + 'static,
) {
    let mut rig = rig(kind, 1);
    in_session(&mut rig, 1, async move |runtime: Virtual, media| {
        let options = with_dump(kind, options, &media);
        let ftl = Ftl::format(media, options).await?;
        let ssd = Rc::new(Ssd::new(Rc::clone(&ftl), SsdOptions::new(kind, CACHE_PAGES))?);
        ssd.start(&runtime);
        test(Session { ssd, runtime }).await?;
        ftl.validate();
        Ok(())
    });
}

/// Runs `test` on a new FTL over a medium that can be told to fail.
pub fn with_faults(
    test: impl AsyncFnOnce(Rc<Ftl<Media>>, &Faults<Media>) -> Result<(), Error> + 'static,
) {
    let mut rig = NandRig::<Stamp>::new(1);
    in_session(&mut rig, 1, async move |_, media| {
        let faults = Rc::new(Faults::new(Rc::new(media), FaultsOptions::default()));
        let media = ErasedZones::shared(Rc::clone(&faults));
        test(Ftl::format(media, FtlOptions::new(PAGES)).await?, &faults).await
    });
}

/// Shares, overwrites and trims until every zone has been cleaned, over several openings.
pub fn overwrite_and_reopen(kind: CacheKind, seed: u64, share_entries_max: Option<u32>) {
    let mut rig = rig(kind, seed);
    let options = FtlOptions { share_entries_max, ..FtlOptions::new(PAGES) };
    let held = Rc::new(RefCell::new(vec![Stamp::zero(); PAGES as usize]));
    for opening in 0..4 {
        let held = Rc::clone(&held);
        in_session(&mut rig, seed + opening, async move |runtime: Virtual, media| {
            let options = with_dump(kind, options, &media);
            let ftl = match opening {
                0 => Ftl::format(media, options).await?,
                _ => Ftl::recover(media, options).await?.0,
            };
            ftl.validate();
            let ssd = Rc::new(Ssd::new(ftl, SsdOptions::new(kind, CACHE_PAGES))?);
            ssd.start(&runtime);
            let device = Session { ssd, runtime };
            let mut rng = Rng::split(seed, &format!("opening {opening}"));
            for round in 0..400 {
                let (first, pages) = (rng.below(PAGES - 8), 1 + rng.below(8));
                let to = rng.below(PAGES - 8);
                let mapped = |page: u64| held.borrow()[page as usize] != Stamp::zero();
                if rng.chance(0.5)
                    && to.abs_diff(first) >= pages
                    && (first..first + pages).all(mapped)
                {
                    device.ssd.share_range(PageNo(to), PageNo(first), pages).await?;
                    let range = first as usize..(first + pages) as usize;
                    held.borrow_mut().copy_within(range, to as usize);
                } else {
                    let count = (opening << 32) + round + 1;
                    device.write(first, pages, count).await?;
                    for page in first..first + pages {
                        held.borrow_mut()[page as usize] = stamp(page, count);
                    }
                }
            }
            for page in 0..PAGES {
                let held = held.borrow()[page as usize];
                device.expect(page, held).await?;
            }
            device.ssd.close().await?;
            let counted = device.ssd.statistics().ftl;
            assert!(counted.zones_cleaned > 4 && counted.pages_shared > 0, "{counted:?}");
            // With enough room in the table, only slots that are being moved are copied.
            let few = counted.pages_share_copied * 10 < counted.pages_shared;
            assert_eq!(few, share_entries_max != Some(8), "{counted:?}");
            device.ssd.ftl().validate();
            Ok(())
        });
    }
}

/// Runs `test` on a device whose durable cache held the first writes of pages 0 and 1 at a power
/// cut.
pub fn with_a_survived_cache(test: impl AsyncFnOnce(Session) -> Result<(), Error> + 'static) {
    let mut rig = rig(CacheKind::Durable, 1);
    let options = |media: &Media| with_dump(CacheKind::Durable, FtlOptions::new(PAGES), media);
    let ssd_options = SsdOptions::new(CacheKind::Durable, CACHE_PAGES);
    let ssd = in_session(&mut rig, 1, async move |_, media| {
        let options = options(&media);
        let ftl = Ftl::format(media, options).await?;
        let ssd = Rc::new(Ssd::new(ftl, ssd_options)?);
        ssd.write(PageNo(0), &[stamp(0, 1), stamp(1, 1)], None).await?;
        Ok(ssd)
    });
    in_session(&mut rig, 2, async move |_, media| ssd.power_loss(media).await.map(|_| ()));
    in_session(&mut rig, 3, async move |runtime: Virtual, media| {
        let options = options(&media);
        let (ssd, report) = Ssd::reboot(media, options, ssd_options, &runtime).await?;
        assert_eq!(report.pages_replayed, 2);
        ssd.start(&runtime);
        test(Session { ssd, runtime }).await
    });
}

/// The expected result of [`after_a_share_and_a_cut`].
pub const AFTER_A_SHARE: [Stamp; 4] = [
    Stamp { page_plus_one: 1, count: 1 },
    Stamp { page_plus_one: 9, count: 2 },
    Stamp { page_plus_one: 1, count: 1 },
    Stamp { page_plus_one: 4, count: 1 },
];

/// Cuts power right after an acknowledged share, and returns the content of the pages then. With
/// `closed`, the device is closed before the share.
pub fn after_a_share_and_a_cut(kind: CacheKind, seed: u64, closed: bool) -> Vec<Stamp> {
    let mut rig = rig(kind, seed);
    let ssd_options = SsdOptions::new(kind, CACHE_PAGES);
    let ssd = in_session(&mut rig, seed, async move |runtime: Virtual, media| {
        let options = with_dump(kind, FtlOptions::new(PAGES), &media);
        let ssd = Rc::new(Ssd::new(Ftl::format(media, options).await?, ssd_options)?);
        ssd.start(&runtime);
        let device = Session { ssd, runtime };
        device.write(0, 4, 1).await?;
        device.write(8, 4, 2).await?;
        if closed {
            device.ssd.close().await?;
        }
        device.ssd.share_range(PageNo(100), PageNo(0), 4).await?;
        Ok(device.ssd)
    });
    if kind == CacheKind::Durable {
        in_session(&mut rig, seed, async move |_, media| ssd.power_loss(media).await.map(|_| ()));
    }
    in_session(&mut rig, seed, async move |runtime: Virtual, media| {
        let options = with_dump(kind, FtlOptions::new(PAGES), &media);
        let ssd = match kind {
            CacheKind::Durable => Ssd::reboot(media, options, ssd_options, &runtime).await?.0,
            _ => Rc::new(Ssd::new(Ftl::recover(media, options).await?.0, ssd_options)?),
        };
        let mut held = Vec::new();
        for page in [0, 8, 100, 103] {
            let mut out = [Stamp::zero()];
            ssd.read(PageNo(page), &mut out, None).await?;
            held.push(out[0]);
        }
        Ok(held)
    })
}

/// Concurrent clients that write and share the same few pages. In any order that the device
/// chooses, a page reads the same until it is changed again.
pub async fn concurrent(device: Rc<Session>, seed: u64) -> Result<(), Error> {
    let mut rng = Rng::split(seed, "concurrent");
    device.write(0, 8, 1).await?;
    for round in 2..40 {
        let mut tasks = Vec::new();
        for client in 0..4 {
            let (left, right) = (rng.below(8), rng.below(8));
            let (device, shares) = (Rc::clone(&device), rng.chance(0.5));
            tasks.push(device.runtime.clone().spawn("client", async move {
                if shares && left != right {
                    device.ssd.share(&[(PageNo(left), PageNo(right))]).await
                } else {
                    let content = [stamp(left, round * 10 + client)];
                    device.ssd.write(PageNo(left), &content, None).await
                }
            }));
        }
        for task in tasks {
            task.await?;
        }
        let mut before = vec![Stamp::zero(); 8];
        device.ssd.read(PageNo(0), &mut before, None).await?;
        // Everything still in flight lands.
        device.runtime.sleep(50_000_000).await;
        let mut after = vec![Stamp::zero(); 8];
        device.ssd.read(PageNo(0), &mut after, None).await?;
        assert_eq!(before, after, "seed {seed} round {round}");
        assert!(after.iter().all(|content| *content != Stamp::zero()));
    }
    device.ssd.ftl().validate();
    Ok(())
}
