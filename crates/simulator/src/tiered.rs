//! A cache on flash over a home, which loses power together with the flash.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Payload, Result};
use tantalum_cache::journal::{Journal, Pair, apply};
use tantalum_cache::{Image, OpenJournal, Tiered, TieredOptions, TieredParts, recover_flash};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::block_store::MemoryStore;
use tantalum_media::{BlockStore, CutPlan, Episodes, ZoneMedia};
use tantalum_models::rig::{HomePart, HomeRig, HomeStore};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{DeviceKind, Opening, Virtual};
use tantalum_ssd::{Drive, SsdOptions, Transactional};

use super::life::CutAt;
use super::subject::{Alone, Kept};

/// The place of a journal's first content, after its head.
const JOURNAL_HEAD_BYTES: u64 = 1 << 20;

/// Pages of an epoch whose contents stay in memory: fewer than an epoch has, so that the others are read
/// back.
const JOURNAL_MEMORY_PAGES: u32 = 8;

/// Identity of the only volume.
const VOLUME_ID: u128 = 77;

/// A cache on zones over a home of its own.
#[derive(Clone, Copy, Debug)]
pub struct TieredKind {
    /// The FTL, in the role of a cache.
    pub ftl: FtlOptions,
    /// Write cache and transactions.
    pub ssd: SsdOptions,
    /// The cache.
    pub tiered: TieredOptions,
}

/// The device under test: transactions over a cache over a home, as in a volume.
pub type TieredDevice<M> =
    Transactional<Tiered<Virtual, M, Image<HomeStore, <M as ZoneMedia>::Page>, HomeStore>>;

impl<M: ZoneMedia> DeviceKind<Virtual, M> for TieredKind {
    type Device = TieredDevice<M>;
    type Kept = KeptHome;
    type Report = ();

    async fn format(&self, on: Opening<Virtual, M, KeptHome>) -> Result<Rc<Self::Device>> {
        let pair = self.pair();
        // Contents, index and room for trims.
        let journal_pages = 2 * self.journal_pages_min() + 64;
        let journal_bytes = JOURNAL_HEAD_BYTES + journal_pages * PAGE_BYTES as u64;
        on.kept.make(&on.runtime, pair.pages * PAGE_BYTES as u64, journal_bytes);
        let journal = on.kept.open(HomePart::Journal)?;
        let journal = Journal::format(journal, pair, JOURNAL_MEMORY_PAGES).await?;
        let ftl = Ftl::format(on.media, self.ftl).await?;
        self.put_together(on.runtime, &on.kept, ftl, (journal, None))
    }

    async fn open(
        &self,
        on: Opening<Virtual, M, KeptHome>,
    ) -> Result<(Rc<Self::Device>, Self::Report)> {
        let journal = on.kept.open(HomePart::Journal)?;
        let mut journal = Journal::open(journal, self.pair(), JOURNAL_MEMORY_PAGES).await?;
        let home = Image::new(on.kept.open(HomePart::Home)?, self.ftl.home_pages())?;
        let (ftl, _) = recover_flash(on.media, self.ftl, &home, Some(&mut journal)).await?;
        Ok((self.put_together(on.runtime, &on.kept, ftl, journal)?, ()))
    }
}

impl TieredKind {
    fn pair(&self) -> Pair {
        Pair { volume_id: VOLUME_ID, pages: self.ftl.home_pages() }
    }

    /// Minimum number of pages of the journal.
    fn journal_pages_min(&self) -> u64 {
        self.tiered.dirty_hard_pages + u64::from(self.ssd.cache_pages)
    }

    fn put_together<M: ZoneMedia>(
        &self,
        runtime: Virtual,
        kept: &KeptHome,
        ftl: Rc<Ftl<M>>,
        journal: OpenJournal<HomeStore, M::Page>,
    ) -> Result<Rc<TieredDevice<M>>> {
        let tiered = Tiered::new(TieredParts {
            runtime,
            drive: Rc::new(Drive::new(ftl, self.ssd)?),
            home: Rc::new(Image::new(kept.open(HomePart::Home)?, self.ftl.home_pages())?),
            journal: Some(journal),
            unix_ms: kept.clock(),
            options: self.tiered,
        })?;
        let SsdOptions { transactions_max, transaction_pages_max, .. } = self.ssd;
        let (staging, is_used) = tiered.staging();
        if staging.pages == 0 {
            let over = Transactional::over(tiered, transactions_max, transaction_pages_max);
            return Ok(Rc::new(over));
        }
        let over = Transactional::over(tiered, transactions_max, staging.first.0 as u32);
        Ok(Rc::new(over.staged_in(staging, is_used, transaction_pages_max)))
    }
}

