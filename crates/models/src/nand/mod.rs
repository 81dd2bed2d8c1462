//! Simulated NAND: an array of channels, packages, planes, blocks and flash pages.
//!
//! ```text
//! geometry   geometry and addresses       timing    durations; when planes and channels are busy
//! array      blocks and operations        slot      a slot in 12 bytes
//! faults     failing operations           power     the state after a power cut
//! counters   operation counts, wear
//! ```
//!
//! The array outlives every executor, like the content of a package without power. Changes are made
//! when an operation is submitted; its end is computed then, and the submitter sleeps until that
//! end.
mod array;
mod counters;
mod faults;
mod geometry;
mod power;
mod slot;
mod timing;

#[cfg(test)]
mod tests;

pub(crate) use array::{Array, Outcome};
pub use counters::{NandCounters, Wear};
pub use faults::NandFaults;
pub use geometry::{BlockAddr, NandGeometry, PageAddr};
pub use power::{InFlight, Operation};
pub use slot::SlotRead;
pub use timing::NandTiming;

use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Payload, Result};
use tantalum_media::cut::{CutPlan, Fate};
use tantalum_media::zone::{Body, Spare};

/// Options of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NandOptions {
    /// The geometry.
    pub geometry: NandGeometry,
    /// Durations.
    pub timing: NandTiming,
    /// Failure probabilities.
    pub faults: NandFaults,
    /// Seed of everything random.
    pub seed: u64,
}

/// Handle to a NAND array; clones share the same array.
pub struct Nand<P>(Rc<RefCell<Array<P>>>);

impl<P> Clone for Nand<P> {
    fn clone(&self) -> Self {
        Nand(Rc::clone(&self.0))
    }
}

impl<P: Payload> Nand<P> {
    /// A new array, all erased.
    ///
    /// # Errors
    /// `InvalidInput` if the geometry or the durations are invalid.
    pub fn new(options: &NandOptions) -> Result<Self> {
        let NandOptions { geometry, timing, faults, seed } = *options;
        Ok(Nand(Rc::new(RefCell::new(Array::new(geometry, timing, faults, seed)?))))
    }

    /// The geometry.
    pub fn geometry(&self) -> NandGeometry {
        self.0.borrow().geometry
    }

    /// Operation counts.
    pub fn counters(&self) -> NandCounters {
        self.0.borrow().counters
    }

    /// Erase counts of blocks.
    pub fn wear(&self) -> Wear {
        self.0.borrow().wear()
    }

    /// Whether the block is bad, from the factory or later.
    pub fn is_bad(&self, at: BlockAddr) -> bool {
        self.0.borrow().is_bad(at)
    }

    /// Programs a flash page with at most as many `spares` and `bodies` as it has slots. Returns
    /// the end time.
    ///
    /// # Errors
    /// `ProgramFailed` if the block is bad or goes bad; the page is then unreadable.
    /// # Panics
    /// If the page is not the next one of its block, or the block needs an erase.
    pub fn program(
        &self,
        now_ns: u64,
        at: PageAddr,
        spares: &[Spare],
        bodies: &[Body<P>],
    ) -> Result<u64> {
        let outcome = self.0.borrow_mut().program(now_ns, at, spares, bodies);
        ended(outcome, ErrorKind::ProgramFailed, || format!("program of {at:?}"))
    }

    /// Erases a block. Returns the end time.
    ///
    /// # Errors
    /// `ZoneRetired` if the erase fails; the block is then bad.
    /// # Panics
    /// If the block is already bad.
    pub fn erase(&self, now_ns: u64, at: BlockAddr) -> Result<u64> {
        let outcome = self.0.borrow_mut().erase(now_ns, at);
        ended(outcome, ErrorKind::ZoneRetired, || format!("erase of {at:?}"))
    }

    /// Senses a flash page and transfers it. Returns the end time and the content of its slots.
    pub fn read(&self, now_ns: u64, at: PageAddr) -> (u64, Vec<SlotRead<P>>) {
        let mut array = self.0.borrow_mut();
        let slots = array.geometry.slots_per_page();
        let end_ns = array.read(now_ns, at);
        let first = at.page * slots;
        (end_ns, (first..first + slots).map(|slot| array.slot(at.block, slot)).collect())
    }

    /// Makes the program fail that comes `nth` from now, counted from 0.
    pub fn fail_program(&self, nth: u64) {
        self.0.borrow_mut().program_failures.script(nth);
    }

    /// Cancels all failures scripted with [`fail_program`](Self::fail_program).
    pub fn call_off_failing_programs(&self) {
        self.0.borrow_mut().program_failures.call_off();
    }

    /// Makes the erase fail that comes `nth` from now, counted from 0.
    pub fn fail_erase(&self, nth: u64) {
        self.0.borrow_mut().erase_failures.script(nth);
    }

    /// Makes the flash page unreadable that is sensed `nth` from now, counted from 0.
    pub fn fail_read(&self, nth: u64) {
        self.0.borrow_mut().read_failures.script(nth);
    }

    /// Number of mutations (appends and resets of zones) so far; [`CutPlan`] counts these.
    pub fn mutations(&self) -> u64 {
        self.0.borrow().mutations
    }

    /// Plans a power cut; `None` cancels it.
    pub fn plan_cut(&self, plan: Option<CutPlan>) {
        self.0.borrow_mut().cut_plan = plan;
    }

    /// Number of power cuts so far.
    pub fn power_cuts(&self) -> u64 {
        self.0.borrow().power
    }

    /// Cuts the power at `now_ns`: operations that have ended stay, those that have not started are
    /// undone, and `fate` decides about those in progress, called in the order of submission. Zones
    /// opened before return `PowerCut` from now on. The caller must drop the executor's tasks.
    pub fn power_cut(&self, now_ns: u64, mut fate: impl FnMut(&InFlight) -> Fate) {
        self.0.borrow_mut().power_cut(now_ns, &mut fate);
    }

    /// Borrows the array for one submission.
    pub(crate) fn array(&self) -> RefMut<'_, Array<P>> {
        self.0.borrow_mut()
    }
}

fn ended(outcome: Outcome, kind: ErrorKind, context: impl FnOnce() -> String) -> Result<u64> {
    if outcome.ok { Ok(outcome.end_ns()) } else { Err(Error::new(kind, context())) }
}
