//! The FTL's state, and what its flows share.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageBuf, PageNo, Payload, Result, SlotNo, Version, ZoneNo};
use tantalum_media::{Body, SlotKind, Spare, ZoneGeometry, ZoneMedia};
use tantalum_policy::Cleaning;
use tantalum_policy::cleaning::Candidate;
use tantalum_runtime::sync::{Semaphore, WaitQueue};

use crate::anchor::Anchors;
use crate::cleaner_rest::CleanerRest;
use crate::deltas::Deltas;
use crate::dump::Layout;
use crate::durable::DurableTracker;
use crate::fault_points::Fault;
use crate::live_records::LiveRecords;
use crate::logged::LoggedVersions;
use crate::map::{Entry, Mapping, Place};
use crate::options::{FtlOptions, reserve_zones};
use crate::readers::ZoneReaders;
use crate::statistics::FtlStatistics;
use crate::zones::Zones;

/// A page-mapping FTL over `M`. One thread; calls may be in flight together.
///
/// `write` and `trim` must be driven to their end: dropping one midway (other than at a power
/// cut) leaves a hole in the sequence of versions, behind which nothing becomes durable.
pub struct Ftl<M: ZoneMedia> {
    pub(crate) media: M,
    pub(crate) geometry: ZoneGeometry,
    pub(crate) options: FtlOptions,
    /// Zones that hosts may not fill.
    pub(crate) reserve_zones: u32,
    /// What a dump at a power loss may take; all zero where there is no energy for one.
    pub(crate) layout: Layout,
    pub(crate) state: RefCell<State<M::Page>>,
    /// One batch at a time takes its versions and its places.
    pub(crate) log_turn: Semaphore,
    /// One anchor at a time.
    pub(crate) anchor_turn: Semaphore,
    /// One checkpoint at a time.
    pub(crate) checkpoint_turn: Semaphore,
    pub(crate) sync_turns: SyncTurns,
    /// Reads of several pages in flight.
    pub(crate) readers: ZoneReaders,
    /// Frames of the dump in force, until they are taken to be written back.
    pub(crate) restored: RefCell<Vec<(PageNo, M::Page)>>,
    /// Cleaning and checkpoints that wait for hosts' appends to become durable.
    pub(crate) waiting_for_hosts: Cell<u32>,
    /// Chooses what is cleaned.
    pub(crate) victims: RefCell<Victims>,
    /// What cleaning moves now is cold and goes to worn zones.
    pub(crate) levelling: Cell<bool>,
    /// Zones were freed, or cleaning found that it cannot free any.
    pub(crate) room: WaitQueue,
    /// Something changed that cleaning looks at.
    pub(crate) cleaning_wanted: WaitQueue,
    pub(crate) cleaner_rest: CleanerRest,
    /// The durable watermark rose, or the FTL latched.
    pub(crate) durable_rose: WaitQueue,
    /// Enough was appended for another checkpoint.
    pub(crate) checkpoint_wanted: WaitQueue,
    /// One append at a time to the meta stream.
    pub(crate) meta_turn: Semaphore,
    /// Who waits until more mapping entries may change.
    pub(crate) entries_wanted: Cell<u32>,
    /// Changed entries were written, or made void.
    pub(crate) entries_room: WaitQueue,
    /// Changed entries near their limit.
    pub(crate) backup_wanted: WaitQueue,
}

/// The cleaning policy, and what it chose from last, for its memory.
pub(crate) struct Victims {
    pub policy: Box<dyn Cleaning>,
    pub candidates: Vec<Candidate>,
}

