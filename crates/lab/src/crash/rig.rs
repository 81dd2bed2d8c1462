//! Media whose power can be cut at a chosen operation, and that survive the executor.
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Payload, Result, Rng, SlotNo};
use tantalum_media::block_store::{CrashOptions, CrashStore, CutStyle, LostBlocks, MemoryStore};
use tantalum_media::file_zones::anchor_area_bytes;
use tantalum_media::{CutPlan, Fate, FileZones, FileZonesOptions, ZoneMedia};
use tantalum_models::nand::{Nand, NandFaults, NandGeometry, NandOptions, NandTiming};
use tantalum_models::nand_zones::{NandZones, NandZonesOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

use super::life::{IoFault, LostPart};
use super::subject::ArrayShape;

const FILE_ZONES: u32 = 14;
/// As few as an era and the one before it take, so that their places are soon used again.
const FILE_ANCHORS: u32 = 12;
const FILE_ZONES_BYTE: u64 = anchor_area_bytes(FILE_ANCHORS);
const FILE_SLOTS_PER_ZONE: u32 = 32;

/// An array small enough to be cut everywhere.
pub(super) const SMALL: NandGeometry = NandGeometry {
    channels: 2,
    packages_per_channel: 1,
    planes_per_package: 1,
    blocks_per_plane: 14,
    pages_per_block: 8,
    page_bytes: 8192,
    spare_bytes: 128,
};
/// The zones over it.
pub(super) const SMALL_ZONES: NandZonesOptions =
    NandZonesOptions { spare_blocks_per_plane: 2, append_pages_max: 16 };

/// How large a medium is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// So small that it can be cut everywhere.
    Small,
    /// More zones than a page of the zone table has, each so short that checkpoints reach over their
    /// ends; for as many logical pages as several chunks of the map.
    Large,
}

impl Size {
    /// That for so many logical pages.
    pub(super) fn of_pages(pages: u64) -> Self {
        if pages < LARGE_PAGES { Size::Small } else { Size::Large }
    }
}

/// Logical pages of a device on a large medium.
pub(super) const LARGE_PAGES: u64 = 1500;
/// A large medium: zones, and the slots of each on a file, and the flash pages of a block on NAND.
const LARGE_ZONES: u32 = 200;
const LARGE_SLOTS_PER_ZONE: u32 = 16;
const LARGE_PAGES_PER_BLOCK: u32 = 4;

/// A medium that can be cut.
pub trait Rig {
    /// The zones.
    type Media: ZoneMedia;

    /// A fresh medium; everything that is left to chance comes from `seed`.
    fn new(seed: u64) -> Self
    where
        Self: Sized,
    {
        Self::with_more_zones(seed, 0)
    }

    /// The same, with `more` zones than others have.
    fn with_more_zones(seed: u64, more: u32) -> Self
    where
        Self: Sized,
    {
        Self::of_size(seed, Size::Small, more)
    }

    /// A medium of this size, with `more` zones than others have.
    fn of_size(seed: u64, size: Size, more: u32) -> Self;

    /// An array of this shape, where the medium is one.
    ///
    /// # Errors
    /// `InvalidInput` where it is none, or the shape is illegal.
    fn of_shape(_seed: u64, _shape: &ArrayShape) -> Result<Self>
    where
        Self: Sized,
    {
        Err(Error::new(ErrorKind::InvalidInput, "a device with an array of its own runs on nand"))
    }

    /// The zones, as they are now, on the executor of this power-on.
    fn open(&mut self, runtime: &Virtual) -> Self::Media;

    /// Plans to cut power.
    fn plan(&mut self, plan: CutPlan);

    /// Operations since the last `open`.
    fn operations(&self) -> u64 {
        self.operations_watch()()
    }

    /// Tells what [`operations`](Self::operations) does, until the next `open`.
    fn operations_watch(&self) -> impl Fn() -> u64 + 'static;

    /// Lets these programs fail, counted from now on from 0, and none that was named before; nothing
    /// where the medium has none.
    fn fail_programs(&mut self, _programs: &[u64]) {}

    /// Whether writes and syncs may fail as those of a file do.
    const FAILS_IO: bool = false;

    /// Lets these writes and syncs fail, counted from the last `open`; nothing where the medium has none.
    fn fail_io(&mut self, _faults: &[IoFault]) {}

    /// Loses the next append, until the next `open`; nothing where what is read tells of that.
    fn loser(&self) -> impl Fn(LostPart) + 'static {
        |_| {}
    }

    /// Damages what is stored of a slot: one bit of it, or all. Nothing where what is read tells of that.
    fn striker(&self) -> impl Fn(SlotNo, Option<u32>) + 'static {
        |_, _| {}
    }

    /// Whether power has been cut since the last `open`.
    fn is_cut(&self) -> bool;

    /// Tells what [`is_cut`](Self::is_cut) does, until the next `open`.
    fn cut_watch(&self) -> impl Fn() -> bool + 'static;

    /// Settles what the cut leaves behind; cuts now where the plan was not reached. To be called
    /// when the executor's tasks are dropped.
    fn settle(&mut self, runtime: &Virtual) -> Result<()>;
}

/// Simulated NAND, small enough to be cut everywhere.
pub struct NandRig<P> {
    nand: Nand<P>,
    options: NandZonesOptions,
    zones: Option<NandZones<Virtual, P>>,
    operations_before: u64,
    cuts_before: u64,
    rng: Rng,
}

impl<P: Payload> Rig for NandRig<P> {
    type Media = NandZones<Virtual, P>;

