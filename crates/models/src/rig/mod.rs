//! Media whose power can be cut at a chosen operation, and that survive the executor.
mod file;
mod home;
mod nand;

pub use file::FileRig;
pub use home::{HomePart, HomeRig, HomeStore};
pub use nand::NandRig;

use crate::nand::{NandGeometry, NandOptions};
use crate::nand_zones::NandZonesOptions;
use tantalum_base::{Error, ErrorKind, Result, SlotNo};
use tantalum_media::block_store::{IoFaultKind, LostBlocks};
use tantalum_media::{CutPlan, Episode, Episodes, ZoneMedia};
use tantalum_runtime::Virtual;

/// An array of simulated flash and the zones over it; the rig has seeds of its own for what is left to
/// chance.
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
    /// Its number among the writes and syncs since the power came on.
    pub operation: u64,
    /// What it answers.
    pub kind: IoFaultKind,
}

/// An array small enough to be cut everywhere.
pub const SMALL: NandGeometry = NandGeometry {
    channels: 2,
    packages_per_channel: 1,
    planes_per_package: 1,
    blocks_per_plane: 14,
    pages_per_block: 8,
    page_bytes: 8192,
    spare_bytes: 128,
};
/// The zones over it.
pub const SMALL_ZONES: NandZonesOptions =
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
    pub fn of_pages(pages: u64) -> Self {
        if pages < LARGE_PAGES { Size::Small } else { Size::Large }
    }
}

/// Logical pages of a device on a large medium.
pub const LARGE_PAGES: u64 = 1500;
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

    /// The errors that pass over it, until the next `open`; none before the first.
    fn episodes(&self) -> Option<Episodes<Virtual>>;

    /// Lets errors pass over it that reach these slots.
    fn begin(&self, episode: Episode) {
        self.episodes().map(|episodes| episodes.begin(episode));
    }

    /// Loses the next append, until the next `open`; nothing where what is read tells of that.
    fn loser(&self) -> impl Fn(LostBlocks) + 'static {
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

    /// Decides what the cut leaves behind; cuts now where the plan was not reached. To be called
    /// when the executor's tasks are dropped.
    fn power_off(&mut self, runtime: &Virtual) -> Result<()>;
}
