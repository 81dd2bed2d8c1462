//! Damage to the medium: a bit, a page, the metadata beside pages, or an append that was reported as done but
//! never written. It occurs while the power is off, or to slots that are being read. It may hit any slot,
//! whatever its content; `writes` computes what that excuses. On a file the stored bytes are damaged, so that
//! content from an earlier opening of the zone can reappear under a header. On flash the result of reads is
//! changed, as an array with error correction would report it.
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageBuf, Payload, Result, Rng, SlotNo, ZoneNo};
use tantalum_media::block_store::LostBlocks;
use tantalum_media::{AppendHeader, Body, ScannedAppend, Spare, ZoneGeometry};

use super::life::{How, PowerOn, SLOT_BITS, Strike};
use super::writes::{ALL, Gone, Tail, Writes};

/// The content of a medium and its damage. Clones share it; it survives power cuts.
pub(super) struct Damage<P>(Option<Rc<RefCell<Marks<P>>>>);

impl<P> Clone for Damage<P> {
    fn clone(&self) -> Self {
        Damage(self.0.clone())
    }
}

struct Marks<P> {
    /// Set once there is a medium.
    writes: Option<Writes<P>>,
    /// The clock of commands, which marks appends.
    commands: Rc<Cell<u64>>,
    /// Number of appends since the power came on, and those that are to be lost.
    appends: u64,
    to_lose: BTreeMap<u64, LostBlocks>,
    /// Number of reads of durable slots since the power came on, and the reads at which the slot decays.
    reads: u64,
    decaying: BTreeSet<u64>,
    /// Whether the device was checked since the power came on, or is new.
    is_checked: bool,
    /// Contents lost so far, including those in zones that were reset since.
    lost: Vec<P>,
    /// Commands may be acknowledged before they are appended.
    acknowledges_early: bool,
    /// For the checks to come: kept until the device was checked.
    tail: Option<Tail<P>>,
    /// Whether damage to slots that were being read may have stopped the device.
    may_stop: bool,
    count: u64,
}

/// The deviations that a damaged medium excuses.
pub(super) struct Excuses<P> {
    /// Lost contents of hosts' pages.
    pub(super) lost: Vec<P>,
    /// The end of the log, if it may look like a cut.
    pub(super) tail: Option<Tail<P>>,
    /// Commands may have been acknowledged before they were appended.
    pub(super) acknowledges_early: bool,
}

/// An append in progress: its start time, and the part of it that is lost.
#[derive(Clone, Copy, Default)]
pub(super) struct Begun {
    at: u64,
    pub(super) lost: Option<LostBlocks>,
}

impl<P: Payload> Damage<P> {
    /// Nothing is damaged, and nothing is kept.
    pub(super) fn never() -> Self {
        Damage(None)
    }

    /// For a new medium. `commands` is the clock of commands. The device `acknowledges_early` if it acknowledges
    /// commands before they are appended, as its memory survives power cuts.
    pub(super) fn new(commands: Rc<Cell<u64>>, acknowledges_early: bool) -> Self {
        Damage(Some(Rc::new(RefCell::new(Marks {
            writes: None,
            commands,
            appends: 0,
            to_lose: BTreeMap::new(),
            reads: 0,
            decaying: BTreeSet::new(),
            is_checked: false,
            lost: Vec::new(),
            acknowledges_early,
            tail: None,
            may_stop: false,
            count: 0,
        }))))
    }

    pub(super) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    fn with<T: Default>(&self, work: impl FnOnce(&mut Marks<P>) -> T) -> T {
        self.0.as_ref().map_or_else(T::default, |state| work(&mut state.borrow_mut()))
    }

    /// The same for the list of writes, if there is a medium.
    fn of<T: Default>(&self, work: impl FnOnce(&mut Writes<P>) -> T) -> T {
        self.with(|state| state.writes.as_mut().map_or_else(T::default, work))
    }

    /// The power comes on: sets the planned losses and decay, counted from now on.
    pub(super) fn power_on(&self, geometry: &ZoneGeometry, power_on: &PowerOn) {
        self.with(|state| {
            state.is_checked = state.writes.is_none();
            state.writes.get_or_insert_with(|| Writes::new(*geometry));
            (state.appends, state.reads) = (0, 0);
            let lost = power_on.lost_writes.iter();
            state.to_lose = lost.map(|lost| (lost.append, lost.part)).collect();
            state.decaying = power_on.decaying_reads.iter().copied().collect();
        });
    }

    /// These slots are being read. Returns the slots whose stored bytes are to be damaged now, with the bit, if
    /// it is a single bit.
    pub(super) fn sense(
        &self,
        on_flash: bool,
        slots: impl Iterator<Item = SlotNo>,
    ) -> Vec<(SlotNo, Option<u32>)> {
        self.with(|state| {
            let mut damaged = Vec::new();
            if !state.decaying.is_empty() {
                slots.for_each(|slot| damaged.extend(state.sense(on_flash, slot)));
            }
            damaged
        })
    }

