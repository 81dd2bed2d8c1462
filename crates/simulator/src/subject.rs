//! What is under test: a device as it is made and opened, and what the lab must know of it beyond that.
use std::rc::Rc;
use tantalum_base::{PageDevice, Payload, Result};
use tantalum_media::{CutPlan, Episodes, ZoneGeometry, ZoneMedia};
use tantalum_models::Nvram;
use tantalum_models::rig::ArrayShape;
use tantalum_models::tx_cache::KeptNvram;
use tantalum_runtime::{DeviceCounters, DeviceKind, LifeCycle, Virtual};

use super::life::CutAt;

/// The medium that a device stands on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Medium {
    /// The lab's, for so many logical pages.
    Lab {
        /// Zones that the device needs beyond those that others of its size have.
        more_zones: u32,
    },
    /// An array of its own.
    Array(ArrayShape),
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

impl From<DeviceCounters> for Coverage {
    fn from(counters: DeviceCounters) -> Coverage {
        let DeviceCounters { zones_cleaned, merges, checkpoints, pages_spilled, .. } = counters;
        Coverage { cleaned: zones_cleaned + merges, checkpoints, spilled: pages_spilled }
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
    /// As [`IsError`](Self::IsError); and opening may be refused where the end of the log is damaged so that it looks
    /// like a cut: a home may have some of it.
    IsErrorOrEndRefused,
    /// Nothing: it cannot tell damage from an end that was cut short. Nothing is damaged in its lives.
    IsNotTold,
}

/// What a device promises of what is left where its medium is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutMedium {
    /// Nothing.
    Nothing,
    /// All that had been acknowledged by the moment that it names, and nothing that was issued later; that moment
    /// never goes back.
    OneMoment,
    /// The same, and all that was acknowledged at all.
    Everything,
}

/// What a device promises beyond its `limits()`, where the lab reads durability, atomic writes,
/// transactions and shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// A trim of several pages is all or nothing; otherwise each of its pages is.
    pub trims_are_atomic: bool,
    /// A write in a transaction may be refused with `OutOfSpace`, where what is open at once takes all
    /// the room there is for that; nothing is done then, and the transaction can be aborted.
    pub transactions_may_fill: bool,
    /// It acknowledges what is nowhere but in memory, because that outlives the dark.
    pub acknowledges_early: bool,
    /// What a failing program does.
    pub failed_program: FailedProgram,
    /// What it promises of what is damaged.
    pub damaged: Damaged,
    /// What it promises where the medium is lost.
    pub without_medium: WithoutMedium,
}

impl Promises {
    /// Those that most devices keep.
    pub const USUAL: Promises = Promises {
        trims_are_atomic: true,
        transactions_may_fill: false,
        acknowledges_early: false,
        failed_program: FailedProgram::Survived,
        damaged: Damaged::IsError,
        without_medium: WithoutMedium::Nothing,
    };
}

/// What outlives the dark beside the medium, and loses its power with it. It may be made only with the device:
/// before that there is nothing to cut.
pub trait Kept {
    /// What of it power can be cut at.
    const CUT_AT: &'static [CutAt];

    /// Power comes on; what is left to chance comes from `seed`.
    fn power_on(&self, runtime: &Virtual, seed: u64);

    /// Plans a cut at what `at` counts; none where it has nothing of that.
    fn plan(&self, at: CutAt, plan: CutPlan);

    /// The errors that pass over it since its power came on; none where it cannot fail.
    fn episodes(&self, _at: CutAt) -> Option<Episodes<Virtual>> {
        None
    }

    /// Operations of this kind so far.
    fn operations(&self, at: CutAt) -> u64;

    /// Whether the power has been cut here since it came on.
    fn is_cut(&self) -> bool;

    /// The power goes, wherever it was cut: what is done from now on does not count.
    fn cut(&self);

    /// The tasks are gone: what was in flight meets its fate.
    ///
    /// # Errors
    /// None but for a mistake of the lab.
    fn power_off(&self, runtime: &Virtual) -> Result<()>;

    /// What the device takes for the time of day: a moment in the order of commands.
    fn tell_time(&self, _clock: Rc<dyn Fn() -> u64>) {}

    /// What is left where the medium is lost in the dark; `None` where nothing is. The device itself loses nothing by
    /// that.
    ///
    /// # Errors
    /// Where what should be left cannot be had.
    fn without_medium<P: Payload>(&self) -> Result<Option<Alone<P>>> {
        Ok(None)
    }
}

/// What is left of a device without its medium.
pub struct Alone<P> {
    /// Every page.
    pub pages: Vec<P>,
    /// The moment as of which it says they are; 0 before the first one.
    pub moment: u64,
}

impl Kept for () {
    const CUT_AT: &'static [CutAt] = &[];

    fn power_on(&self, _: &Virtual, _: u64) {}

    fn plan(&self, _: CutAt, _: CutPlan) {}

