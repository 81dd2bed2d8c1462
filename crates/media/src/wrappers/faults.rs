//! Failures of chosen operations, over any medium.
use super::{ZoneLayer, ZoneOperation};
use crate::zone::{AppendHeader, Body, ScannedAppend, Spare, ZoneMedia};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Payload, Result, Rng, SlotNo, ZoneNo};

/// The failure of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendFault {
    /// `ProgramFailed`: the slots are used up and unreadable.
    ProgramFailed,
    /// `Io`: nothing reached the medium.
    Io,
    /// It succeeds, but the page with this index in the append (or the last page, if there are fewer) gets wrong
    /// content.
    Corrupt(u32),
}

/// Probabilities of failure, all 0 by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultsOptions {
    /// Seed of all random decisions.
    pub seed: u64,
    /// Probability that an append fails with `ProgramFailed`.
    pub program_failed: f64,
    /// Probability, per slot read, that the slot becomes `Uncorrectable` permanently.
    pub uncorrectable: f64,
    /// Probability that a reset fails with `ZoneRetired`.
    pub zone_retired: f64,
}

struct Script {
    options: FaultsOptions,
    rng: Rng,
    appends: u64,
    reads: u64,
    resets: u64,
    scripted_appends: BTreeMap<u64, AppendFault>,
    scripted_reads: BTreeSet<u64>,
    interrupted_reads: BTreeSet<u64>,
    scripted_resets: BTreeSet<u64>,
    refused_resets: BTreeSet<u64>,
    unreadable: BTreeSet<SlotNo>,
    /// Reads in this range fail with `Io` until the range is set again.
    unanswered: Range<SlotNo>,
    retired: BTreeSet<ZoneNo>,
}

impl Script {
    fn chance(&mut self, chance: f64) -> bool {
        chance > 0.0 && self.rng.chance(chance)
    }

    fn next_append(&mut self) -> Option<AppendFault> {
        let number = self.appends;
        self.appends += 1;
        let by_chance = self.chance(self.options.program_failed);
        let scripted = self.scripted_appends.remove(&number);
        scripted.or(by_chance.then_some(AppendFault::ProgramFailed))
    }

    fn check_read(&mut self, slot: SlotNo) -> Result<()> {
        let number = self.reads;
        self.reads += 1;
        if self.chance(self.options.uncorrectable) || self.scripted_reads.remove(&number) {
            self.unreadable.insert(slot);
        }
        if self.interrupted_reads.remove(&number) {
            return Err(Error::new(ErrorKind::Io, format!("{slot:?} did not answer (injected)")));
        }
        if self.unreadable.contains(&slot) {
            return Err(Error::new(ErrorKind::Uncorrectable, format!("{slot:?} (injected)")));
        }
        Ok(())
    }

    /// Fails if the slots from `first` up to `end` include one that does not respond now.
    fn check_answers(&self, first: SlotNo, end: SlotNo) -> Result<()> {
        let Range { start, end: last } = self.unanswered;
        match first < last && start < end {
            true => Err(Error::new(ErrorKind::Io, format!("{first:?} does not answer (injected)"))),
            false => Ok(()),
        }
    }

    fn next_reset(&mut self, zone: ZoneNo) -> Result<()> {
        let number = self.resets;
        self.resets += 1;
        if self.refused_resets.remove(&number) {
            return Err(Error::new(ErrorKind::Io, format!("reset of {zone:?} (injected)")));
        }
        if self.chance(self.options.zone_retired) || self.scripted_resets.remove(&number) {
            self.retired.insert(zone);
        }
        if self.retired.contains(&zone) {
            return Err(Error::new(ErrorKind::ZoneRetired, format!("{zone:?} (injected)")));
        }
        Ok(())
    }
}

/// Makes operations fail, by script and by seeded probability. Operations are counted from the creation of the
/// wrapper; a read counts once per slot.
pub struct Faults<M> {
    inner: Rc<M>,
    state: RefCell<Script>,
}

impl<M: ZoneMedia> Faults<M> {
    /// Injects failures into `inner`.
    pub fn new(inner: Rc<M>, options: FaultsOptions) -> Self {
        let state = RefCell::new(Script {
            options,
            rng: Rng::split(options.seed, "media faults"),
            appends: 0,
            reads: 0,
            resets: 0,
            scripted_appends: BTreeMap::new(),
            scripted_reads: BTreeSet::new(),
            interrupted_reads: BTreeSet::new(),
            scripted_resets: BTreeSet::new(),
            refused_resets: BTreeSet::new(),
            unreadable: BTreeSet::new(),
            unanswered: SlotNo(0)..SlotNo(0),
            retired: BTreeSet::new(),
        });
        Faults { inner, state }
    }

    /// Makes the `nth` append from now fail, counted from 0.
    pub fn fail_append(&self, nth: u64, fault: AppendFault) {
        let state = &mut *self.state.borrow_mut();
        state.scripted_appends.insert(state.appends + nth, fault);
    }

    /// Makes the `nth` slot read from now on decay, counted from 0.
    pub fn fail_read(&self, nth: u64) {
        let state = &mut *self.state.borrow_mut();
        state.scripted_reads.insert(state.reads + nth);
    }

    /// Slots read so far.
    pub fn reads(&self) -> u64 {
        self.state.borrow().reads
    }

