//! A home and its journal, with power loss.
use tantalum_base::{Error, ErrorKind, Result, Rng};
use tantalum_media::block_store::{CrashOptions, CrashStore, CutStyle, MemoryStore, UntilCut};
use tantalum_media::{CutPlan, Episodes};
use tantalum_runtime::Virtual;

/// A store that stops all operations when its power is lost.
pub type HomeStore = UntilCut<PoweredStore>;

type PoweredStore = CrashStore<MemoryStore, Virtual>;

/// The home or the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomePart {
    /// The home.
    Home,
    /// Its journal.
    Journal,
}

/// Two stores that keep unsynced data separate. They lose power at the same moment; the durability of data in one
/// implies nothing for the other.
pub struct HomeRig {
    home: MemoryStore,
    journal: MemoryStore,
    powered: Option<[PoweredStore; 2]>,
    rng: Rng,
    seed: u64,
}

impl HomeRig {
    /// New stores, which hold zeros; `seed` determines everything random.
    pub fn new(seed: u64, home_bytes: u64, journal_bytes: u64) -> Self {
        HomeRig {
            home: MemoryStore::new(home_bytes),
            journal: MemoryStore::new(journal_bytes),
            powered: None,
            rng: Rng::split(seed, "home"),
            seed,
        }
    }

    /// Switches the power on.
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

    /// The store in its present state; it works until the power is lost.
    ///
    /// # Errors
    /// `PowerCut` if the power is off.
    pub fn open(&self, part: HomePart) -> Result<HomeStore> {
        let Some(store) = self.powered(part).cloned() else {
            return Err(Error::new(ErrorKind::PowerCut, "the home has no power"));
        };
        let watched = store.clone();
        Ok(UntilCut::new(store, move || watched.is_cut()))
    }

    /// Plans a power cut at an operation of `part`, counted from now.
    pub fn plan(&self, part: HomePart, plan: CutPlan) {
        if let Some(store) = self.powered(part) {
            store.plan_cut(plan);
        }
    }

    /// The error episodes of `part`, whose addresses are bytes; none while the power is off.
    pub fn episodes(&self, part: HomePart) -> Option<Episodes<Virtual>> {
        self.powered(part).map(|store| store.episodes().clone())
    }

    /// Number of writes, zeroings and syncs of `part` since the power came on; 0 while it is off.
    pub fn operations(&self, part: HomePart) -> u64 {
        self.powered(part).map_or(0, CrashStore::operations)
    }

    /// Whether the power has been cut here since it came on.
    pub fn is_cut(&self) -> bool {
        self.powered.iter().flatten().any(CrashStore::is_cut)
    }

    /// Applies the effects of the cut; cuts now if no planned cut happened. Call it after the executor's
    /// tasks have been dropped.
    ///
    /// # Errors
    /// Only errors of memory.
    pub fn power_off(&mut self, runtime: &Virtual) -> Result<()> {
        for store in self.powered.take().into_iter().flatten() {
            let mut rng = Rng::new(self.rng.next_u64());
            let cut = async move { store.cut(&mut rng, CutStyle::Random).await };
            runtime.finish("cutting the power of the home", cut)?;
        }
        Ok(())
    }

    /// The content of `part` while the power is off, as a store of its own.
    pub fn copy(&self, part: HomePart) -> MemoryStore {
        let store = match part {
            HomePart::Home => &self.home,
            HomePart::Journal => &self.journal,
        };
        MemoryStore::with_image(&store.image())
    }
}