    fn operations(&self, _: CutAt) -> u64 {
        0
    }

    fn is_cut(&self) -> bool {
        false
    }

    fn cut(&self) {}

    fn power_off(&self, _: &Virtual) -> Result<()> {
        Ok(())
    }
}

/// NVRAM: power is also cut at its stores.
impl<P: Payload> Kept for KeptNvram<P> {
    const CUT_AT: &'static [CutAt] = &[CutAt::Nvram];

    fn power_on(&self, _: &Virtual, _: u64) {
        region(self, Nvram::power_on);
    }

    fn plan(&self, at: CutAt, plan: CutPlan) {
        if at == CutAt::Nvram {
            region(self, |nvram| nvram.plan_cut(Some(plan)));
        }
    }

    fn operations(&self, at: CutAt) -> u64 {
        if at == CutAt::Nvram { region(self, Nvram::stores).unwrap_or(0) } else { 0 }
    }

    fn is_cut(&self) -> bool {
        region(self, Nvram::is_cut).unwrap_or(false)
    }

    fn cut(&self) {
        region(self, Nvram::cut);
    }

    fn power_off(&self, _: &Virtual) -> Result<()> {
        Ok(())
    }
}

fn region<P: Payload, T>(kept: &KeptNvram<P>, work: impl FnOnce(&Nvram) -> T) -> Option<T> {
    kept.borrow().as_ref().map(|nvram| work(nvram.region()))
}

/// A device that can be under test on zones `M`. When power is cut, every task stops where it stands, in
/// the middle of a poll where need be, and the device is dropped and never asked again, but for what it
/// does on stored energy.
pub trait Tested<M: ZoneMedia>:
    DeviceKind<Virtual, M, Kept: Kept, Device: LifeCycle + PageDevice<Page = M::Page>>
{
}

impl<M: ZoneMedia, K> Tested<M> for K where
    K: DeviceKind<Virtual, M, Kept: Kept, Device: LifeCycle + PageDevice<Page = M::Page>>
{
}

/// The device on zones of a shape, with so many pages.
type MakeKind<K> = dyn Fn(&ZoneGeometry, u64) -> K;

/// The medium of a device with so many pages.
type ChooseMedium = dyn Fn(u64) -> Result<Medium>;

/// A kind of device in the crash lab, for any number of pages.
pub struct Subject<K> {
    /// As `--device` takes it: `ssd:cache=durable`.
    pub text: String,
    /// Logical pages of the devices in random lives, where it is made for some number alone.
    pub pages: Option<u64>,
    /// What it promises.
    pub promises: Promises,
    kind: Rc<MakeKind<K>>,
    medium: Rc<ChooseMedium>,
}

impl<K> Clone for Subject<K> {
    fn clone(&self) -> Self {
        let (kind, medium) = (Rc::clone(&self.kind), Rc::clone(&self.medium));
        let Subject { text, pages, promises, .. } = self;
        Subject { text: text.clone(), pages: *pages, promises: *promises, kind, medium }
    }
}

impl<K> Subject<K> {
    /// The device that `kind` gives for zones of a shape and a number of pages, on the lab's media.
    pub fn new(text: &str, kind: impl Fn(&ZoneGeometry, u64) -> K + 'static) -> Self {
        Subject {
            text: text.to_owned(),
            pages: None,
            promises: Promises::USUAL,
            kind: Rc::new(kind),
            medium: Rc::new(|_| Ok(Medium::Lab { more_zones: 0 })),
        }
    }

    /// The same with zones beyond those that others of its size have.
    pub fn more_zones(self, more_zones: u32) -> Self {
        self.on(move |_| Ok(Medium::Lab { more_zones }))
    }

    /// The same on the medium that `medium` gives for a number of pages.
    pub fn on(self, medium: impl Fn(u64) -> Result<Medium> + 'static) -> Self {
        Subject { medium: Rc::new(medium), ..self }
    }

    /// The same with other promises.
    pub fn promises(self, promises: Promises) -> Self {
        Subject { promises, ..self }
    }

    /// The same device under another name, wrapped.
    pub fn wrapped<W>(self, text: &str, wrap: impl Fn(K) -> W + 'static) -> Subject<W>
    where
        K: 'static,
    {
        let Subject { pages, promises, kind, medium, .. } = self;
        let kind = Rc::new(move |geometry: &ZoneGeometry, pages: u64| wrap(kind(geometry, pages)));
        Subject { text: text.to_owned(), pages, promises, kind, medium }
    }

    /// The device with `pages` pages on zones of this shape.
    pub fn kind(&self, geometry: &ZoneGeometry, pages: u64) -> K {
        (self.kind)(geometry, pages)
    }

    /// The medium of a device with `pages` pages.
    ///
    /// # Errors
    /// `InvalidInput` where the device cannot have so many.
    pub fn medium(&self, pages: u64) -> Result<Medium> {
        (self.medium)(pages)
    }
}