    fn of_size(seed: u64, size: Size, more: u32) -> Self {
        let (blocks_per_plane, pages_per_block) = match size {
            Size::Small => (SMALL.blocks_per_plane, SMALL.pages_per_block),
            Size::Large => {
                (LARGE_ZONES + SMALL_ZONES.spare_blocks_per_plane, LARGE_PAGES_PER_BLOCK)
            }
        };
        let blocks_per_plane = blocks_per_plane + more;
        let geometry = NandGeometry { blocks_per_plane, pages_per_block, ..SMALL };
        let timing = NandTiming {
            read_ns: 50_000,
            program_ns: 500_000,
            program_upper_ns: 500_000,
            erase_ns: 2_000_000,
            channel_bytes_per_second: 200_000_000,
        };
        let nand = NandOptions { geometry, timing, faults: NandFaults::default(), seed };
        Self::of_shape(seed, &ArrayShape { nand, zones: SMALL_ZONES })
            .unwrap_or_else(|error| panic!("the rig's geometry is legal: {error}"))
    }

    fn of_shape(seed: u64, shape: &ArrayShape) -> Result<Self> {
        let nand = Nand::new(&NandOptions { seed, ..shape.nand })?;
        // What is refused is refused here, and not when it is opened.
        NandZones::new(Virtual::new(Schedule::Fifo), nand.clone(), shape.zones)?;
        let (options, rng) = (shape.zones, Rng::split(seed, "rig"));
        Ok(NandRig { nand, options, zones: None, operations_before: 0, cuts_before: 0, rng })
    }

    fn open(&mut self, runtime: &Virtual) -> Self::Media {
        let zones = match self.zones.take() {
            Some(zones) => zones,
            None => NandZones::new(runtime.clone(), self.nand.clone(), self.options)
                .unwrap_or_else(|error| panic!("the rig's options are legal: {error}")),
        };
        // Each opening takes the power from the handles before it; the one that is kept is only
        // opened again.
        let opened = zones.reopen(runtime.clone());
        self.zones = Some(zones);
        self.operations_before = self.nand.mutations();
        self.cuts_before = self.nand.power_cuts();
        opened
    }

    fn plan(&mut self, plan: CutPlan) {
        self.nand.plan_cut(Some(plan));
    }

    fn operations_watch(&self) -> impl Fn() -> u64 + 'static {
        let (nand, before) = (self.nand.clone(), self.operations_before);
        move || nand.mutations() - before
    }

    fn fail_programs(&mut self, programs: &[u64]) {
        self.nand.call_off_failing_programs();
        programs.iter().for_each(|program| self.nand.fail_program(*program));
    }

    fn is_cut(&self) -> bool {
        self.nand.power_cuts() > self.cuts_before
    }

    fn cut_watch(&self) -> impl Fn() -> bool + 'static {
        let (nand, before) = (self.nand.clone(), self.cuts_before);
        move || nand.power_cuts() > before
    }

    fn settle(&mut self, runtime: &Virtual) -> Result<()> {
        self.nand.plan_cut(None);
        if !self.is_cut() {
            let rng = &mut self.rng;
            self.nand.power_cut(runtime.now_ns(), |_| Fate::ALL[rng.below(3) as usize]);
        }
        Ok(())
    }
}

/// Zones in a file, under a store that keeps unsynced writes apart.
pub struct FileRig {
    disk: MemoryStore,
    store: Option<CrashStore<MemoryStore, Virtual>>,
    rng: Rng,
    seed: u64,
    zones: u32,
    slots_per_zone: u32,
}

impl Rig for FileRig {
    type Media = FileZones<CrashStore<MemoryStore, Virtual>>;

    const FAILS_IO: bool = true;

    fn of_size(seed: u64, size: Size, more: u32) -> Self {
        let (zones, slots_per_zone) = match size {
            Size::Small => (FILE_ZONES + more, FILE_SLOTS_PER_ZONE),
            Size::Large => (LARGE_ZONES + more, LARGE_SLOTS_PER_ZONE),
        };
        let slots = u64::from(zones) * u64::from(slots_per_zone);
        let bytes = FILE_ZONES_BYTE + slots * PAGE_BYTES as u64;
        let disk = MemoryStore::new(bytes);
        FileRig { disk, store: None, rng: Rng::split(seed, "rig"), seed, zones, slots_per_zone }
    }

    fn open(&mut self, runtime: &Virtual) -> Self::Media {
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
            first_byte: FILE_ZONES_BYTE,
            zones: self.zones,
            slots_per_zone: self.slots_per_zone,
        };
        let zones = FileZones::new(store, options)
            .unwrap_or_else(|error| panic!("the rig's options are legal: {error}"));
        zones.with_anchors(0, FILE_ANCHORS)
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

    fn loser(&self) -> impl Fn(LostPart) + 'static {
        let store = self.store.clone();
        move |part| {
            let blocks = match part {
                LostPart::All => LostBlocks::All,
                LostPart::First => LostBlocks::First,
            };
            if let Some(store) = &store {
                store.lose_next_write(blocks);
            }
        }
    }

    fn striker(&self) -> impl Fn(SlotNo, Option<u32>) + 'static {
        let disk = self.disk.clone();
        move |slot, bit| {
            let byte = FILE_ZONES_BYTE + u64::from(slot.0) * PAGE_BYTES as u64;
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

    fn settle(&mut self, runtime: &Virtual) -> Result<()> {
        let Some(store) = self.store.take() else { return Ok(()) };
        let mut rng = Rng::new(self.rng.next_u64());
        let settled = runtime.run(async move { store.cut(&mut rng, CutStyle::Random).await });
        settled.map_err(|deadlock| Error::with_source(ErrorKind::Corrupt, "settling", deadlock))?
    }
}