    /// An append starts.
    pub(super) fn append_begins(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<P>],
    ) -> Begun {
        self.with(|state| {
            let lost = state.to_lose.remove(&state.appends);
            state.appends += 1;
            let mark = state.commands.get();
            let writes = state.writes.as_mut();
            let at = writes.map_or(0, |writes| writes.begin(zone, header, spares, bodies, mark));
            Begun { at, lost }
        })
    }

    /// An append has returned its first slot.
    pub(super) fn append_returned(&self, begun: Begun, first: SlotNo, is_durable: bool) {
        self.of(|writes| writes.returned(begun.at, first, is_durable));
        let Some(part) = begun.lost else { return };
        self.with(|state| {
            let Some(writes) = &mut state.writes else { return };
            let slots = writes.append_at(first);
            let lost = match part {
                LostBlocks::All => slots.len(),
                LostBlocks::First => writes.unit().min(slots.len()),
            };
            slots[..lost].iter().for_each(|slot| writes.lose(*slot, ALL));
            state.count += lost as u64;
        });
    }

    /// A sync starts; returns the time.
    pub(super) fn sync_begins(&self) -> u64 {
        self.of(|writes| writes.sync_begins())
    }

    /// The sync that started at `begun` has returned.
    pub(super) fn synced(&self, begun: u64) {
        self.of(|writes| writes.synced(begun));
    }

    /// An anchor was written.
    pub(super) fn anchored(&self) {
        self.of(Writes::anchored);
    }

    /// The reset of a zone starts.
    pub(super) fn reset_begins(&self, zone: ZoneNo) {
        self.with(Marks::note);
        self.of(|writes| writes.reset_begins(zone));
    }

    /// A zone was reset.
    pub(super) fn reset_done(&self, zone: ZoneNo) {
        self.of(|writes| writes.reset_done(zone));
    }

    /// Zones, with their epochs, in which it is uncertain which writes survived the power cut.
    pub(super) fn uncertain(&self) -> Vec<(ZoneNo, u64)> {
        self.of(|writes| writes.uncertain())
    }

    /// Records the appends that survived there.
    pub(super) fn found(&self, zone: ZoneNo, epoch: u64, found: &[ScannedAppend]) {
        self.of(|writes| writes.found(zone, epoch, found));
    }

    /// The power is off: applies `strike`. Returns the slots whose stored bytes are to be damaged, with the bit,
    /// if it is a single bit.
    pub(super) fn strike(&self, on_flash: bool, strike: Strike) -> Vec<(SlotNo, Option<u32>)> {
        self.with(|state| {
            let Some(writes) = &mut state.writes else { return Vec::new() };
            let slot = writes.place(strike.place);
            state.hit(on_flash, slot, strike.how).into_iter().collect()
        })
    }

    /// All damage was done: computes the end of the log that it excuses.
    pub(super) fn struck(&self) {
        self.with(Marks::excuse_tail);
    }

    /// The device was checked: its present content is the new baseline.
    pub(super) fn verified(&self) {
        self.with(|state| {
            (state.tail, state.is_checked, state.may_stop) = (None, true, false);
            state.writes.iter_mut().for_each(Writes::verified);
        });
    }

    /// The deviations that are excused.
    pub(super) fn excuses(&self) -> Excuses<P> {
        let none = Excuses { lost: Vec::new(), tail: None, acknowledges_early: false };
        self.0.as_ref().map_or(none, |state| {
            let mut state = state.borrow_mut();
            state.note();
            let (lost, tail) = (state.lost.clone(), state.tail.clone());
            Excuses { lost, tail, acknowledges_early: state.acknowledges_early }
        })
    }

    /// Whether the end of the log may look like a cut.
    pub(super) fn may_hide_end(&self) -> bool {
        self.with(|state| state.tail.is_some())
    }

    /// Whether opening may be refused, or the device may latch.
    pub(super) fn may_refuse(&self) -> bool {
        self.with(|state| state.may_stop) || self.of(|writes| writes.may_refuse())
    }

    /// Number of slots that were damaged so far.
    pub(super) fn count(&self) -> u64 {
        self.with(|state| state.count)
    }

    /// Changes the result of a read on flash: `out` and the spares were read from `slots`.
    ///
    /// # Errors
    /// `Uncorrectable` if one of them cannot be read.
    pub(super) fn spoil(
        &self,
        slots: &[SlotNo],
        out: &mut [P],
        spares: &mut [Option<Spare>],
    ) -> Result<()> {
        let spoiled = self.of(|writes| {
            for (index, slot) in slots.iter().enumerate() {
                match writes.gone(*slot) {
                    ALL => return Some(uncorrectable(*slot)),
                    Gone { content: true, .. } => out[index] = out[index].torn(),
                    Gone { spare: true, .. } => {
                        spares.iter_mut().skip(index).take(1).for_each(|spare| *spare = None);
                    }
                    _ => {}
                }
            }
            None
        });
        spoiled.map_or(Ok(()), Err)
    }

    /// The same for the device's own pages.
    pub(super) fn spoil_own(&self, slot: SlotNo, page: PageBuf) -> Result<PageBuf> {
        match self.of(|writes| writes.gone(slot)) {
            ALL => Err(uncorrectable(slot)),
            Gone { content: true, .. } => Ok(page.torn()),
            _ => Ok(page),
        }
    }

    /// Changes the result of a scan of `zone` on flash, which `found` has.
    pub(super) fn spoil_scan(
        &self,
        geometry: &ZoneGeometry,
        zone: ZoneNo,
        found: &mut Vec<ScannedAppend>,
    ) {
        self.of(|writes| {
            if writes.all_gone().is_empty() {
                return;
            }
            found.retain_mut(|append| {
                let mut is_found = false;
                let ScannedAppend { spares, damaged, .. } = append;
                for (index, (offset, spare)) in
                    (0..).zip((append.first_offset..).zip(spares.iter_mut()))
                {
                    let gone = writes.gone(geometry.slot(zone, offset));
                    // The header is stored beside each page.
                    is_found |= !gone.spare;
                    if gone != Gone::default() {
                        let written = spare.take().filter(|_| !gone.spare);
                        damaged.extend(written.map(|spare| (index, spare)));
                    }
                }
                damaged.retain(|(index, _)| {
                    !writes.gone(geometry.slot(zone, append.first_offset + index)).spare
                });
                is_found
            });
        });
    }

    /// Whether the spare of the zone's first page can be read on flash.
    pub(super) fn is_first_intact(&self, geometry: &ZoneGeometry, zone: ZoneNo) -> bool {
        !self.of(|writes| writes.gone(geometry.slot(zone, 0)).spare)
    }
}

