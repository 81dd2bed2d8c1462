//! Flash, home and journal, under one power supply.
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf, Result, Rng};
use tantalum_cache::journal::{Journal, Pair};
use tantalum_cache::{Destage, Image, Tiered, TieredOptions, TieredParts, recover_flash};
use tantalum_ftl::{CacheOptions, Ftl, FtlOptions, kept_pages_max};
use tantalum_media::block_store::{CrashOptions, CrashStore, CutStyle, IoFaultKind, MemoryStore};
use tantalum_media::wrappers::Flaky;
use tantalum_media::{CutPlan, Episode, Episodes, ErasedZones, IoClass, Reach, ZoneMedia};
use tantalum_models::rig::{FileRig, Rig};
use tantalum_runtime::{LifeCycle, Runtime, Virtual};
use tantalum_ssd::{CacheKind, Drive, SsdOptions, Transactional};

pub const VOLUME_ID: u128 = 77;
/// Pages of the write cache in front of the flash.
const CACHE_PAGES: u32 = 16;
/// Pages of a transaction in memory, and of a write.
const WRITE_PAGES_MAX: u32 = 8;
/// Pages in which the rest of a transaction is staged.
const STAGING_PAGES: u64 = 600;

pub type Store = CrashStore<MemoryStore, Virtual>;
/// Flash whose reads fail for a while.
pub type Zones = ErasedZones<PageBuf>;
/// A cache, with transactions of any size over it.
pub type Device = Transactional<Tiered<Virtual, Zones, Image<Store>, Store>>;

/// The store at which the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Flash,
    Home,
    Journal,
}

/// The media that survive a power cut, and the stores that are open while the power is on.
pub struct Media {
    pub flash: FileRig,
    pub home: MemoryStore,
    pub journal: MemoryStore,
    powered: Option<(Store, Store)>,
    /// Operations that fail.
    faults: Vec<(Store, u64)>,
    /// Episodes of failing reads of the flash.
    episodes: Option<Episodes<Virtual>>,
    /// Slots of the flash.
    slots: u64,
    pub pages: u64,
    pub destage: Destage,
    rng: Rng,
    seed: u64,
}

impl Media {
    pub fn new(seed: u64, pages: u64, destage: Destage) -> Media {
        Media {
            flash: FileRig::new(seed),
            home: MemoryStore::new(pages * PAGE_BYTES as u64),
            journal: MemoryStore::new((1 << 20) + 600 * PAGE_BYTES as u64),
            powered: None,
            faults: Vec::new(),
            episodes: None,
            slots: 0,
            pages,
            destage,
            rng: Rng::split(seed, "power"),
            seed,
        }
    }

    pub fn pair(&self) -> Pair {
        Pair { volume_id: VOLUME_ID, pages: self.pages }
    }

    /// Switches the power on.
    pub fn power_on(&mut self, runtime: &Virtual) -> (Zones, Store, Store) {
        // As fast as flash, slower, or faster: if faster, the home gets the pages of an epoch
        // soonest.
        let percent = [100, 100, 400, 2000, 2][(self.seed / 3 % 5) as usize];
        let time = |least: u64, most: u64| (least.min(most * percent / 200), most * percent / 100);
        let slow = CrashOptions {
            seed: self.seed,
            read_ns: time(20_000, 100_000),
            write_ns: time(20_000, 150_000),
            sync_ns: time(50_000, 200_000),
        };
        let home = CrashStore::new(runtime.clone(), self.home.clone(), slow);
        let journal = CrashStore::new(runtime.clone(), self.journal.clone(), slow);
        self.powered = Some((home.clone(), journal.clone()));
        let episodes = Episodes::new(runtime.clone());
        self.episodes = Some(episodes.clone());
        let flash = self.flash.open(runtime);
        let geometry = flash.geometry();
        self.slots = u64::from(geometry.zones) * u64::from(geometry.slots_per_zone);
        (ErasedZones::new(Flaky::new(Rc::new(flash), episodes)), home, journal)
    }

    pub fn plan(&mut self, at: At, plan: CutPlan) {
        let (home, journal) = self.powered.as_ref().unwrap();
        match at {
            At::Flash => self.flash.plan(plan),
            At::Home => home.plan_cut(plan),
            At::Journal => journal.plan_cut(plan),
        }
    }

    /// Makes some of the next operations of home and journal fail, and for a while all reads of
    /// parts of the flash. The home is expected to perform about `operations` operations.
    pub fn fail_some(&mut self, operations: u64) {
        let (home, journal) = self.powered.as_ref().unwrap();
        for (store, operations) in [(home, operations), (journal, operations / 6)] {
            let kinds = [IoFaultKind::Io, IoFaultKind::Io, IoFaultKind::NoSpace];
            for _ in 0..self.rng.below(8) {
                let (nth, kind) =
                    (self.rng.below(operations + 1), kinds[self.rng.below(3) as usize]);
                store.fail_operation(nth, kind);
                self.faults.push((store.clone(), nth));
            }
        }
        let slots = self.slots;
        for _ in 0..self.rng.below(4) {
            let first = self.rng.below(slots);
            let reach = match self.rng.below(3) {
                0 => Reach::Everything,
                1 => Reach::Range(first..first + slots / 8),
                _ => Reach::Member { unit: 8, members: 3, member: self.rng.below(3) },
            };
            let from_ns = self.rng.below(60_000_000);
            let time_ns = from_ns..from_ns + self.rng.below(30_000_000);
            let episode = Episode::of(&[IoClass::Read]).reaching(reach).during(time_ns);
            self.episodes.as_ref().unwrap().begin(episode);
        }
    }

