//! Contents that decay: which reads meet it, and what may be lost by it.
//!
//! Decay strikes when something is read, and stays until the zone is reset: on flash the page is an
//! error from then on, or reads as other content than its spare tells; on a file it reads as other
//! content. It strikes only what a log can tell from an end that was cut short: where nothing on media
//! says yet that a change was durable, its decay is a cut before it (`docs/durability.md`).
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageBuf, Payload, Result, SlotNo, Version, ZoneNo};
use tantalum_media::{AppendHeader, Body, ScannedAppend, SlotKind, Spare, ZoneGeometry};

/// What a medium holds, what of it has decayed, and what was lost by that. Clones name the same one;
/// it outlives the dark.
pub(super) struct Decay<P>(Option<Rc<RefCell<State<P>>>>);

impl<P> Clone for Decay<P> {
    fn clone(&self) -> Self {
        Decay(self.0.clone())
    }
}

struct State<P> {
    /// By first slot. Only appends that returned are here.
    appends: BTreeMap<u32, Append<P>>,
    decayed: BTreeMap<SlotNo, Decayed<P>>,
    /// Reads since the power came on, of one slot each, and which of them find decay.
    reads: u64,
    scripted: BTreeSet<u64>,
    /// So many are to strike what is read next that they may strike.
    due: u32,
    /// Contents of hosts' pages that may be gone.
    lost: Vec<P>,
    /// Something of the device's own decayed.
    own: bool,
    count: u64,
    clock: u64,
    /// When each checkpoint was begun; and the same of those that were finished.
    begun: BTreeMap<u64, Begun>,
    finished: BTreeMap<u64, Begun>,
}

/// An append that returned.
struct Append<P> {
    header: AppendHeader,
    spares: Vec<Spare>,
    bodies: Vec<Body<P>>,
    done: u64,
    is_durable: bool,
}

/// When a checkpoint was begun.
#[derive(Clone, Copy)]
struct Begun {
    at: u64,
    /// Up to where its first page said that all was durable.
    durable: Version,
}

/// A slot that has decayed.
struct Decayed<P> {
    /// The page that it held, as it was written or as a copy; `None` for what is no host's.
    page: Option<P>,
    /// When it was written.
    done: u64,
}

impl<P: Payload> Decay<P> {
    /// Nothing decays, and nothing is kept.
    pub(super) fn never() -> Self {
        Decay(None)
    }

    /// Of a new medium.
    pub(super) fn new() -> Self {
        Decay(Some(Rc::new(RefCell::new(State {
            appends: BTreeMap::new(),
            decayed: BTreeMap::new(),
            reads: 0,
            scripted: BTreeSet::new(),
            due: 0,
            lost: Vec::new(),
            own: false,
            count: 0,
            clock: 0,
            begun: BTreeMap::new(),
            finished: BTreeMap::new(),
        }))))
    }

    fn with<T: Default>(&self, work: impl FnOnce(&mut State<P>) -> T) -> T {
        self.0.as_ref().map_or_else(T::default, |state| work(&mut state.borrow_mut()))
    }

    /// Power comes on; decay strikes at `reads`, counted from now on, or at the first behind each that
    /// it may strike. What was not durable may be gone: nothing more is known of it.
    pub(super) fn power_on(&self, reads: &[u64]) {
        self.with(|state| {
            (state.reads, state.due) = (0, 0);
            state.scripted = reads.iter().copied().collect();
            state.appends.retain(|_, append| append.is_durable);
        });
    }

    /// Contents that may be gone.
    pub(super) fn lost(&self) -> Vec<P> {
        self.with(|state| state.lost.clone())
    }

    /// Slots that have decayed so far, also where they were reset since.
    pub(super) fn count(&self) -> u64 {
        self.with(|state| state.count)
    }

    /// Whether something decayed that only the device itself has use for: it may latch.
    pub(super) fn has_own(&self) -> bool {
        self.with(|state| state.own)
    }

    /// Whether opening the device may be refused: something has decayed that recovery needs. Pages of
    /// hosts, which `is_hosts` knows, that are in two checkpoints are none of that.
    pub(super) fn may_refuse(&self, is_hosts: impl Fn(&P) -> bool) -> bool {
        self.with(|state| {
            state.decayed.values().any(|decayed| {
                !decayed.page.as_ref().is_some_and(&is_hosts) || !state.is_covered(decayed.done)
            })
        })
    }

    /// An append starts.
    pub(super) fn append_starts(&self, header: &AppendHeader, spares: &[Spare]) {
        self.with(|state| {
            state.clock += 1;
            let begun = Begun { at: state.clock, durable: header.durable };
            for spare in spares.iter().filter(|spare| spare.kind == SlotKind::Checkpoint) {
                state.begun.entry(spare.version.0).or_insert(begun);
            }
        });
    }

