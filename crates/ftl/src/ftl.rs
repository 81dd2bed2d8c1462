//! The FTL: its parts, and the queues in which tasks wait for them.
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageNo, Result};
use tantalum_media::{ZoneGeometry, ZoneMedia};
use tantalum_runtime::sync::WaitQueue;

use crate::checkpoints::Checkpointer;
use crate::checkpoints::anchors::Anchors;
use crate::dump::Dumper;
use crate::fault_points::Fault;
use crate::log::LogTurns;
use crate::log::buffer::Buffers;
use crate::map::Place;
use crate::options::{FtlOptions, packed_slots};
use crate::parts::Parts;
use crate::relocation::Cleaner;
use crate::space::pins::ZonePins;
use crate::statistics::FtlStatistics;
use crate::timer::Started;

/// A page-mapping FTL over `M`. One thread; calls may be in flight together.
///
/// `write` and `trim` must be polled to completion: dropping one midway (other than at a power cut) leaves a gap in the
/// sequence of versions, and nothing becomes durable after it.
pub struct Ftl<M: ZoneMedia> {
    pub(crate) media: M,
    pub(crate) geometry: ZoneGeometry,
    pub(crate) options: FtlOptions,
    /// The FTL's state. A flow borrows it for one step, never across an await.
    pub(crate) parts: RefCell<Parts>,
    pub(crate) buffers: Buffers<M::Page>,
    /// Turns and wait queues of the log.
    pub(crate) log: LogTurns,
    /// Slots being read, whose zones must not be reset.
    pub(crate) pins: ZonePins,
    /// Zones were freed, or cleaning found that it cannot free any.
    pub(crate) zones_freed: WaitQueue,
    pub(crate) cleaner: Cleaner,
    pub(crate) checkpointer: Checkpointer,
    /// `None` if there is no energy for a dump.
    pub(crate) dumper: Option<Dumper<M::Page>>,
    /// Logs shares, even if a dump would keep them.
    pub(crate) logs_shares: Cell<bool>,
    /// Hosts' changes wait for the space that unreadable pages occupy, however long that takes.
    pub(crate) waits_for_room: Cell<bool>,
    /// The runtime's clock and a handle to this FTL, set when the device is started.
    pub(crate) started: OnceCell<Started<Ftl<M>>>,
}

impl<M: ZoneMedia> Ftl<M> {
    /// An FTL on `media` with the state `parts`.
    pub(crate) fn new(media: M, options: FtlOptions, parts: Parts) -> Self {
        let geometry = media.geometry();
        let dumps = parts.dump.is_some();
        Ftl {
            media,
            geometry,
            options,
            dumper: dumps.then(Dumper::default),
            parts: RefCell::new(parts),
            buffers: Buffers::default(),
            log: LogTurns::default(),
            pins: ZonePins::new(geometry),
            zones_freed: WaitQueue::new("free zones"),
            cleaner: Cleaner::new(&options),
            checkpointer: Checkpointer::default(),
            logs_shares: Cell::new(!dumps),
            waits_for_room: Cell::new(false),
            started: OnceCell::new(),
        }
    }

    /// Makes a new FTL on `media` and writes its first checkpoint, durably.
    ///
    /// # Errors
    /// `InvalidInput` if the options do not fit the geometry.
    pub async fn format(media: M, options: FtlOptions) -> Result<Rc<Self>> {
        options.check(&media.geometry(), media.retired().len() as u32)?;
        if options.read_only {
            return Err(read_only());
        }
        let mut parts = Parts::new(&media, &options)?;
        if parts.checkpoints.anchors.is_some() {
            // New anchors continue the numbering of those on the medium.
            parts.checkpoints.anchors = Some(Anchors::read(&media).await?.0);
        }
        let ftl = Rc::new(Ftl::new(media, options, parts));
        ftl.set_dump_zones_aside()?;
        ftl.checkpoint().await?;
        ftl.clear_dump_area().await?;
        ftl.end_era().await?;
        Ok(ftl)
    }

    /// Logs every share from now on, so that shares before a [`sync`](Self::sync) survive even if the energy for a dump
    /// fails.
    pub fn log_shares(&self) {
        self.logs_shares.set(true);
    }

    /// The medium.
    pub fn media(&self) -> &M {
        &self.media
    }

    /// The options.
    pub fn options(&self) -> &FtlOptions {
        &self.options
    }

    /// Zones that hosts may not fill.
    pub fn reserve_zones(&self) -> u32 {
        self.parts.borrow().space.reserve_zones()
    }

    /// The most pages of a batch that still fits between two cleanings, given the zones in service now. The limit may
    /// change: ask again after each opening.
    pub fn batch_pages_max(&self) -> u32 {
        let packed = u64::from(packed_slots(&self.geometry));
        let parts = self.parts.borrow();
        let usable = u64::from(
            self.geometry
                .zones
                .saturating_sub(parts.kept_zones())
                .saturating_sub(parts.space.retired_count() + 4),
        );
        let spare = (usable * packed).saturating_sub(self.options.kept_pages_max());
        (spare / 2).clamp(1, u64::from(u32::MAX / 2)) as u32
    }