    /// Number of failed operations of home and journal, and of failed reads of the flash.
    pub fn failed(&mut self) -> [u64; 2] {
        let faults = std::mem::take(&mut self.faults);
        let failed = faults.iter().filter(|(store, nth)| store.operations() > *nth).count();
        [failed as u64, self.episodes.take().map_or(0, |episodes| episodes.failed(IoClass::Read))]
    }

    /// Completes when the power is gone at the home or at the journal.
    pub fn until_cut(&self) -> impl Future<Output = ()> + 'static {
        let (home, journal) = self.powered.clone().unwrap();
        async move {
            let (mut home, mut journal) =
                (Box::pin(home.until_cut()), Box::pin(journal.until_cut()));
            std::future::poll_fn(|context| {
                let home = home.as_mut().poll(context);
                if home.is_ready() { home } else { journal.as_mut().poll(context) }
            })
            .await
        }
    }

    /// Whether the power was cut at the planned operation.
    pub fn is_cut(&self) -> bool {
        let (home, journal) = self.powered.as_ref().unwrap();
        self.flash.is_cut() || home.is_cut() || journal.is_cut()
    }

    /// Switches the power off: content that is not durable has a fate of its own.
    pub fn power_off(&mut self, runtime: &Virtual) {
        runtime.drop_tasks();
        let (home, journal) = self.powered.take().unwrap();
        self.flash.power_off(runtime).unwrap();
        let mut rng = Rng::new(self.rng.next_u64());
        runtime
            .run(async move {
                let style = [CutStyle::Random, CutStyle::DropAll, CutStyle::LandAll];
                let style = style[rng.below(3) as usize];
                home.cut(&mut rng, style).await.unwrap();
                journal.cut(&mut rng, style).await.unwrap();
            })
            .unwrap();
    }

    fn ftl_options(&self, media: &Zones) -> FtlOptions {
        let kept = kept_pages_max(&media.geometry(), 0);
        let cache = CacheOptions {
            dirty_pages_max: kept * 2 / 3,
            kept_pages_max: kept * 4 / 5,
            staging_pages: STAGING_PAGES,
        };
        FtlOptions {
            checkpoint_interval_slots: 300,
            cache: Some(cache),
            ..FtlOptions::new(self.pages + STAGING_PAGES)
        }
    }

    /// Makes the cache.
    pub fn format(&mut self, runtime: &Virtual) {
        let (media, _, journal) = self.power_on(runtime);
        let options = self.ftl_options(&media);
        let pair = self.pair();
        runtime
            .run(async move {
                Ftl::format(media, options).await.unwrap();
                let journal: Result<Journal<Store, PageBuf>> =
                    Journal::format(journal, pair, 64).await;
                journal.unwrap();
            })
            .unwrap();
        self.power_off(runtime);
    }

    /// Opens the cache and starts it.
    pub fn open(
        &self,
        runtime: &Virtual,
        on: (Zones, Store, Store),
        change: impl Fn(&mut TieredOptions) + 'static,
    ) -> impl Future<Output = Result<Rc<Device>>> + 'static {
        let (media, home, journal) = on;
        let (options, pages, pair) = (self.ftl_options(&media), self.pages, self.pair());
        let (runtime, destage, seed) = (runtime.clone(), self.destage, self.seed / 5);
        async move {
            let home = Rc::new(Image::new(home, pages)?);
            let mut journal = Journal::open(journal, pair, 64).await?;
            let (ftl, _) = recover_flash(media, options, &*home, Some(&mut journal)).await?;
            let ssd = SsdOptions {
                write_pages_max: WRITE_PAGES_MAX,
                transaction_pages_max: WRITE_PAGES_MAX,
                staging_pages: STAGING_PAGES,
                ..SsdOptions::new(CacheKind::WriteThrough, CACHE_PAGES)
            };
            let drive = Rc::new(Drive::new(ftl, ssd)?);
            let cache_pages = u64::from(drive.options().cache_pages);
            let dirty_pages_max = options.cache.unwrap().dirty_pages_max - cache_pages;
            let mut tiered = TieredOptions {
                destage_after_ns: 3_000_000,
                journal_batch_pages: 4,
                slice_pages: 24,
                track_pages: 8,
                admission_queue_pages: 32,
                retry_after_ns: 1_000_000,
                stream_pages_max: [0, 0, 4][seed as usize % 3],
                balance_reads: seed % 4 == 1,
                wear_bytes_per_day: [0, 0, 0, 1][seed as usize % 4],
                ..TieredOptions::new(destage, dirty_pages_max).staged(WRITE_PAGES_MAX)
            };
            change(&mut tiered);
            let clock = runtime.clone();
            let tiered = Tiered::new(TieredParts {
                runtime: runtime.clone(),
                drive,
                home,
                journal: Some(journal),
                unix_ms: Box::new(move || clock.now_ns() / 1_000_000),
                options: tiered,
            })?;
            let (staging, is_used) = tiered.staging();
            let device = Transactional::over(tiered, ssd.transactions_max, pages as u32);
            let device = Rc::new(device.staged_in(staging, is_used, WRITE_PAGES_MAX));
            device.start(&runtime);
            Ok(device)
        }
    }
}