/// Everything that changes.
pub(crate) struct State<P> {
    pub map: Mapping,
    pub zones: Zones,
    pub tracker: DurableTracker,
    pub next_version: Version,
    /// The highest version whose append has returned.
    pub returned: Version,
    /// Reset zones that the next batches of the host stream will open.
    pub prepared: Vec<ZoneNo>,
    /// Record pages that no checkpoint covers.
    pub records: LiveRecords,
    /// Which changes since the checkpoint in force each zone holds.
    pub logged: LoggedVersions,
    /// Where the checkpoint in force lies.
    pub checkpoint_places: Vec<SlotNo>,
    /// The checkpoint that was begun last.
    pub checkpoint_id: u64,
    pub checkpoint_in_force: u64,
    /// The durable watermark that the checkpoint in force says.
    pub checkpoint_says: Version,
    /// A checkpoint was begun and its footer is not durable (yet, or for ever).
    pub checkpoint_unfinished: bool,
    pub slots_since_checkpoint: u64,
    /// The first failure of the log; writes are refused from then on.
    pub latched: Option<Error>,
    /// Cleaning found no zone that would give room; reset when something is invalidated.
    pub cleaning_stuck: bool,
    /// A zone with a program failure is to be emptied, however much room there is.
    pub evacuation_wanted: bool,
    /// What the medium's anchors say.
    pub anchors: Anchors,
    /// Zone openings when the last checkpoint was begun.
    pub checkpoint_epoch: u64,
    /// Changes since the checkpoint in force.
    pub deltas: Deltas,
    /// Shares that are not durable yet, or build on one: the page, what it was, and their version.
    pub shares_in_flight: Vec<(PageNo, Entry, Version)>,
    /// Shares of batches of which other pages are still being written, as above: nobody sees them.
    pub shares_unseen: Vec<(PageNo, Entry, Version)>,
    /// Pages that cleaning moved from the zone that it empties, what they were before, and their copies: until
    /// these are durable.
    pub copied: Vec<(PageNo, Entry, SlotNo)>,
    /// A dump of which something is not durable elsewhere yet.
    pub dump_in_force: Option<u64>,
    /// Dumps up to this one are void: the mapping entries, and the rest.
    pub dumps_void: DumpsVoid,
    /// Slots that recovering again from the dump in force needs, until its mapping is durable.
    pub pinned: Vec<SlotNo>,
    pub statistics: FtlStatistics,
    /// Buffers to use again.
    pub buffers: Vec<AppendBuffer<P>>,
}

/// Up to which dump nothing counts any more, as checkpoints say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpsVoid {
    /// Mapping entries up to this dump are in a checkpoint.
    pub mapping: u64,
    /// So are the frames, written back.
    pub frames: u64,
}

/// What one append holds.
pub(crate) struct AppendBuffer<P> {
    pub spares: Vec<Spare>,
    pub bodies: Vec<Body<P>>,
}

impl<P: Payload> AppendBuffer<P> {
    /// Adds a page that a host writes; its version comes with its place.
    pub fn push_data(&mut self, page: PageNo, content: P) {
        let (version, checksum) = (Version::NEVER, content.checksum());
        self.spares.push(Spare { kind: SlotKind::Data, page, version, checksum });
        self.bodies.push(Body::Data(content));
    }

    /// Adds a page of records.
    pub fn push_record(&mut self, body: PageBuf, version: Version) {
        let (page, checksum) = (PageNo(0), body.checksum());
        self.spares.push(Spare { kind: SlotKind::Record, page, version, checksum });
        self.bodies.push(Body::Meta(body));
    }
}

/// Lets concurrent syncs share one.
#[derive(Default)]
pub(crate) struct SyncTurns {
    pub running: Cell<bool>,
    pub started: Cell<u64>,
    pub done: Cell<u64>,
}

impl<M: ZoneMedia> Ftl<M> {
    /// An empty FTL on `media`, in memory; `format` and `recover` make it real.
    pub(crate) fn blank(media: M, options: FtlOptions) -> Result<Self> {
        let geometry = media.geometry();
        let retired = media.retired();
        let layout = options.layout(&geometry)?;
        let slots = u64::from(geometry.zones) * u64::from(geometry.slots_per_zone);
        Ok(Ftl {
            media,
            geometry,
            options,
            reserve_zones: reserve_zones(&geometry, options.pages) + layout.delta_zones,
            layout,
            state: RefCell::new(State {
                map: Mapping::new(options.pages, slots, !M::READS_SPARES),
                zones: Zones::new(geometry, &retired),
                tracker: DurableTracker::new(Version::NEVER),
                next_version: Version(1),
                returned: Version::NEVER,
                prepared: Vec::new(),
                records: LiveRecords::default(),
                logged: LoggedVersions::new(geometry.zones),
                checkpoint_places: Vec::new(),
                checkpoint_id: 0,
                checkpoint_in_force: 0,
                checkpoint_says: Version::NEVER,
                checkpoint_unfinished: false,
                slots_since_checkpoint: 0,
                latched: None,
                cleaning_stuck: false,
                evacuation_wanted: false,
                anchors: Anchors::new(geometry.zones),
                checkpoint_epoch: 0,
                deltas: Deltas::new(options.dump.map(|_| &layout), options.pages),
                shares_in_flight: Vec::new(),
                shares_unseen: Vec::new(),
                copied: Vec::new(),
                dump_in_force: None,
                dumps_void: DumpsVoid::default(),
                pinned: Vec::new(),
                statistics: FtlStatistics::default(),
                buffers: Vec::new(),
            }),
            log_turn: Semaphore::new("the log's turn", 1),
            anchor_turn: Semaphore::new("the anchors' turn", 1),
            checkpoint_turn: Semaphore::new("the checkpoint's turn", 1),
            sync_turns: SyncTurns::default(),
            readers: ZoneReaders::new(geometry),
            restored: RefCell::default(),
            waiting_for_hosts: Cell::new(0),
            victims: RefCell::new(Victims {
                policy: options.cleaning.build(),
                candidates: Vec::new(),
            }),
            levelling: Cell::new(false),
            room: WaitQueue::new("free zones"),
            cleaning_wanted: WaitQueue::new("something to clean"),
            cleaner_rest: CleanerRest::default(),
            durable_rose: WaitQueue::new("durability"),
            checkpoint_wanted: WaitQueue::new("a checkpoint being due"),
            meta_turn: Semaphore::new("the meta stream's turn", 1),
            entries_wanted: Cell::new(0),
            entries_room: WaitQueue::new("room for changed mapping entries"),
            backup_wanted: WaitQueue::new("changed mapping entries to write"),
        })
    }