impl<P: Payload> Marks<P> {
    /// A slot is being read: returns the damage that is due.
    fn sense(&mut self, on_flash: bool, slot: SlotNo) -> Option<(SlotNo, Option<u32>)> {
        self.writes.as_ref().filter(|writes| writes.is_durable(slot))?;
        let number = self.reads;
        self.reads += 1;
        if !self.decaying.remove(&number) {
            return None;
        }
        let mut rng = Rng::split(number, "decay");
        // More often near the beginning, where most of the device's own pages have all their information.
        let bit = rng.below(u64::from(SLOT_BITS)) >> rng.below(10);
        let how = if rng.chance(0.3) { How::Wipe } else { How::Flip(bit as u32) };
        let damaged = self.hit(on_flash, slot, how);
        self.may_stop |= self.writes.as_ref().is_some_and(Writes::may_refuse);
        // A device in service remembers the end of its log, so it does not read it from the medium.
        if !self.is_checked {
            self.excuse_tail();
        }
        damaged
    }

    /// Damages a slot; returns the slot whose stored bytes are to be damaged, and the bit, if it is a single
    /// bit.
    fn hit(&mut self, on_flash: bool, slot: SlotNo, how: How) -> Option<(SlotNo, Option<u32>)> {
        let writes = self.writes.as_mut()?;
        let unit = writes.unit() as u32;
        let flash_page = || (0..unit).map(move |at| SlotNo(slot.0 / unit * unit + at));
        let before = writes.all_gone().clone();
        let damaged = match how {
            How::Flip(_) if on_flash => {
                writes.lose(slot, Gone { content: true, spare: false });
                None
            }
            How::Wipe if on_flash => {
                flash_page().for_each(|slot| writes.lose(slot, ALL));
                None
            }
            How::Spare if on_flash => {
                let gone = Gone { content: false, spare: true };
                flash_page().for_each(|slot| writes.lose(slot, gone));
                None
            }
            How::Flip(bit) => {
                writes.lose(slot, ALL);
                Some((slot, Some(bit)))
            }
            How::Wipe => {
                writes.lose(slot, ALL);
                Some((slot, None))
            }
            How::Spare => {
                let header = writes.append_at(slot).first().copied().unwrap_or(slot);
                writes.lose(header, ALL);
                Some((header, None))
            }
        };
        // Contents that the last check saw must stay. If no append since then says that they were durable, their
        // end may look like a cut, and the contents before them are not known any more: so this damage is
        // undone.
        if writes.tail().is_some_and(|tail| tail.from == 0) {
            writes.mend(before);
            return None;
        }
        self.count += 1;
        damaged
    }

    /// Records the contents lost by now, and the end of the log that may look like a cut.
    fn excuse_tail(&mut self) {
        self.note();
        let Some(new) = self.writes.as_ref().and_then(Writes::tail) else { return };
        self.lost.extend(new.given_up.iter().cloned());
        match &mut self.tail {
            Some(tail) => {
                tail.from = tail.from.min(new.from);
                tail.contents.extend(new.contents);
                tail.has_records |= new.has_records;
            }
            tail @ None => *tail = Some(new),
        }
    }

    /// Records the contents lost by now.
    fn note(&mut self) {
        let Some(writes) = self.writes.as_ref().filter(|writes| !writes.all_gone().is_empty())
        else {
            return;
        };
        for content in writes.lost() {
            if !self.lost.contains(&content) {
                self.lost.push(content);
            }
        }
    }
}

fn uncorrectable(slot: SlotNo) -> Error {
    Error::new(ErrorKind::Uncorrectable, format!("{slot:?} is damaged"))
}
