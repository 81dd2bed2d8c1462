//! Simulated NAND: an array of channels, packages, planes, blocks and flash pages.
//!
//! ```text
//! geometry   shape and addresses          timing    durations, who is busy until when
//! array      blocks and operations        slot      a slot in 16 bytes
//! faults     what fails                   power     what a power cut leaves behind
//! counters   what was done, wear
//! ```
//!
//! The array outlives every executor: it is what lies in the package when the power is gone.
//! Changes are made when an operation is submitted, its end is computed then, and whoever
//! submitted it sleeps until that end.
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

/// What makes an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NandOptions {
    /// The shape.
    pub geometry: NandGeometry,
    /// Durations.
    pub timing: NandTiming,
    /// Chances of failure.
    pub faults: NandFaults,
    /// Seed of everything that is left to chance.
    pub seed: u64,
}

/// Handle on a NAND array; clones name the same array.
pub struct Nand<P>(Rc<RefCell<Array<P>>>);

impl<P> Clone for Nand<P> {
    fn clone(&self) -> Self {
        Nand(Rc::clone(&self.0))
    }
}

impl<P: Payload> Nand<P> {
    /// An array as it leaves the factory, all erased.
    ///
    /// # Errors
    /// `InvalidInput` where the shape or the durations make no sense.
    pub fn new(options: &NandOptions) -> Result<Self> {
        let NandOptions { geometry, timing, faults, seed } = *options;
        Ok(Nand(Rc::new(RefCell::new(Array::new(geometry, timing, faults, seed)?))))
    }

    /// The shape.
    pub fn geometry(&self) -> NandGeometry {
        self.0.borrow().geometry
    }

    /// Operations so far.
    pub fn counters(&self) -> NandCounters {
        self.0.borrow().counters
    }

    /// Erases a block.
    pub fn wear(&self) -> Wear {
        self.0.borrow().wear()
    }

    /// Whether the block is bad, from the factory or since.
    pub fn is_bad(&self, at: BlockAddr) -> bool {
        self.0.borrow().is_bad(at)
    }

    /// Programs a flash page with up to as many `spares` and `bodies` as it has slots; returns
    /// when it ends.
    ///
    /// # Errors
    /// `ProgramFailed` where the block is or goes bad; the page is unreadable then.
    /// # Panics
    /// Where the page is not the next of its block, or the block needs an erase.
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

    /// Erases a block; returns when it ends.
    ///
    /// # Errors
    /// `ZoneRetired` where that fails; the block is bad then.
    /// # Panics
    /// Where the block is bad already.
    pub fn erase(&self, now_ns: u64, at: BlockAddr) -> Result<u64> {
        let outcome = self.0.borrow_mut().erase(now_ns, at);
        ended(outcome, ErrorKind::ZoneRetired, || format!("erase of {at:?}"))
    }

    /// Senses a flash page and transfers it; returns when that ends and what its slots hold.
    pub fn read(&self, now_ns: u64, at: PageAddr) -> (u64, Vec<SlotRead<P>>) {
        let mut array = self.0.borrow_mut();
        let slots = array.geometry.slots_per_page();
        let end_ns = array.read(now_ns, at);
        let first = at.page * slots;
        (end_ns, (first..first + slots).map(|slot| array.slot(at.block, slot)).collect())
    }

    /// Lets the program fail that comes `nth` from now, counted from 0.
    pub fn fail_program(&self, nth: u64) {
        self.0.borrow_mut().program_failures.script(nth);
    }

    /// Lets no program fail any more of those that [`fail_program`](Self::fail_program) named.
    pub fn call_off_failing_programs(&self) {
        self.0.borrow_mut().program_failures.call_off();
    }

    /// Lets the erase fail that comes `nth` from now, counted from 0.
    pub fn fail_erase(&self, nth: u64) {
        self.0.borrow_mut().erase_failures.script(nth);
    }

    /// Lets the flash page decay that is sensed `nth` from now, counted from 0.
    pub fn fail_read(&self, nth: u64) {
        self.0.borrow_mut().read_failures.script(nth);
    }

    /// Mutations (appends and resets of zones) so far: what [`CutPlan`] counts.
    pub fn mutations(&self) -> u64 {
        self.0.borrow().mutations
    }

    /// Plans a power cut; `None` calls it off.
    pub fn plan_cut(&self, plan: Option<CutPlan>) {
        self.0.borrow_mut().cut_plan = plan;
    }

    /// Power cuts so far.
    pub fn power_cuts(&self) -> u64 {
        self.0.borrow().power
    }

    /// Cuts the power at `now_ns`: what has ended stays, what has not started is undone, and of
    /// what is in progress `fate` decides, asked in the order of submission. Zones opened before
    /// answer `PowerCut` from now on. The executor's tasks are the caller's to drop.
    pub fn power_cut(&self, now_ns: u64, mut fate: impl FnMut(&InFlight) -> Fate) {
        self.0.borrow_mut().power_cut(now_ns, &mut fate);
    }

    /// The array, borrowed for the time of one submission.
    pub(crate) fn array(&self) -> RefMut<'_, Array<P>> {
        self.0.borrow_mut()
    }
}

fn ended(outcome: Outcome, kind: ErrorKind, context: impl FnOnce() -> String) -> Result<u64> {
    if outcome.ok { Ok(outcome.end_ns()) } else { Err(Error::new(kind, context())) }
}