    /// Makes the `nth` slot read from now on fail once with `Io`, counted from 0.
    pub fn interrupt_read(&self, nth: u64) {
        let state = &mut *self.state.borrow_mut();
        state.interrupted_reads.insert(state.reads + nth);
    }

    /// Makes the `nth` reset from now fail with `ZoneRetired`, counted from 0.
    pub fn fail_reset(&self, nth: u64) {
        let state = &mut *self.state.borrow_mut();
        state.scripted_resets.insert(state.resets + nth);
    }

    /// Makes the `nth` reset from now fail with `Io`, counted from 0. The zone is unchanged.
    pub fn refuse_reset(&self, nth: u64) {
        let state = &mut *self.state.borrow_mut();
        state.refused_resets.insert(state.resets + nth);
    }

    /// From now on, reads, scans and peeks of `slots` fail with `Io`, as if the path to them were down. Other slots
    /// respond again; their contents are kept. An empty range ends the failure.
    pub fn leave_unanswered(&self, slots: Range<SlotNo>) {
        self.state.borrow_mut().unanswered = slots;
    }

    fn check_zone_answers(&self, zone: ZoneNo, from_offset: u32) -> Result<()> {
        let slots = self.inner.geometry().slots_per_zone;
        let (first, end) = (zone.0 * slots + from_offset, (zone.0 + 1) * slots);
        self.state.borrow().check_answers(SlotNo(first), SlotNo(end))
    }

    fn check_reads(&self, slots: impl Iterator<Item = SlotNo> + Clone) -> Result<()> {
        let mut state = self.state.borrow_mut();
        slots.clone().try_for_each(|slot| state.check_answers(slot, SlotNo(slot.0 + 1)))?;
        slots.map(|slot| state.check_read(slot)).fold(Ok(()), Result::and)
    }

    /// Removes the spares of unreadable slots from `found`, the result of a scan of `zone`.
    fn without_unreadable(
        &self,
        zone: ZoneNo,
        mut found: Vec<ScannedAppend>,
    ) -> Vec<ScannedAppend> {
        let geometry = self.inner.geometry();
        let state = self.state.borrow();
        for append in &mut found {
            for (offset, spare) in (append.first_offset..).zip(&mut append.spares) {
                if state.unreadable.contains(&geometry.slot(zone, offset)) {
                    *spare = None;
                }
            }
        }
        found
    }

    /// Makes `slot` unreadable from now on.
    pub fn decay(&self, slot: SlotNo) {
        self.state.borrow_mut().unreadable.insert(slot);
    }
}

impl<M: ZoneMedia> ZoneLayer for Faults<M> {
    type Inner = M;

    fn inner(&self) -> &M {
        &self.inner
    }

    async fn around<T>(
        &self,
        operation: ZoneOperation<'_>,
        run: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let checked = match operation {
            ZoneOperation::Read(slots) => self.check_reads(slots.iter().copied()),
            ZoneOperation::ReadMeta(first, pages) => {
                self.check_reads((first.0..).map(SlotNo).take(pages))
            }
            ZoneOperation::Scan(zone, from, _) => self.check_zone_answers(zone, from),
            ZoneOperation::Peek(zone) => {
                let first = self.inner.geometry().slot(zone, 0);
                self.state.borrow().check_answers(first, SlotNo(first.0 + 1))
            }
            ZoneOperation::Reset(zone) => {
                let geometry = self.inner.geometry();
                let state = &mut *self.state.borrow_mut();
                state.next_reset(zone)?;
                state.unreadable.retain(|slot| geometry.zone_of(*slot) != zone);
                Ok(())
            }
            _ => Ok(()),
        };
        let done = run.await?;
        checked.map(|()| done)
    }

    fn retired(&self) -> Vec<ZoneNo> {
        let mut retired = self.state.borrow().retired.clone();
        retired.extend(self.inner.retired());
        retired.into_iter().collect()
    }

    async fn append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<M::Page>],
        durable: bool,
    ) -> Result<SlotNo> {
        let fault = self.state.borrow_mut().next_append();
        let error = |kind| Err(Error::new(kind, format!("append to {zone:?} (injected)")));
        match fault {
            None => self.inner.append(zone, header, spares, bodies, durable).await,
            Some(AppendFault::Io) => error(ErrorKind::Io),
            Some(AppendFault::ProgramFailed) => {
                let first = self.inner.append(zone, header, spares, bodies, durable).await?;
                let slots = (first.0..first.0 + bodies.len() as u32).map(SlotNo);
                self.state.borrow_mut().unreadable.extend(slots);
                error(ErrorKind::ProgramFailed)
            }
            Some(AppendFault::Corrupt(page)) => {
                let mut bodies = bodies.to_vec();
                let last = bodies.len() - 1;
                let body = &mut bodies[last.min(page as usize)];
                *body = match &*body {
                    Body::Data(page) => Body::Data(page.torn()),
                    Body::Meta(bytes) => Body::Meta(bytes.torn()),
                };
                self.inner.append(zone, header, spares, &bodies, durable).await
            }
        }
    }

    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        self.check_zone_answers(zone, from_offset)?;
        let found = self.inner.scan(zone, from_offset, epoch).await?;
        Ok(self.without_unreadable(zone, found))
    }

    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>> {
        self.check_zone_answers(zone, 0)?;
        let found = self.inner.scan_spares(zone).await?;
        Ok(self.without_unreadable(zone, found))
    }
}