    /// An append has returned its first slot.
    pub(super) fn append_done(
        &self,
        first: SlotNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<P>],
        is_durable: bool,
    ) {
        self.with(|state| {
            state.clock += 1;
            // A footer is durable when it returns, all before it is only synced.
            let footer = spares.iter().find(|one| one.kind == SlotKind::Checkpoint && is_durable);
            if let Some(id) = footer.map(|spare| spare.version.0)
                && let Some(begun) = state.begun.get(&id)
            {
                state.finished.insert(id, *begun);
            }
            let (spares, bodies) = (spares.to_vec(), bodies.to_vec());
            let append = Append { header: *header, spares, bodies, done: state.clock, is_durable };
            state.appends.insert(first.0, append);
        });
    }

    /// A sync starts; when.
    pub(super) fn sync_starts(&self) -> u64 {
        self.with(|state| state.clock)
    }

    /// The sync that started at `started` has returned.
    pub(super) fn sync_done(&self, started: u64) {
        self.with(|state| {
            let appends = state.appends.values_mut();
            appends.filter(|one| one.done <= started).for_each(|one| one.is_durable = true);
        });
    }

    /// A zone is being reset: what it held may be gone.
    pub(super) fn reset_starts(&self, geometry: &ZoneGeometry, zone: ZoneNo) {
        self.with(|state| {
            state.appends.retain(|first, _| geometry.zone_of(SlotNo(*first)) != zone);
        });
    }

    /// A zone was reset: nothing in it is decayed any more.
    pub(super) fn reset_done(&self, geometry: &ZoneGeometry, zone: ZoneNo) {
        self.with(|state| state.decayed.retain(|slot, _| geometry.zone_of(*slot) != zone));
    }

    /// These slots are being read: decay strikes where it is due.
    pub(super) fn sense(&self, geometry: &ZoneGeometry, slots: impl Iterator<Item = SlotNo>) {
        self.with(|state| slots.for_each(|slot| state.sense(geometry, slot)));
    }

    /// What hosts' pages are read as, of which `out` was read from `slots`.
    ///
    /// # Errors
    /// `Uncorrectable`, where one of them has decayed to that.
    pub(super) fn spoil(&self, on_flash: bool, slots: &[SlotNo], out: &mut [P]) -> Result<()> {
        self.with(|state| {
            for (slot, page) in slots.iter().zip(out).filter(|(slot, _)| state.is_decayed(slot)) {
                if on_flash && slot.0 / 2 % 2 == 0 {
                    return Some(uncorrectable(*slot));
                }
                *page = page.torn();
            }
            None
        })
        .map_or(Ok(()), Err)
    }

    /// The same of bytes of the device's own.
    pub(super) fn spoil_own(
        &self,
        on_flash: bool,
        slot: SlotNo,
        mut page: PageBuf,
    ) -> Result<PageBuf> {
        if !self.with(|state| state.is_decayed(&slot)) {
            return Ok(page);
        }
        if on_flash {
            return Err(uncorrectable(slot));
        }
        // One bit, where records have the first page that they change.
        page.make_mut()[16] ^= 1;
        Ok(page)
    }

    /// What a scan of `zone` finds, of which `found` is there.
    pub(super) fn spoil_scan(
        &self,
        on_flash: bool,
        geometry: &ZoneGeometry,
        zone: ZoneNo,
        found: &mut Vec<ScannedAppend>,
    ) {
        self.with(|state| {
            if state.decayed.is_empty() {
                return;
            }
            found.retain_mut(|append| {
                let mut decayed = 0;
                let ScannedAppend { first_offset, spares, damaged, .. } = append;
                for (index, spare) in (0..).zip(spares.iter_mut()) {
                    if state.is_decayed(&geometry.slot(zone, *first_offset + index)) {
                        // What was written a file's header still says.
                        let written = spare.take().filter(|_| !on_flash);
                        damaged.extend(written.map(|spare| (index, spare)));
                        decayed += 1;
                    }
                }
                // On flash the header goes with the pages, each of which carries it.
                !(on_flash && decayed == append.spares.len())
            });
        });
    }

    /// Whether the zone's first slot can be read.
    pub(super) fn is_first_intact(&self, geometry: &ZoneGeometry, zone: ZoneNo) -> bool {
        !self.with(|state| state.is_decayed(&geometry.slot(zone, 0)))
    }
}

fn uncorrectable(slot: SlotNo) -> Error {
    Error::new(ErrorKind::Uncorrectable, format!("{slot:?} has decayed"))
}

/// Answers that tell of decay.
pub(super) fn is_decay(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Uncorrectable | ErrorKind::Checksum | ErrorKind::Corrupt)
}

impl<P: Payload> State<P> {
    fn is_decayed(&self, slot: &SlotNo) -> bool {
        self.decayed.contains_key(slot)
    }

    fn sense(&mut self, geometry: &ZoneGeometry, slot: SlotNo) {
        self.due += u32::from(self.scripted.remove(&self.reads));
        self.reads += 1;
        if self.due == 0 || self.is_decayed(&slot) {
            return;
        }
        // All that is programmed together decays together.
        let unit = geometry.append_unit_slots;
        let first = slot.0 / unit * unit;
        let unit: Vec<SlotNo> = (first..first + unit).map(SlotNo).collect();
        // One at a time: what else has decayed may be what another one is known by.
        let is_settled =
            self.decayed.values().all(|other| other.page.is_some() && self.is_covered(other.done));
        if !is_settled || !self.may_strike(geometry, &unit) {
            return;
        }
        self.due -= 1;
        for slot in unit {
            self.strike(slot);
        }
    }