/// The home and the journal, which the device makes; and the clock for the times at which epochs are
/// closed.
#[derive(Clone, Default)]
pub struct KeptHome(Rc<RefCell<Kit>>);

#[derive(Default)]
struct Kit {
    rig: Option<HomeRig>,
    seed: u64,
    clock: Option<Rc<dyn Fn() -> u64>>,
}

impl KeptHome {
    fn make(&self, runtime: &Virtual, home_bytes: u64, journal_bytes: u64) {
        let mut kit = self.0.borrow_mut();
        let mut rig = HomeRig::new(kit.seed, home_bytes, journal_bytes);
        rig.power_on(runtime);
        kit.rig = Some(rig);
    }

    fn open(&self, part: HomePart) -> Result<HomeStore> {
        match &self.0.borrow().rig {
            Some(rig) => rig.open(part),
            None => Err(Error::new(ErrorKind::Format, "there is no home")),
        }
    }

    fn clock(&self) -> Box<dyn Fn() -> u64> {
        let clock = self.0.borrow().clock.clone();
        Box::new(move || clock.as_ref().map_or(0, |clock| clock()))
    }

    fn of<T: Default>(&self, work: impl FnOnce(&mut HomeRig) -> T) -> T {
        self.0.borrow_mut().rig.as_mut().map_or_else(T::default, work)
    }
}

fn part_of(at: CutAt) -> Option<HomePart> {
    match at {
        CutAt::Home => Some(HomePart::Home),
        CutAt::Journal => Some(HomePart::Journal),
        CutAt::Media | CutAt::Nvram => None,
    }
}

impl Kept for KeptHome {
    const CUT_AT: &'static [CutAt] = &[CutAt::Home, CutAt::Journal];

    fn power_on(&self, runtime: &Virtual, seed: u64) {
        self.0.borrow_mut().seed = seed;
        self.of(|rig| rig.power_on(runtime));
    }

    fn plan(&self, at: CutAt, plan: CutPlan) {
        if let Some(part) = part_of(at) {
            self.of(|rig| rig.plan(part, plan));
        }
    }

    fn episodes(&self, at: CutAt) -> Option<Episodes<Virtual>> {
        self.of(|rig| rig.episodes(part_of(at)?))
    }

    fn operations(&self, at: CutAt) -> u64 {
        part_of(at).map_or(0, |part| self.of(|rig| rig.operations(part)))
    }

    fn is_cut(&self) -> bool {
        self.of(|rig| rig.is_cut())
    }

    fn cut(&self) {}

    fn power_off(&self, runtime: &Virtual) -> Result<()> {
        let mut kit = self.0.borrow_mut();
        kit.rig.as_mut().map_or(Ok(()), |rig| rig.power_off(runtime))
    }

    fn tell_time(&self, clock: Rc<dyn Fn() -> u64>) {
        self.0.borrow_mut().clock = Some(clock);
    }

    /// As `tantalum rescue` does, but on copies: the life continues with the flash.
    fn without_medium<P: Payload>(&self) -> Result<Option<Alone<P>>> {
        let kit = self.0.borrow();
        let Some(rig) = &kit.rig else { return Ok(None) };
        let (home, journal) = (rig.copy(HomePart::Home), rig.copy(HomePart::Journal));
        drop(kit);
        let runtime = Virtual::new(Schedule::Fifo);
        runtime.finish("rescuing the home", rescue(home, journal)).map(Some)
    }
}

/// Brings `home` to the epoch that is committed in `journal`, if there is one.
async fn rescue<P: Payload>(home: MemoryStore, journal: MemoryStore) -> Result<Alone<P>> {
    let pair = Journal::<_, P>::pair_of(&journal).await?;
    let (journal, committed) = Journal::<_, P>::open(journal, pair, 0).await?;
    let image = Image::new(home.clone(), pair.pages)?;
    if committed.is_some() {
        apply(&journal, &image, 4).await?;
    }
    let buf = home.buffer(home.bytes() as usize);
    let bytes = home.read(0, buf).await?;
    let pages = bytes.chunks_exact(PAGE_BYTES).map(P::from_bytes).collect();
    Ok(Alone { pages, moment: journal.last_committed().map_or(0, |closed| closed.unix_ms) })
}
