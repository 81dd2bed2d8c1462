//! Recovery: the limits of the numbers that a medium may contain.
//!
//! A checksum detects damage. It does not detect invalid numbers that a faulty program, or a person, wrote with a
//! correct checksum. So each number of a medium is checked here as soon as it is read. Afterwards it is used as an
//! index, a length or part of a sum, and is not checked again. The limits leave room for the numbers that a recovery
//! skips, and for all that are assigned later.
use tantalum_base::{Error, PageNo, PageRange, SlotNo, Version, ZoneNo};
use tantalum_media::{AppendHeader, ScannedAppend, SlotKind, Spare, ZoneGeometry};

use crate::cache::{HomeState, Lacks};
use crate::checkpoints::anchor_pages::{Era, NotedZone};
use crate::checkpoints::pages::{Footer, ZoneEntry};
use crate::dump::delta_pages::Trim;
use crate::dump::header::DumpHeader;
use crate::log::records::{Record, Reference};
use crate::log::uncovered::VersionRange;
use crate::map::packed::VERSION_END;
use crate::map::{MapEntry, Place};
use crate::options::FtlOptions;
use crate::recovery::corrupt;
use crate::space::Stream;

/// Versions, and numbers of checkpoints, on a medium are below this.
const SAID_VERSION_END: u64 = VERSION_END - (1 << 40);
/// Numbers of zone openings on a medium are below this. Anchors keep 56 bits of them.
const SAID_EPOCH_END: u64 = 1 << 55;
/// Resets of a zone on a medium are below this.
const SAID_RESETS_END: u32 = 1 << 31;

/// `Ok`, or the reason why a number is invalid: the wrong field, and its limit.
pub(super) type Checked = Result<(), String>;

/// The limits of the numbers that one device's medium may contain.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pages: u64,
    zones: u32,
    slots_per_zone: u32,
    is_cache: bool,
}

/// Fails with the text that `why` returns unless `is_so`.
fn ensure(is_so: bool, why: impl FnOnce() -> String) -> Checked {
    if is_so { Ok(()) } else { Err(why()) }
}

/// The error for content at `place` that has a correct checksum but is invalid.
pub(super) fn senseless(place: impl std::fmt::Display, why: &str) -> Error {
    corrupt(format!(
        "{place}: {why}. Its checksum is correct, so a faulty program or a person wrote it like \
         this. Nothing was changed; restore a copy of the volume, or give up this content \
         (`tantalum check VOLUME.toml --accept-loss`)"
    ))
}

impl Limits {
    pub fn new(geometry: &ZoneGeometry, options: &FtlOptions) -> Self {
        Limits {
            pages: options.pages,
            zones: geometry.zones,
            slots_per_zone: geometry.slots_per_zone,
            is_cache: options.cache.is_some(),
        }
    }

    fn slots(&self) -> u64 {
        u64::from(self.zones) * u64::from(self.slots_per_zone)
    }

    fn page(&self, page: PageNo) -> Checked {
        ensure(page.0 < self.pages, || {
            format!("it names page {page}, but there are only {}", self.pages)
        })
    }

    /// Checks a version; 0 is valid.
    fn version(&self, version: Version) -> Checked {
        ensure(version.0 < SAID_VERSION_END, || {
            format!("it names version {version}, which no device reaches")
        })
    }

    fn epoch(&self, epoch: u64) -> Checked {
        ensure(epoch < SAID_EPOCH_END, || {
            format!("it names zone opening {epoch}, which no device reaches")
        })
    }

    fn slot(&self, slot: SlotNo) -> Checked {
        ensure(u64::from(slot.0) < self.slots(), || {
            format!("it names slot {slot}, but there are only {}", self.slots())
        })
    }

    fn stream(&self, stream: u8) -> Checked {
        ensure(stream <= Stream::Dump as u8, || {
            format!("it is of stream {stream}, but there are only 4")
        })
    }

    /// Checks that a page's home may have its content: only in a cache.
    fn home(&self, page: PageNo) -> Checked {
        ensure(self.is_cache, || {
            format!("it says that page {page} has a home, but no page of this volume has one")
        })
    }

    /// Checks the header of an append.
    pub fn header(&self, header: &AppendHeader) -> Checked {
        let AppendHeader { epoch, stream, durable, batch_first, batch_len } = *header;
        self.stream(stream)?;
        self.epoch(epoch)?;
        ensure(epoch > 0, || "it names zone opening 0, but openings count from 1".into())?;
        self.version(durable)?;
        if stream == Stream::Host as u8 {
            self.version(batch_first)?;
            let is_batch = batch_first > Version::NEVER && batch_len > 0;
            ensure(is_batch && u64::from(batch_len) <= self.slots(), || {
                format!("it is of a batch of {batch_len} changes from version {batch_first} on")
            })?;
        }
        Ok(())
    }

    /// Checks the header of an append, and its spares.
    pub fn append(&self, append: &ScannedAppend) -> Checked {
        self.header(&append.header)?;
        let damaged = append.damaged.iter().map(|(_, spare)| spare);
        append.spares.iter().flatten().chain(damaged).try_for_each(|spare| self.spare(spare))
    }

