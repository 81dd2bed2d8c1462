//! A home and the journal beside it, which lose power.
use tantalum_base::{Error, ErrorKind, Result, Rng};
use tantalum_media::block_store::{CrashOptions, CrashStore, CutStyle, MemoryStore, UntilCut};
use tantalum_media::{CutPlan, Episodes};
use tantalum_runtime::Virtual;

/// A store that stops everything when its power goes.
pub type HomeStore = UntilCut<PoweredStore>;

type PoweredStore = CrashStore<MemoryStore, Virtual>;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomePart {
    /// The home.
    Home,
    /// The journal beside it.
    Journal,
}

/// Two stores, each of which keeps what is not synced apart. They lose power at the same moment, and what one of them
/// has made durable says nothing of the other.
pub struct HomeRig {
    home: MemoryStore,
    journal: MemoryStore,
    powered: Option<[PoweredStore; 2]>,
    rng: Rng,
    seed: u64,
}

impl HomeRig {
    /// New ones, which hold zeros; what is left to chance comes from `seed`.
    pub fn new(seed: u64, home_bytes: u64, journal_bytes: u64) -> Self {
        HomeRig {
            home: MemoryStore::new(home_bytes),
            journal: MemoryStore::new(journal_bytes),
            powered: None,
            rng: Rng::split(seed, "home"),
            seed,
        }
    }

    /// Power comes on.
    pub fn power_on(&mut self, runtime: &Virtual) {
        let options = CrashOptions {
            seed: self.seed,
            read_ns: (10_000, 100_000),
            write_ns: (20_000, 400_000),
            sync_ns: (50_000, 300_000),
        };
        let on = |store: &MemoryStore| CrashStore::new(runtime.clone(), store.clone(), options);
        self.powered = Some([on(&self.home), on(&self.journal)]);
    }

    fn powered(&self, part: HomePart) -> Option<&PoweredStore> {
        self.powered.as_ref().map(|powered| &powered[part as usize])
    }

    /// The store, as it is now, until the power goes.
    ///
    /// # Errors
    /// `PowerCut` where there is no power.
    pub fn open(&self, part: HomePart) -> Result<HomeStore> {
        let Some(store) = self.powered(part).cloned() else {
            return Err(Error::new(ErrorKind::PowerCut, "the home has no power"));
        };
        let watched = store.clone();
        Ok(UntilCut::new(store, move || watched.is_cut()))
    }

    /// Plans to cut power at an operation of `part`, counted from now.
    pub fn plan(&self, part: HomePart, plan: CutPlan) {
        if let Some(store) = self.powered(part) {
            store.plan_cut(plan);
        }
    }

    /// The errors that pass over `part`; none in the dark. They reach bytes.
    pub fn episodes(&self, part: HomePart) -> Option<Episodes<Virtual>> {
        self.powered(part).map(|store| store.episodes().clone())
    }

    /// Writes, zeroings and syncs of `part` since the power came on; 0 in the dark.
    pub fn operations(&self, part: HomePart) -> u64 {
        self.powered(part).map_or(0, CrashStore::operations)
    }

    /// Whether power has been cut here since it came on.
    pub fn is_cut(&self) -> bool {
        self.powered.iter().flatten().any(CrashStore::is_cut)
    }

    /// Decides what the cut leaves behind; cuts now where it was not planned here. To be called when the
    /// executor's tasks are dropped.
    ///
    /// # Errors
    /// None but for those of memory.
    pub fn power_off(&mut self, runtime: &Virtual) -> Result<()> {
        for store in self.powered.take().into_iter().flatten() {
            let mut rng = Rng::new(self.rng.next_u64());
            let cut = async move { store.cut(&mut rng, CutStyle::Random).await };
            runtime.finish("cutting the power of the home", cut)?;
        }
        Ok(())
    }

    /// What `part` holds in the dark, as a store of its own.
    pub fn copy(&self, part: HomePart) -> MemoryStore {
        let store = match part {
            HomePart::Home => &self.home,
            HomePart::Journal => &self.journal,
        };
        MemoryStore::with_image(&store.image())
    }
}
