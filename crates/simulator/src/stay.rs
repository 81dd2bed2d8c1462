//! A device from its opening to the end of its clients. Its kind is erased, so that this is compiled once.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Durability, Error, ErrorKind, PageDevice, PageNo, PageRange, Payload};
use tantalum_media::PowerCut;
use tantalum_models::SimulatedDevice;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};

use super::bench::Errors;
use super::client::Client;
use super::command::Command;
use super::damage::Damage;
use super::excuses::{Latching, tells_of_damage};
use super::history::History;
use super::holds::Holds;
use super::life::Violation;
use super::subject::{Damaged, Promises};
use super::verify::{self, Sure};

/// The state of one power-on period beside the device.
pub(super) struct Stay<P: Payload> {
    pub(super) runtime: Virtual,
    pub(super) history: Rc<RefCell<History<P>>>,
    pub(super) violations: Rc<RefCell<Vec<Violation>>>,
    /// Whether the power has been cut.
    pub(super) is_cut: Rc<dyn Fn() -> bool>,
    pub(super) promises: Promises,
    /// The failures that may latch the device.
    pub(super) may_latch: Latching,
    /// The errors that pass.
    pub(super) errors: Errors,
    /// The damage to the medium.
    pub(super) damage: Damage<P>,
    /// Maximum number of states that a check visits.
    pub(super) states_max: usize,
}

impl<P: Payload> Stay<P> {
    /// Whether the device may refuse to be opened with `error`.
    pub(super) fn may_refuse(&self, error: &Error) -> bool {
        let refuses_end = self.promises.damaged == Damaged::IsErrorOrEndRefused;
        tells_of_damage(error)
            && (self.damage.may_refuse() || refuses_end && self.damage.may_hide_end())
    }

    /// Checks every page of a device that was opened again, and sets `verified` if it is as promised. Returns whether
    /// clients can continue: not after a violation, and not if pages that cannot be read yet leave everything to the next
    /// power-on period.
    ///
    /// # Errors
    /// An error that the device must not return.
    pub(super) async fn verify(
        &self,
        device: &SimulatedDevice<P>,
        verified: &Cell<bool>,
    ) -> Result<bool, Error> {
        device.validate();
        let passing = self.may_latch.passing;
        let patience = Patience { runtime: &self.runtime, errors: &self.errors, passing };
        match verify(device, &self.history, &self.damage, self.states_max, patience).await {
            Ok(Ok(())) => {
                verified.set(true);
                Ok(true)
            }
            Ok(Err(violation)) => {
                self.violations.borrow_mut().push(violation);
                Ok(false)
            }
            Err(error) if passing && self.may_latch.excuses(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Runs the clients, each with its commands, to their ends; if the power was cut meanwhile, stops here.
    ///
    /// # Errors
    /// An error that the device must not return.
    pub(super) async fn go_on(
        &self,
        device: &Rc<SimulatedDevice<P>>,
        clients: Vec<Vec<(Command, u64)>>,
    ) -> Result<(), Error> {
        let holds = Rc::<Holds>::default();
        let client = |number| Client {
            device: Rc::clone(device),
            number,
            history: Rc::clone(&self.history),
            holds: Rc::clone(&holds),
            violations: Rc::clone(&self.violations),
            is_cut: Rc::clone(&self.is_cut),
            trims_are_atomic: self.promises.trims_are_atomic,
            may_latch: self.may_latch,
            errors: self.errors.clone(),
            transactions_may_fill: self.promises.transactions_may_fill,
            damage: self.damage.clone(),
            states_max: self.states_max,
        };
        let spawn = |(commands, number)| self.runtime.spawn("client", client(number).run(commands));
        let tasks: Vec<_> = clients.into_iter().zip(0..).map(spawn).collect();
        for task in tasks {
            task.await;
        }
        if self.may_latch.passing {
            // The errors have passed: everything can be read.
            self.errors.end();
            let count = self.history.borrow().baseline.0.len() as u64;
            for page in (0..count).map(PageNo) {
                client(0).read(PageRange::new(page, 1)).await?;
            }
        }
        if (self.is_cut)() {
            PowerCut::unwind();
        }
        Ok(())
    }

    /// Closes the device.
    ///
    /// # Errors
    /// An error that the device must not return.
    pub(super) async fn close(&self, device: &SimulatedDevice<P>) -> Result<(), Error> {
        let issued = self.history.borrow_mut().now();
        match device.close().await {
            Err(error) if self.damage.latching(self.may_latch).excuses(&error) => return Ok(()),
            closed => closed?,
        }
        // Closing in good order is a flush.
        self.history.borrow_mut().flushed(issued);
        device.validate();
        Ok(())
    }
}

/// The retries of reads while errors pass.
#[derive(Clone, Copy)]
struct Patience<'a> {
    runtime: &'a Virtual,
    errors: &'a Errors,
    /// Whether there are passing errors.
    passing: bool,
}

impl Patience<'_> {
    /// Maximum number of retries of a read, and the pause before each.
    const TRIES: u32 = 40;
    const PAUSE_NS: u64 = 500_000;

    /// Reads a page, with retries while I/O errors pass.
    async fn read<D: PageDevice>(&self, device: &D, page: PageNo) -> Result<D::Page, Error> {
        let mut out = [D::Page::zero()];
        for _ in 0..Self::TRIES {
            let failed = self.errors.failed_reads();
            match device.read(page, &mut out, None).await {
                Err(error) if self.passing && error.kind() == ErrorKind::Io => {
                    self.errors.check_failed_since(failed, &error)?;
                    self.runtime.sleep(Self::PAUSE_NS).await;
                }
                read => return read.map(|()| out[0].clone()),
            }
        }
        device.read(page, &mut out, None).await.map(|()| out[0].clone())
    }
}

/// Reads every page and compares; the contents found are the new baseline.
async fn verify<D: PageDevice>(
    device: &D,
    history: &RefCell<History<D::Page>>,
    damage: &Damage<D::Page>,
    states_max: usize,
    patience: Patience<'_>,
) -> Result<Result<(), Violation>, Error> {
    let (count, durability): (u64, Durability) = {
        let limits = device.limits();
        (history.borrow().baseline.0.len() as u64, limits.durability)
    };
    let mut pages = Vec::with_capacity(count as usize);
    for page in (0..count).map(PageNo) {
        pages.push(match patience.read(device, page).await {
            Ok(content) => Some(content),
            Err(error) if tells_of_damage(&error) => None,
            Err(error) => return Err(error),
        });
    }
    let excuses = damage.excuses_in(&history.borrow());
    let checked = verify::check(&pages, &history.borrow(), &excuses, durability, states_max);
    Ok(checked.map(|(contents, sure)| {
        let mut history = history.borrow_mut();
        history.verified(contents);
        damage.verified();
        history.undecided += u64::from(sure == Sure::Undecided);
    }))
}
