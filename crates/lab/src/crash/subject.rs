//! What is under test: a kind of device that is formatted once and opened again after each cut.
use std::rc::Rc;
use tantalum_base::{PageDevice, Result};
use tantalum_media::ZoneMedia;
use tantalum_models::{NandOptions, NandZonesOptions, Nvram};
use tantalum_runtime::Virtual;

/// What a device is opened with when the power comes on.
pub struct Opening<M, K> {
    /// The executor of this power-on.
    pub runtime: Virtual,
    /// The medium, as the last cut left it.
    pub media: M,
    /// Logical pages; the same at every opening.
    pub pages: u64,
    /// What outlived the dark beside the medium.
    pub kept: K,
}

/// An array of simulated flash and the zones over it; chance is the lab's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrayShape {
    /// The array.
    pub nand: NandOptions,
    /// The zones.
    pub zones: NandZonesOptions,
}

/// What a load reached; the lab says so, as a load that reaches nothing tests nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Zones (or blocks) cleaned.
    pub cleaned: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Pages of open transactions that were moved out of a cache too small for them.
    pub spilled: u64,
}

impl Coverage {
    /// Adds what another load reached.
    pub fn add(&mut self, more: Coverage) {
        let Coverage { cleaned, checkpoints, spilled } = more;
        self.cleaned += cleaned;
        self.checkpoints += checkpoints;
        self.spilled += spilled;
    }
}

/// What a program of the medium that fails does to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedProgram {
    /// Nobody notices: it is written elsewhere.
    Survived,
    /// The command fails, and so does every later change, until the device is opened again; then all
    /// that was acknowledged is there. Recovery itself may fail for it.
    Latches,
}

/// What a device promises of what is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damaged {
    /// The page is an error, and no other is; opening is refused only where something is damaged that
    /// recovery needs and that is in no checkpoint.
    IsError,
    /// Nothing: it cannot tell damage from an end that was cut short. Nothing is damaged in its lives.
    IsNotTold,
}

/// A kind of device over media `M`. One file a kind in `subjects`.
///
/// What it promises is what its `limits()` say: the lab reads durability, atomic writes,
/// transactions and shares there. The constants say the rest. When power is cut every task stops where it stands, in the middle
/// of a poll where need be; the device itself is dropped and never asked again, but for
/// [`on_stored_energy`](Self::on_stored_energy).
#[allow(async_fn_in_trait, reason = "subjects live on one thread; their futures need not be Send")]
pub trait Subject<M: ZoneMedia>: Clone + 'static {
    /// The device under test.
    type Device: PageDevice<Page = M::Page>;

    /// What outlives the dark beside the medium: NVRAM, or a cache on stored energy. Clones name
    /// the same memory. `()` where there is none.
    type Kept: Clone + 'static;

    /// Whether the device does something on stored energy when the power is cut.
    const HAS_STORED_ENERGY: bool = false;

    /// Whether a trim of several pages is all or nothing; otherwise each of its pages is.
    const TRIMS_ARE_ATOMIC: bool = true;

    /// Whether a write in a transaction may be refused with `OutOfSpace`, where what is open at once
    /// takes all the room there is for that; nothing is done then, and the transaction can be aborted.
    const TRANSACTIONS_MAY_FILL: bool = false;

    /// What a failing program does.
    const FAILED_PROGRAM: FailedProgram = FailedProgram::Survived;

    /// What it promises of what is damaged.
    const DAMAGED: Damaged = Damaged::IsError;

    /// The array that it stands on, where it has one of its own: with `pages` logical pages.
    fn array(&self, _pages: u64) -> Result<Option<ArrayShape>> {
        Ok(None)
    }

    /// Logical pages of the devices in random lives, where it is made for some number alone.
    fn pages(&self) -> Option<u64> {
        None
    }

    /// Zones that the device needs beyond those that others of its size have.
    fn more_zones(&self) -> u32 {
        0
    }

    /// Whether it acknowledges what is nowhere but in memory, because that outlives the dark.
    fn acknowledges_early(&self) -> bool {
        false
    }

    /// As `--device` takes it: `ssd:cache=durable`.
    fn text(&self) -> String;

    /// The memory of a new device, empty.
    fn kept(&self) -> Self::Kept;

    /// The NVRAM in `kept`, where there is some: power is also cut at its stores.
    fn nvram(&self, _kept: &Self::Kept) -> Option<Nvram> {
        None
    }

    /// A new device on empty media. No tasks are started.
    async fn format(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Self::Device>>;

    /// The device that was there before the power went. No tasks are started but those that
    /// recovery itself needs.
    async fn reopen(&self, opening: Opening<M, Self::Kept>) -> Result<Rc<Self::Device>>;

    /// Starts what must run beside the commands.
    fn start(&self, runtime: &Virtual, device: &Rc<Self::Device>);

    /// Closes the device in good order; no command is in flight.
    async fn close(&self, device: &Self::Device) -> Result<()>;

    /// Panics where the device's structures contradict each other. No command is in flight.
    fn validate(&self, device: &Self::Device);

    /// What the load reached since the device was opened.
    fn coverage(&self, device: &Self::Device) -> Coverage;

    /// What the device does between the cut and darkness, such as a dump. Its tasks are gone, what
    /// was in flight has met its fate, and the medium in `opening` is powered for that long: no
    /// further cut falls into it. Called only with [`HAS_STORED_ENERGY`](Self::HAS_STORED_ENERGY),
    /// and only where the device had been opened when the power went.
    async fn on_stored_energy(
        &self,
        _device: Rc<Self::Device>,
        _opening: Opening<M, Self::Kept>,
    ) -> Result<()> {
        Ok(())
    }
}