    /// Whether what was written at `done` is in two checkpoints, from first to last.
    fn is_covered(&self, done: u64) -> bool {
        self.finished.values().filter(|begun| begun.at > done).count() >= 2
    }

    /// Versions up to this one are in a checkpoint that is in force.
    fn covered(&self) -> Version {
        let before = self.finished.values().rev().nth(1);
        before.map_or(Version(0), |begun| begun.durable)
    }

    /// The append that `slot` belongs to, and which page of it.
    fn append_of(&self, slot: SlotNo) -> Option<(u32, &Append<P>, usize)> {
        let (first, append) = self.appends.range(..=slot.0).next_back()?;
        let index = (slot.0 - first) as usize;
        (index < append.spares.len()).then_some((*first, append, index))
    }

    /// Whether a recovery can tell the decay of these slots, of one append, from an end cut short.
    fn may_strike(&self, geometry: &ZoneGeometry, slots: &[SlotNo]) -> bool {
        let mut found = slots.iter().filter_map(|slot| self.append_of(*slot)).peekable();
        let Some(&(first, append, _)) = found.peek() else { return false };
        let is_whole = |first: u32, append: &Append<P>| {
            let slots = (first..).map(SlotNo).take(append.spares.len());
            slots.filter(|slot| self.is_decayed(slot)).count() == 0
        };
        // What stays on media says up to where all was durable.
        let says = |(at, other): (&u32, &Append<P>)| {
            let counts = other.is_durable && *at != first && is_whole(*at, other);
            let is_dump = other.spares.iter().any(|spare| spare.kind == SlotKind::Dump);
            if counts && !is_dump { other.header.durable } else { Version(0) }
        };
        let stated = self.appends.iter().map(says).max().unwrap_or(Version(0));
        let header = &append.header;
        let batch_last =
            Version((header.batch_first.0 + u64::from(header.batch_len)).saturating_sub(1));
        // Of an append that is gone to the last page only those behind it in the zone tell.
        let offset = geometry.offset_of(SlotNo(first));
        let is_followed = self.appends.range(first + 1..).any(|(at, other)| {
            geometry.zone_of(SlotNo(*at)) == geometry.zone_of(SlotNo(first))
                && other.is_durable
                && is_whole(*at, other)
                && other.header.zone_durable_slots > offset
        });
        append.is_durable
            && header.durable <= stated
            && (is_followed || self.is_covered(append.done))
            && found.all(|(_, append, index)| {
                let spare = &append.spares[index];
                match spare.kind {
                    SlotKind::Data => batch_last <= stated,
                    SlotKind::Record => spare.version == Version::NEVER || batch_last <= stated,
                    SlotKind::Checkpoint => self.is_checkpoint_held(geometry, slots[0], spare),
                    // Where no checkpoint knows the page, nobody misses the copy.
                    SlotKind::Copy | SlotKind::TakenCopy => {
                        spare.version <= self.covered() || self.is_covered(append.done)
                    }
                    SlotKind::Delta | SlotKind::Dump => true,
                }
            })
    }

    /// Whether another page tells that this one, at `slot`, of a checkpoint was there.
    fn is_checkpoint_held(&self, geometry: &ZoneGeometry, slot: SlotNo, spare: &Spare) -> bool {
        let zone = geometry.zone_of(slot);
        self.appends.iter().filter(|(_, append)| append.is_durable).any(|(first, append)| {
            append.spares.iter().zip(*first..).any(|(other, at)| {
                let at = SlotNo(at);
                let is_next =
                    other.version > spare.version && geometry.zone_of(at) == zone && at > slot;
                let is_later = other.version == spare.version && other.page > spare.page;
                other.kind == SlotKind::Checkpoint
                    && (is_next || is_later)
                    && at.0.abs_diff(slot.0) > 1
                    && !self.is_decayed(&at)
            })
        })
    }

    fn strike(&mut self, slot: SlotNo) {
        let Some((_, append, index)) = self.append_of(slot) else { return };
        let (spare, done) = (append.spares[index], append.done);
        let page = |body: &Body<P>| match body {
            Body::Data(page) => Some(page.clone()),
            Body::Meta(_) => None,
        };
        let content = page(&append.bodies[index]);
        // A page of sharers says which pages its append's copies are, beside their own.
        let is_sharers = spare.kind == SlotKind::Record && spare.version == Version::NEVER;
        let copies: Vec<P> = append.bodies.iter().filter(|_| is_sharers).filter_map(page).collect();
        let is_page = spare.kind.is_page() && content.is_some();
        self.own |= !is_page;
        self.count += 1;
        self.lost.extend(content.clone().into_iter().chain(copies));
        self.decayed.insert(slot, Decayed { page: content.filter(|_| is_page), done });
    }
}