    /// Makes a new FTL on `media`: writes the first checkpoint, durably.
    ///
    /// # Errors
    /// `InvalidInput` where the options do not fit the geometry.
    pub async fn format(media: M, options: FtlOptions) -> Result<Rc<Self>> {
        options.check(&media.geometry(), media.retired().len() as u32)?;
        if options.read_only {
            return Err(read_only());
        }
        let ftl = Rc::new(Ftl::blank(media, options)?);
        // Their numbers go on.
        ftl.find_era().await?;
        ftl.set_dump_zones_aside()?;
        ftl.checkpoint().await?;
        ftl.clear_dump_area().await?;
        ftl.end_era().await?;
        Ok(ftl)
    }

    /// The medium.
    pub fn media(&self) -> &M {
        &self.media
    }

    /// What it was made with.
    pub fn options(&self) -> &FtlOptions {
        &self.options
    }

    /// Zones that hosts may not fill.
    pub fn reserve_zones(&self) -> u32 {
        self.reserve_zones
    }

    /// Pages that one batch may have and still find room between two cleanings, with as many zones
    /// as are left now: ask again when the FTL is opened again.
    pub fn batch_pages_max(&self) -> u32 {
        let packed = u64::from(crate::options::packed_slots(&self.geometry));
        let state = self.state.borrow();
        let usable = u64::from(
            self.geometry
                .zones
                .saturating_sub(self.reserve_zones + self.layout.zones)
                .saturating_sub(state.zones.retired_count() + 4),
        );
        let spare = (usable * packed).saturating_sub(self.options.pages);
        (spare / 2).clamp(1, u64::from(u32::MAX / 2)) as u32
    }

    /// Counters since opening.
    pub fn statistics(&self) -> FtlStatistics {
        let state = self.state.borrow();
        let zones = || state.zones.iter().map(|(_, zone)| zone);
        FtlStatistics {
            zones_free: state.zones.free_count() + state.prepared.len() as u32,
            zones_retired: state.zones.retired_count(),
            zone_resets_min_max: (
                zones().map(|zone| zone.resets).min().unwrap_or(0),
                zones().map(|zone| zone.resets).max().unwrap_or(0),
            ),
            pages_mapped: state.map.mapped_pages(),
            mapping_bytes: state.map.memory_bytes(),
            shared_slots: state.map.sharers().slots(),
            shared_entries: state.map.sharers().entries(),
            shared_bytes: state.map.sharers().memory_bytes(),
            changed_entries: state.deltas.held(),
            changed_entries_max: state.deltas.held_max(),
            delta_pages: state.deltas.pages_written(),
            dump_budget_bytes: self.options.dump.map_or(0, |dump| dump.budget_bytes),
            ..state.statistics
        }
    }

    /// Whether `page` holds content.
    pub fn is_mapped(&self, page: PageNo) -> bool {
        self.state.borrow().map.get(page).place != Place::Unmapped
    }

