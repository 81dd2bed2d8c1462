//! A file that loses power.
use super::{IoFault, LARGE_SLOTS_PER_ZONE, LARGE_ZONES, Rig, Size};
use tantalum_base::{PAGE_BYTES, PageBuf, Result, Rng, SlotNo};
use tantalum_media::block_store::{CrashOptions, CrashStore, CutStyle, LostBlocks, MemoryStore};
use tantalum_media::file_zones::anchor_area_bytes;
use tantalum_media::{
    CutPlan, Episode, Episodes, ErasedZones, FileZones, FileZonesOptions, IoClass, Reach,
};
use tantalum_runtime::Virtual;

const ZONES: u32 = 14;
/// As few as an era and the one before it need, so that their places are soon reused.
const ANCHORS: u32 = 12;
const ZONES_BYTE: u64 = anchor_area_bytes(ANCHORS);
const SLOTS_PER_ZONE: u32 = 32;

/// Zones in a file, over a store that keeps unsynced writes separate.
pub struct FileRig {
    disk: MemoryStore,
    store: Option<CrashStore<MemoryStore, Virtual>>,
    rng: Rng,
    seed: u64,
    zones: u32,
    slots_per_zone: u32,
}

impl Rig for FileRig {
    type Page = PageBuf;

    const FAILS_IO: bool = true;

    fn of_size(seed: u64, size: Size, more: u32) -> Self {
        let (zones, slots_per_zone) = match size {
            Size::Small => (ZONES + more, SLOTS_PER_ZONE),
            Size::Large => (LARGE_ZONES + more, LARGE_SLOTS_PER_ZONE),
        };
        let slots = u64::from(zones) * u64::from(slots_per_zone);
        let bytes = ZONES_BYTE + slots * PAGE_BYTES as u64;
        let disk = MemoryStore::new(bytes);
        FileRig { disk, store: None, rng: Rng::split(seed, "rig"), seed, zones, slots_per_zone }
    }

    fn open(&mut self, runtime: &Virtual) -> ErasedZones<PageBuf> {
        let options = CrashOptions {
            seed: self.seed,
            read_ns: (10_000, 100_000),
            write_ns: (20_000, 400_000),
            sync_ns: (100_000, 500_000),
        };
        let store = CrashStore::new(runtime.clone(), self.disk.clone(), options);
        self.store = Some(store.clone());
        let options = FileZonesOptions {
            volume_id: u128::from(self.seed),
            first_byte: ZONES_BYTE,
            zones: self.zones,
            slots_per_zone: self.slots_per_zone,
        };
        let zones = FileZones::new(store, options)
            .unwrap_or_else(|error| panic!("the rig's options are legal: {error}"));
        ErasedZones::new(zones.with_anchors(0, ANCHORS))
    }

    fn plan(&mut self, plan: CutPlan) {
        if let Some(store) = &self.store {
            store.plan_cut(plan);
        }
    }

    fn operations_watch(&self) -> impl Fn() -> u64 + 'static {
        let store = self.store.clone();
        move || store.as_ref().map_or(0, CrashStore::operations)
    }

    fn fail_io(&mut self, faults: &[IoFault]) {
        let Some(store) = &self.store else { return };
        let done = store.operations();
        for fault in faults.iter().filter(|fault| fault.operation >= done) {
            store.fail_operation(fault.operation - done, fault.kind);
        }
    }

    fn episodes(&self) -> Option<Episodes<Virtual>> {
        self.store.as_ref().map(|store| store.episodes().clone())
    }

    /// A file has no scans, only reads, and its slots are ranges of bytes.
    fn begin(&self, mut episode: Episode) {
        if episode.classes.contains(&IoClass::Scan) {
            episode.classes.push(IoClass::Read);
        }
        let byte = |slot: u64| ZONES_BYTE + slot * PAGE_BYTES as u64;
        episode.reach = match episode.reach {
            Reach::Range(slots) => Reach::Range(byte(slots.start)..byte(slots.end)),
            Reach::Member { unit, members, member } => {
                Reach::Member { unit: unit * PAGE_BYTES as u64, members, member }
            }
            Reach::Everything => Reach::Everything,
        };
        self.episodes().map(|episodes| episodes.begin(episode));
    }

    fn loser(&self) -> impl Fn(LostBlocks) + 'static {
        let store = self.store.clone();
        move |blocks| {
            if let Some(store) = &store {
                store.lose_next_write(blocks);
            }
        }
    }

    fn striker(&self) -> impl Fn(SlotNo, Option<u32>) + 'static {
        let disk = self.disk.clone();
        move |slot, bit| {
            let byte = ZONES_BYTE + u64::from(slot.0) * PAGE_BYTES as u64;
            match bit {
                Some(bit) => disk.flip_bit(byte + u64::from(bit / 8), (bit % 8) as u8),
                None => disk.wipe_block(byte),
            }
        }
    }

    fn is_cut(&self) -> bool {
        self.store.as_ref().is_some_and(CrashStore::is_cut)
    }

    fn cut_watch(&self) -> impl Fn() -> bool + 'static {
        let store = self.store.clone();
        move || store.as_ref().is_some_and(CrashStore::is_cut)
    }

    fn power_off(&mut self, runtime: &Virtual) -> Result<()> {
        let Some(store) = self.store.take() else { return Ok(()) };
        let mut rng = Rng::new(self.rng.next_u64());
        let cut = async move { store.cut(&mut rng, CutStyle::Random).await };
        runtime.finish("cutting power", cut)
    }
}
