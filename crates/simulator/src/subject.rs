//! The device under test: how it is made and opened, and the facts about it that the lab needs.
use std::rc::Rc;
use tantalum_base::{PageDevice, Payload, Result};
use tantalum_media::{CutPlan, Episodes, ErasedZones, ZoneGeometry};
use tantalum_models::Nvram;
use tantalum_models::rig::ArrayShape;
use tantalum_models::tx_cache::KeptNvram;
use tantalum_runtime::{DeviceCounters, DeviceKind, LifeCycle, Virtual};

use super::life::CutAt;

/// The medium of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Medium {
    /// The lab's medium, for this number of logical pages.
    Lab {
        /// Zones that the device needs in addition to those of other devices of its size.
        more_zones: u32,
    },
    /// An array of its own.
    Array(ArrayShape),
}

/// The parts that a load reached; the lab reports them, as a load that reaches nothing tests nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Zones (or blocks) cleaned.
    pub cleaned: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Pages of open transactions that were moved out of a cache that was too small for them.
    pub spilled: u64,
}

impl Coverage {
    /// Adds the coverage of another load.
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

/// The effect of a failing program of the medium on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedProgram {
    /// None: the data is written elsewhere.
    Survived,
    /// The command fails, and so does every later change, until the device is opened again; then everything
    /// acknowledged is there. Recovery itself may fail because of it.
    Latches,
}

/// The promise of a device for damaged content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damaged {
    /// A damaged page is an error, and no other page is; opening is refused only if something is damaged that
    /// recovery needs and that is in no checkpoint.
    IsError,
    /// Like [`IsError`](Self::IsError); in addition opening may be refused if the end of the log is damaged so that
    /// it looks like a cut: a home may have some of it.
    IsErrorOrEndRefused,
    /// None: it cannot distinguish damage from an end that was cut. Nothing is damaged in its lives.
    IsNotTold,
}

/// The promise of a device for the content that remains if its medium is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutMedium {
    /// None.
    Nothing,
    /// Everything acknowledged by the moment that it names, and nothing issued later; that moment never goes back.
    OneMoment,
    /// The same, and everything that was ever acknowledged.
    Everything,
}

/// The promises of a device beyond its `limits()`, from which the lab reads durability, atomic writes, transactions
/// and shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// Whether a trim of several pages is all or nothing; otherwise each of its pages is.
    pub trims_are_atomic: bool,
    /// Whether a write in a transaction may be refused with `OutOfSpace` because the open transactions fill the room
    /// for them; then nothing is done, and the transaction can be aborted.
    pub transactions_may_fill: bool,
    /// Whether it acknowledges changes that are only in memory, because that memory survives power cuts.
    pub acknowledges_early: bool,
    /// The effect of a failing program.
    pub failed_program: FailedProgram,
    /// The promise for damaged content.
    pub damaged: Damaged,
    /// The promise if the medium is lost.
    pub without_medium: WithoutMedium,
}

impl Promises {
    /// The promises of most devices.
    pub const USUAL: Promises = Promises {
        trims_are_atomic: true,
        transactions_may_fill: false,
        acknowledges_early: false,
        failed_program: FailedProgram::Survived,
        damaged: Damaged::IsError,
        without_medium: WithoutMedium::Nothing,
    };
}

/// The parts beside the medium that survive, and lose power with it. A part may be made only together with the
/// device: before that there is nothing to cut.
pub trait Kept {
    /// Its kinds of operations at which power can be cut.
    const CUT_AT: &'static [CutAt];

    /// The power comes on; random choices use `seed`.
    fn power_on(&self, runtime: &Virtual, seed: u64);

    /// Plans a cut at operations that `at` counts; does nothing if it has no such part.
    fn plan(&self, at: CutAt, plan: CutPlan);

    /// The errors that pass in it since its power came on; `None` if it cannot fail.
    fn episodes(&self, _at: CutAt) -> Option<Episodes<Virtual>> {
        None
    }

    /// Number of operations of this kind so far.
    fn operations(&self, at: CutAt) -> u64;

    /// Whether the power was cut here since it came on.
    fn is_cut(&self) -> bool;

    /// The power is off, wherever it was cut: later operations do not count.
    fn cut(&self);

    /// The tasks are gone: operations in flight meet their fate.
    ///
    /// # Errors
    /// Only for a mistake of the lab.
    fn power_off(&self, runtime: &Virtual) -> Result<()>;

    /// Sets the device's clock for the time of day: moments in the order of commands.
    fn tell_time(&self, _clock: Rc<dyn Fn() -> u64>) {}

    /// The content that remains if the medium is lost while the power is off; `None` if nothing does. The device
    /// itself loses nothing by this call.
    ///
    /// # Errors
    /// If the content that should remain is not available.
    fn without_medium<P: Payload>(&self) -> Result<Option<Alone<P>>> {
        Ok(None)
    }
}

/// The content of a device that remains without its medium.
pub struct Alone<P> {
    /// Every page.
    pub pages: Vec<P>,
    /// The moment that the content claims; 0 before the first one.
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

/// A device that can be tested with contents `P`, on zones of any kind. At a power cut every task stops at once, even in the middle of a poll.
/// The device is dropped and not called again, except for its work on stored energy.
pub trait Tested<P: Payload>:
    DeviceKind<Virtual, ErasedZones<P>, Kept: Kept, Device: LifeCycle + PageDevice<Page = P>>
{
}

impl<P: Payload, K> Tested<P> for K where
    K: DeviceKind<Virtual, ErasedZones<P>, Kept: Kept, Device: LifeCycle + PageDevice<Page = P>>
{
}

/// Makes the device kind for zones of a geometry and a number of pages.
type MakeKind<K> = dyn Fn(&ZoneGeometry, u64) -> K;

/// Chooses the medium for a number of pages.
type ChooseMedium = dyn Fn(u64) -> Result<Medium>;

/// A kind of device in the crash lab, for any number of pages.
pub struct Subject<K> {
    /// Its name for `--device`: `ssd:cache=durable`.
    pub text: String,
    /// Number of logical pages of the devices in random lives, if it is fixed.
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
    /// The device that `kind` makes for zones of a geometry and a number of pages, on the lab's media.
    pub fn new(text: &str, kind: impl Fn(&ZoneGeometry, u64) -> K + 'static) -> Self {
        Subject {
            text: text.to_owned(),
            pages: None,
            promises: Promises::USUAL,
            kind: Rc::new(kind),
            medium: Rc::new(|_| Ok(Medium::Lab { more_zones: 0 })),
        }
    }

    /// The same with additional zones.
    pub fn more_zones(self, more_zones: u32) -> Self {
        self.on(move |_| Ok(Medium::Lab { more_zones }))
    }

    /// The same on the medium that `medium` chooses for a number of pages.
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

    /// The device with `pages` pages on zones of this geometry.
    pub fn kind(&self, geometry: &ZoneGeometry, pages: u64) -> K {
        (self.kind)(geometry, pages)
    }

    /// The medium of a device with `pages` pages.
    ///
    /// # Errors
    /// `InvalidInput` if the device cannot have that many.
    pub fn medium(&self, pages: u64) -> Result<Medium> {
        (self.medium)(pages)
    }
}