    /// Refuses where an earlier failure of the log latched the FTL, or where it is read only.
    pub(crate) fn check_latch(&self) -> Result<()> {
        match &self.state.borrow().latched {
            None => Ok(()),
            Some(first) if first.kind() == ErrorKind::ReadOnly => Err(first.clone()),
            Some(first) => Err(Error::with_source(
                ErrorKind::Latched,
                "writes are refused until the volume is opened again, after an earlier failure",
                first.clone(),
            )),
        }
    }

    /// Refuses writes from now on, because of `error`, and tells whoever waits.
    pub(crate) fn latch(&self, error: &Error) {
        {
            let state = &mut *self.state.borrow_mut();
            state.latched.get_or_insert_with(|| error.clone());
            if !Fault::CopiesNotTakenBack.is_planted() {
                state.take_copies_back();
            }
        }
        self.room.wake_all();
        self.durable_rose.wake_all();
        self.cleaning_wanted.wake_all();
        self.checkpoint_wanted.wake_all();
        self.entries_room.wake_all();
        self.backup_wanted.wake_all();
    }

    /// Refuses writes from now on, because it was opened to be read only.
    pub(crate) fn refuse_changes(&self) {
        self.latch(&read_only());
    }

    /// Why the FTL refuses writes, if it does: `ReadOnly` where it was opened so.
    pub fn latched(&self) -> Option<Error> {
        self.state.borrow().latched.clone()
    }
}

fn read_only() -> Error {
    Error::new(ErrorKind::ReadOnly, "it is open read-only: nothing is changed")
}

impl<P> State<P> {
    /// Puts `entry` in force where it is newer than what is known; keeps the live counts.
    /// Returns whether it was.
    pub fn apply(&mut self, page: PageNo, entry: Entry) -> bool {
        if entry.version <= self.map.get(page).version {
            return false;
        }
        self.replace(page, entry);
        true
    }

    /// A batch was answered in which `page` is as `entry` says: puts that in force where no newer
    /// change is.
    pub fn answered(&mut self, page: PageNo, entry: Entry) {
        // Where a share wrote it again, cleaning may have moved what is taken back with it.
        for (left, before, version) in &mut self.shares_in_flight {
            if (*left, *version) == (page, entry.version) {
                *before = self.map.get(page);
            }
        }
        if !self.apply(page, entry) {
            self.came_late(page, entry);
        }
    }

    /// The change `entry` of `page` was answered when a newer one was in force already. A power cut
    /// may undo that one, and a share that fails: then this is what is there.
    pub fn came_late(&mut self, page: PageNo, entry: Entry) {
        if let Place::At(slot) = entry.place {
            let newer = self.map.get(page).version;
            self.zones.replaced(slot, newer);
        }
        for shares in [&mut self.shares_in_flight, &mut self.shares_unseen] {
            for (left, before, version) in shares {
                if *left == page && before.version < entry.version && entry.version < *version {
                    *before = entry;
                }
            }
        }
    }

    /// Puts `entry` in force; keeps the live counts, and notes the change.
    pub fn replace(&mut self, page: PageNo, entry: Entry) {
        self.deltas.mark(page);
        self.put(page, entry);
    }

    /// What readers see of `page`.
    #[inline]
    pub fn visible(&self, page: PageNo) -> Entry {
        let mut entry = self.map.get(page);
        for (unseen, before, version) in self.shares_unseen.iter().rev() {
            if (*unseen, *version) == (page, entry.version) {
                entry = *before;
            }
        }
        entry
    }

    /// Puts `entry` in force; keeps the live counts. The change is noted otherwise.
    pub fn put(&mut self, page: PageNo, entry: Entry) {
        let change = self.map.set(page, entry);
        if let Some(left) = change.left {
            self.zones.left(left, entry.version, change.left_alive);
            self.cleaning_stuck = false;
        }
        if let Place::At(slot) = entry.place {
            if change.joined {
                self.zones.joined(slot, entry.version);
            } else {
                self.zones.add_live(slot);
            }
        }
    }

    /// A buffer for an append, empty.
    pub fn take_buffer(&mut self) -> AppendBuffer<P> {
        self.buffers
            .pop()
            .unwrap_or_else(|| AppendBuffer { spares: Vec::new(), bodies: Vec::new() })
    }

    /// Gives a buffer back for the next append.
    pub fn give_buffer(&mut self, mut buffer: AppendBuffer<P>) {
        buffer.spares.clear();
        buffer.bodies.clear();
        self.buffers.push(buffer);
    }
}