    fn spare(&self, spare: &Spare) -> Checked {
        self.version(spare.version)?;
        match spare.kind {
            SlotKind::Checkpoint => ensure(spare.page.0 < self.slots(), || {
                format!("it names page {} of checkpoint {}", spare.page, spare.version)
            }),
            // In a dump, only frames belong to pages.
            SlotKind::Record | SlotKind::Delta | SlotKind::Dump => Ok(()),
            SlotKind::Clean | SlotKind::CleanCopy => {
                self.home(spare.page)?;
                self.page(spare.page)
            }
            SlotKind::Data | SlotKind::Copy | SlotKind::RemappedCopy => self.page(spare.page),
        }
    }

    /// Checks the header of a dump.
    pub fn dump(&self, header: &DumpHeader) -> Checked {
        self.epoch(header.number)?;
        self.version(header.next_version)
    }

    /// Checks the page numbers of frames in a dump.
    pub fn frames<'a>(&self, mut pages: impl Iterator<Item = &'a PageNo>) -> Checked {
        pages.try_for_each(|page| self.page(*page))
    }

    /// Checks a change of the mapping alone.
    pub fn record(&self, record: &Record) -> Checked {
        match record {
            Record::Trim(range) => self.trim(*range),
            Record::Share(share) => {
                self.page(share.left)?;
                self.page(share.right)?;
                self.version(share.right_version)?;
                self.slot(share.slot)
            }
        }
    }

    /// Checks the state of home that a journal describes.
    pub fn home_state(&self, home: &HomeState) -> Checked {
        self.version(home.version)?;
        match &home.lacks {
            Lacks::Pages(pages) => pages.iter().try_for_each(|page| self.page(*page)),
            Lacks::PagesUnknown | Lacks::ChangesUnknown => Ok(()),
        }
    }

    /// Checks a range of pages.
    pub fn trim(&self, range: PageRange) -> Checked {
        let PageRange { first, pages } = range;
        let is_inside = first.0 <= self.pages && pages <= self.pages - first.0;
        ensure(is_inside, || {
            format!("it trims {pages} pages from page {first} on, of {}", self.pages)
        })
    }

    /// Checks a trim since a checkpoint; its version must be below `next`.
    pub fn trim_of(&self, trim: &Trim, next: Version) -> Checked {
        self.trim(trim.range)?;
        ensure(trim.version < next, || {
            format!("it names version {} of a trim, but the next one is {next}", trim.version)
        })
    }

    /// Checks a reference to another page of a slot that was copied.
    pub fn reference(&self, reference: &Reference) -> Checked {
        self.page(reference.page)?;
        self.version(reference.version)
    }

    /// Checks a page that a cache evicted.
    pub fn gone(&self, page: PageNo, version: Version) -> Checked {
        self.home(page)?;
        self.page(page)?;
        self.version(version)
    }

    /// Checks a range of versions that need not be found.
    pub fn dead(&self, range: &VersionRange) -> Checked {
        self.version(range.last)?;
        ensure(Version::NEVER < range.first && range.first <= range.last, || {
            format!("it lists versions {} to {} as dead", range.first, range.last)
        })
    }

    /// Checks the footer of a checkpoint.
    pub fn footer(&self, id: u64, footer: &Footer) -> Checked {
        let Footer { covered, durable, next_version, .. } = *footer;
        self.version(Version(id))?;
        self.version(next_version)?;
        ensure(covered <= durable && durable < next_version, || {
            format!(
                "its versions are out of order: covered up to {covered}, durable up to {durable}, next version {next_version}"
            )
        })
    }

    /// Checks an entry of the zone table.
    pub fn zone(&self, zone: ZoneNo, entry: &ZoneEntry) -> Checked {
        let of_zone = |why| format!("of zone {zone} {why}");
        self.opening(entry.epoch, entry.stream, entry.covered_slots).map_err(of_zone)?;
        let resets = entry.resets;
        ensure(resets < SAID_RESETS_END, || {
            format!("it says that zone {zone} was reset {resets} times")
        })
    }

    fn opening(&self, epoch: u64, stream: u8, covered_slots: u32) -> Checked {
        self.epoch(epoch)?;
        if epoch > 0 {
            self.stream(stream)?;
        }
        ensure(covered_slots <= self.slots_per_zone, || {
            format!(
                "it says that {covered_slots} slots are covered, but a zone has only {}",
                self.slots_per_zone
            )
        })
    }

    /// Checks the entry of a page in a checkpoint, or in a change since; its version must be below `next`.
    pub fn entry(&self, page: PageNo, entry: &MapEntry, next: Version) -> Checked {
        self.page(page)?;
        ensure(entry.version < next, || {
            format!("it names version {} of page {page}, but the next one is {next}", entry.version)
        })?;
        if entry.clean || entry.place == Place::Home {
            self.home(page)?;
        }
        entry.place.slot().map_or(Ok(()), |slot| self.slot(slot))
    }

    /// Checks the content of the anchors.
    pub fn era(&self, era: &Era) -> Checked {
        self.version(Version(era.checkpoint))?;
        let mut pages = 0;
        for extent in &era.extents {
            let end = u64::from(extent.first.0) + u64::from(extent.pages);
            pages += u64::from(extent.pages);
            ensure(end <= self.slots() && pages <= self.slots(), || {
                format!(
                    "they name {} slots from slot {} on, but there are only {}",
                    extent.pages,
                    extent.first,
                    self.slots()
                )
            })?;
        }
        for NotedZone { zone, epoch, stream, covered_slots } in &era.zones {
            ensure(zone.0 < self.zones, || format!("they name zone {zone}, of {}", self.zones))?;
            self.opening(*epoch, *stream, *covered_slots)?;
        }
        Ok(())
    }
}