    /// Pages with content, lost ones included.
    pub fn mapped_pages(&self) -> u64 {
        self.parts.borrow().map.mapped_pages()
    }

    /// The number of pages from `first` on that have content, lost ones included.
    pub fn mapped_from(&self, first: PageNo) -> u64 {
        let map = &self.parts.borrow().map;
        let known = std::iter::successors(map.next_known(first.0), |page| map.next_known(page + 1));
        known
            .filter(|page| matches!(map.get(PageNo(*page)).place, Place::At(_) | Place::Lost))
            .count() as u64
    }

    /// Counters since opening.
    pub fn statistics(&self) -> FtlStatistics {
        let parts = self.parts.borrow();
        let resets = || parts.space.iter().map(|(_, zone)| zone.resets);
        let references = parts.map.references();
        let latched = |first: &Error| first.kind() != ErrorKind::ReadOnly;
        let (pages_unreadable, zones_unreadable) = parts.unreadable_pages_and_zones();
        let statistics = FtlStatistics {
            zones: parts.space.iter().count() as u32,
            latched: parts.log.latched().is_some_and(latched),
            zones_free: parts.space.free_count() + parts.space.prepared_count(),
            zones_retired: parts.space.retired_count(),
            census: parts.space.census(),
            zone_resets_min_max: (resets().min().unwrap_or(0), resets().max().unwrap_or(0)),
            pages_mapped: parts.map.mapped_pages(),
            pages_clean: parts.clean.as_ref().map_or(0, |clean| clean.count()),
            mapping_bytes: parts.map.memory_bytes()
                + parts.clean.as_ref().map_or(0, |clean| clean.memory_bytes()),
            pages_unreadable,
            zones_unreadable,
            shared_slots: references.slots(),
            shared_entries: references.entries(),
            shared_bytes: references.memory_bytes(),
            ..parts.statistics
        };
        let (Some(dump), Some(options)) = (&parts.dump, &self.options.dump) else {
            return statistics;
        };
        FtlStatistics {
            changed_entries: dump.log.held(),
            changed_entries_max: dump.log.held_max(),
            delta_pages: dump.log.pages_written(),
            dump_budget_bytes: options.budget_bytes,
            ..statistics
        }
    }

    /// Whether `page` holds content.
    pub fn is_mapped(&self, page: PageNo) -> bool {
        matches!(self.parts.borrow().map.get(page).place, Place::At(_) | Place::Lost)
    }

    /// Whether a read of `page`, issued now, would return content or fail, rather than return the zeros of an unmapped
    /// page.
    pub fn has_content(&self, page: PageNo) -> bool {
        self.parts.borrow().visible(page).place != Place::Unmapped
    }

    /// Whether `page` has content with this checksum. Always false if the mapping keeps no checksums.
    pub fn has_checksum(&self, page: PageNo, checksum: u32) -> bool {
        let parts = self.parts.borrow();
        let entry = parts.visible(page);
        parts.map.has_checksums() && entry.place.slot().is_some() && entry.checksum == checksum
    }

    /// The first page from `page` on that was ever written or trimmed, or `end` if there is none before it. For a cache
    /// it returns `page` itself: pages unknown here may have content at home.
    pub fn next_known(&self, page: PageNo, end: PageNo) -> PageNo {
        let parts = self.parts.borrow();
        match parts.clean {
            Some(_) => page,
            None => PageNo(parts.map.next_known_before(page.0, end.0).unwrap_or(end.0)),
        }
    }

    /// Fails if a failure of the log latched the FTL, or if it is read-only.
    pub(crate) fn check_latch(&self) -> Result<()> {
        match self.parts.borrow().log.latched() {
            None => Ok(()),
            Some(first) if first.kind() == ErrorKind::ReadOnly => Err(first.clone()),
            Some(first) => Err(Error::with_source(
                ErrorKind::Latched,
                "writes are refused until the volume is opened again, after an earlier failure",
                first.clone(),
            )),
        }
    }

    /// Refuses writes from now on, because of `error`, and wakes all waiters.
    pub(crate) fn latch(&self, error: &Error) {
        {
            let parts = &mut *self.parts.borrow_mut();
            if parts.log.latched().is_none() && error.kind() != ErrorKind::ReadOnly {
                tracing::error!(%error, "no changes are accepted until the volume is opened again");
            }
            parts.log.latch(error);
            if !Fault::CopiesNotTakenBack.is_planted() {
                parts.take_copies_back();
            }
        }
        self.zones_freed.wake_all();
        self.log.durable_rose.wake_all();
        self.cleaner.wanted.wake_all();
        self.checkpointer.wanted.wake_all();
        if let Some(dumper) = &self.dumper {
            dumper.entries_freed.wake_all();
            dumper.backup_wanted.wake_all();
        }
    }

    /// Refuses writes from now on, because the FTL is read-only.
    pub(crate) fn refuse_changes(&self) {
        self.latch(&read_only());
    }

    /// The reason why the FTL refuses writes, if it does: `ReadOnly` if it is read-only.
    pub fn latched(&self) -> Option<Error> {
        self.parts.borrow().log.latched().cloned()
    }
}

fn read_only() -> Error {
    Error::new(ErrorKind::ReadOnly, "it is open read-only: nothing is changed")
}
