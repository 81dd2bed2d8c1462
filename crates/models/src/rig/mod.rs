//! Media whose power can be cut at a chosen operation, and which survive the executor.
mod file;
mod home;
mod nand;

pub use file::FileRig;
pub use home::{HomePart, HomeRig, HomeStore};
pub use nand::NandRig;

use crate::nand::{NandGeometry, NandOptions};
use crate::nand_zones::NandZonesOptions;
use tantalum_base::{Error, ErrorKind, Payload, Result, SlotNo};
use tantalum_media::block_store::{IoFaultKind, LostBlocks};
use tantalum_media::{CutPlan, Episode, Episodes, ErasedZones};
use tantalum_runtime::Virtual;

/// An array of simulated flash and its zones. The rig has its own seeds for everything random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrayShape {
    /// The array.
    pub nand: NandOptions,
    /// The zones.
    pub zones: NandZonesOptions,
}

/// A write or sync that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoFault {
    /// Its number, counted over writes and syncs since the power came on.
    pub operation: u64,
    /// The error that it returns.
    pub kind: IoFaultKind,
}

/// An array small enough to be cut at every operation.
pub const SMALL: NandGeometry = NandGeometry {
    channels: 2,
    packages_per_channel: 1,
    planes_per_package: 1,
    blocks_per_plane: 14,
    pages_per_block: 8,
    page_bytes: 8192,
    spare_bytes: 128,
};
/// Its zones.
pub const SMALL_ZONES: NandZonesOptions =
    NandZonesOptions { spare_blocks_per_plane: 2, append_pages_max: 16 };

/// The size of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// So small that it can be cut at every operation.
    Small,
    /// More zones than fit in one page of the zone table, each so short that checkpoints extend past
    /// their ends; for as many logical pages as several chunks of the map.
    Large,
}

impl Size {
    /// The size for this number of logical pages.
    pub fn of_pages(pages: u64) -> Self {
        if pages < LARGE_PAGES { Size::Small } else { Size::Large }
    }
}

/// Logical pages of a device on a large medium.
pub const LARGE_PAGES: u64 = 1500;
/// The number of zones of a large medium, the slots of each in a file, and the flash pages per
/// block on NAND.
const LARGE_ZONES: u32 = 200;
const LARGE_SLOTS_PER_ZONE: u32 = 16;
const LARGE_PAGES_PER_BLOCK: u32 = 4;

/// A medium whose power can be cut.
pub trait Rig {
    /// Contents of host pages.
    type Page: Payload;

    /// A new medium; `seed` determines everything random.
    fn new(seed: u64) -> Self
    where
        Self: Sized,
    {
        Self::with_more_zones(seed, 0)
    }

    /// A new medium with `more` additional zones.
    fn with_more_zones(seed: u64, more: u32) -> Self
    where
        Self: Sized,
    {
        Self::of_size(seed, Size::Small, more)
    }

    /// A new medium of this size with `more` additional zones.
    fn of_size(seed: u64, size: Size, more: u32) -> Self;

    /// An array of this shape, if the medium is an array.
    ///
    /// # Errors
    /// `InvalidInput` if it is not, or if the shape is invalid.
    fn of_shape(_seed: u64, _shape: &ArrayShape) -> Result<Self>
    where
        Self: Sized,
    {
        Err(Error::new(ErrorKind::InvalidInput, "a device with an array of its own runs on nand"))
    }

    /// The zones in their present state, on the executor of this power-on.
    fn open(&mut self, runtime: &Virtual) -> ErasedZones<Self::Page>;

    /// Plans a power cut.
    fn plan(&mut self, plan: CutPlan);

    /// Number of operations since the last `open`.
    fn operations(&self) -> u64 {
        self.operations_watch()()
    }

    /// A function that returns the same as [`operations`](Self::operations), until the next `open`.
    fn operations_watch(&self) -> impl Fn() -> u64 + 'static;

    /// Makes these programs fail, counted from now, from 0, and cancels earlier requests; does
    /// nothing if the medium has no programs.
    fn fail_programs(&mut self, _programs: &[u64]) {}

    /// Whether writes and syncs may fail like those of a file.
    const FAILS_IO: bool = false;

    /// Makes these writes and syncs fail, counted from the last `open`; does nothing if the medium has
    /// none.
    fn fail_io(&mut self, _faults: &[IoFault]) {}

    /// The error episodes of the medium, until the next `open`; none before the first `open`.
    fn episodes(&self) -> Option<Episodes<Virtual>>;

    /// Starts an episode of errors in the given slots.
    fn begin(&self, episode: Episode) {
        self.episodes().map(|episodes| episodes.begin(episode));
    }

    /// A function that loses the next append, until the next `open`; does nothing if reads report
    /// such a loss.
    fn loser(&self) -> impl Fn(LostBlocks) + 'static {
        |_| {}
    }

    /// A function that damages the stored data of a slot: one bit of it, or all. Does nothing if reads
    /// report such damage.
    fn striker(&self) -> impl Fn(SlotNo, Option<u32>) + 'static {
        |_, _| {}
    }

    /// Whether the power has been cut since the last `open`.
    fn is_cut(&self) -> bool;

    /// A function that returns the same as [`is_cut`](Self::is_cut), until the next `open`.
    fn cut_watch(&self) -> impl Fn() -> bool + 'static;

    /// Applies the effects of the cut; cuts now if the plan was not reached. Call it after the
    /// executor's tasks have been dropped.
    fn power_off(&mut self, runtime: &Virtual) -> Result<()>;
}
