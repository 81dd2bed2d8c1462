//! File zones pass the conformance tests of zoned media.
use tantalum_base::{Rng, SlotNo};
use tantalum_media::block_store::{CrashOptions, CrashStore, CutStyle, MemoryStore};
use tantalum_media::conformance::ZoneFactory;
use tantalum_media::{FileZones, FileZonesOptions};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

const OPTIONS: FileZonesOptions =
    FileZonesOptions { volume_id: 77, first_byte: 8192, zones: 4, slots_per_zone: 600 };

struct Factory {
    runtime: Virtual,
    seed: u64,
    memory: MemoryStore,
    opened: Option<CrashStore<MemoryStore, Virtual>>,
}

impl Factory {
    fn new(seed: u64) -> Self {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let bytes = 8192 + u64::from(OPTIONS.zones * OPTIONS.slots_per_zone) * 4096;
        Factory { runtime, seed, memory: MemoryStore::new(bytes), opened: None }
    }
}

impl ZoneFactory for Factory {
    type Media = FileZones<CrashStore<MemoryStore, Virtual>>;

    fn runtime(&self) -> &Virtual {
        &self.runtime
    }

    fn open(&mut self) -> Self::Media {
        let options = CrashOptions {
            seed: self.seed,
            read_ns: (10_000, 90_000),
            write_ns: (20_000, 200_000),
            sync_ns: (100_000, 900_000),
        };
        let store = CrashStore::new(self.runtime.clone(), self.memory.clone(), options);
        self.opened = Some(store.clone());
        FileZones::new(store, OPTIONS).unwrap()
    }

    fn cut(&mut self, rng: &mut Rng) {
        let store = self.opened.take().unwrap();
        let mut rng = Rng::new(rng.next_u64());
        let styles = [CutStyle::DropAll, CutStyle::LandAll, CutStyle::TearAll];
        let style = styles.get(rng.below(6) as usize).copied().unwrap_or(CutStyle::Random);
        self.runtime.run(async move { store.cut(&mut rng, style).await }).unwrap().unwrap();
    }

    fn decay(&mut self, slot: SlotNo) {
        let store = self.opened.clone().unwrap();
        // Decay affects content on the medium, so pending writes must land first.
        self.runtime
            .run(async move { tantalum_media::BlockStore::sync(&store).await })
            .unwrap()
            .unwrap();
        self.memory.flip_bit(OPTIONS.first_byte + u64::from(slot.0) * 4096 + 1234, 5);
    }
}

tantalum_media::zone_conformance_tests!(Factory::new);
