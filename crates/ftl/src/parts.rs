//! The parts of an FTL, and the changes that concern several of them.
use tantalum_base::{PageNo, PageRange, Result, SlotNo, Version};
use tantalum_media::ZoneMedia;

use crate::cache::clean_pages::CleanPages;
use crate::checkpoints::Checkpoints;
use crate::checkpoints::anchors::Anchors;
use crate::dump::Dump;
use crate::log::records::Record;
use crate::log::{Log, OwnPage};
use crate::map::{Change, MapEntry, Mapping, Place};
use crate::options::{FtlOptions, reserve_zones};
use crate::relocation::Relocation;
use crate::relocation::unreadable::Unreadable;
use crate::space::Space;
use crate::statistics::FtlStatistics;

/// The whole state of an FTL. Each part keeps its own invariants (`validate`); the methods here
/// keep the parts consistent with each other.
pub(crate) struct Parts {
    pub map: Mapping,
    pub space: Space,
    pub log: Log,
    pub relocation: Relocation,
    pub unreadable: Unreadable,
    pub checkpoints: Checkpoints,
    /// `None` if there is no energy for a dump.
    pub dump: Option<Dump>,
    /// `None` if pages have no home elsewhere.
    pub clean: Option<CleanPages>,
    pub statistics: FtlStatistics,
}

impl Parts {
    /// The parts of an FTL on empty `media`.
    pub fn new<M: ZoneMedia>(media: &M, options: &FtlOptions) -> Result<Self> {
        let geometry = media.geometry();
        let layout = options.layout(&geometry)?;
        let slots = u64::from(geometry.zones) * u64::from(geometry.slots_per_zone);
        let delta_zones = layout.map_or(0, |layout| layout.delta_zones);
        let reserve = reserve_zones(&geometry, options.entries_max(&geometry)) + delta_zones;
        // With a dump, recovery starts from the zones.
        let anchors = media.anchors() > 0 && layout.is_none();
        Ok(Parts {
            map: Mapping::new(options.pages, slots, !media.reads_spares())
                .staging_from(options.home_pages()),
            space: Space::new(geometry, &media.retired(), reserve)
                .with_one_log(options.copies_with_writes)
                .with_room(options.gives_room_back.then(|| media.zones_with_room())),
            log: Log::new(geometry.zones),
            relocation: Relocation::default(),
            unreadable: Unreadable::new(geometry),
            checkpoints: Checkpoints::new(
                options.checkpoint_interval(&geometry),
                anchors.then(|| Anchors::new(geometry.zones)),
            ),
            dump: layout.map(|layout| Dump::new(layout, options.pages)),
            clean: options.cache.map(|cache| CleanPages::new(geometry, cache.kept_pages_max)),
            statistics: FtlStatistics::default(),
        })
    }

    /// Zones that hosts may not fill, those of the dump area included.
    pub fn kept_zones(&self) -> u32 {
        self.space.reserve_zones() + self.dump.as_ref().map_or(0, |dump| dump.layout.zones)
    }

    /// The entry of `page` that readers see.
    #[inline]
    pub fn visible(&self, page: PageNo) -> MapEntry {
        let entry = self.log.shares.visible(page, self.map.get(page));
        let never_written = entry.version == Version::NEVER && entry.place == Place::Unmapped;
        if self.clean.is_some() && never_written && !self.map.is_staging(page) {
            return MapEntry::at_home(Version::NEVER);
        }
        entry
    }

    /// Puts `entry` in the mapping if it is newer than the present one, and updates the live
    /// counts. Returns whether it did.
    pub fn apply(&mut self, page: PageNo, entry: MapEntry) -> bool {
        if entry.version <= self.map.get(page).version {
            return false;
        }
        self.replace(page, entry);
        true
    }

    /// Notes that a batch which wrote `entry` of `page` has returned: maps the entry unless a newer
    /// change is mapped.
    pub fn batch_wrote(&mut self, page: PageNo, entry: MapEntry) {
        // If a share wrote it again, cleaning may have moved the content that undoing the share restores.
        self.log.shares.rewritten(page, entry.version, || self.map.get(page));
        if !self.apply(page, entry) {
            self.returned_late(page, entry);
        }
    }

    /// Notes the change `entry` of `page`, which returned after a newer one was mapped. If a power
    /// cut or a failure undoes the newer one, this is the page's content.
    fn returned_late(&mut self, page: PageNo, entry: MapEntry) {
        if let Place::At(slot) = entry.place {
            let newer = self.map.get(page).version;
            self.space.replaced(slot, newer);
        }
        self.log.shares.returned_late(page, entry);
    }

    /// Maps `entry`; updates the live counts, and notes the change for a dump.
    pub fn replace(&mut self, page: PageNo, entry: MapEntry) {
        if let Some(dump) = &mut self.dump {
            dump.log.mark(page);
        }
        self.put(page, entry);
    }

    /// Maps the `entry` of a page that has none yet, while a checkpoint is loaded. The page counts as
    /// recent.
    #[inline]
    pub fn load(&mut self, page: PageNo, entry: MapEntry) {
        if let Some(dump) = &mut self.dump {
            dump.log.mark(page);
        }
        let joined = self.map.load(page, entry);
        let Place::At(slot) = entry.place else { return };
        if let Some(clean) = &mut self.clean {
            clean.load(slot, entry.clean);
            if joined {
                clean.left(slot);
                clean.came(slot, false, true);
            }
        }
        match joined {
            true => self.space.joined(slot, entry.version),
            false => self.space.add_live(slot),
        }
    }

    /// In a cache, makes clean pages old while it keeps more than its limit; one bounded step per call.
    pub fn keep_to_limit(&mut self) {
        let others = self.slots_to_keep();
        if let Some(clean) = &mut self.clean {
            clean.keep_to_limit(others);
        }
    }

    /// Maps `entry` and updates the live counts. The caller notes the change for a dump.
    pub fn put(&mut self, page: PageNo, entry: MapEntry) {
        let before = self.clean.is_some().then(|| self.map.get(page));
        let change = self.map.set(page, entry);
        if let Some(before) = before {
            self.slots_changed(&before, &entry, &change);
        }
        if let Some(left) = change.left {
            self.space.left(left, entry.version, change.left_alive);
            self.relocation.stuck = false;
            if !change.left_alive {
                // The page may even stay in this slot and become clean: then it need not be read either.
                self.unreadable.forget(left);
            }
        }
        if let Place::At(slot) = entry.place {
            if change.joined {
                self.space.joined(slot, entry.version);
            } else {
                self.space.add_live(slot);
            }
        }
    }

    /// In a cache, updates the slots of a page whose entry changed from `before` to `now`.
    fn slots_changed(&mut self, before: &MapEntry, now: &MapEntry, change: &Change) {
        let Some(clean) = &mut self.clean else { return };
        let moved = before.version == now.version;
        let mut recent = true;
        if let Place::At(left) = before.place {
            // A copy is as recent as the original, and so is a page that was marked clean.
            let was_recent = clean.is_recent(left);
            recent = !moved || was_recent;
            clean.left(left);
            if change.left_alive {
                clean.came(left, self.map.is_clean_slot(left), was_recent);
            }
        }
        if let Place::At(slot) = now.place {
            // A slot that several pages share is kept, even if home has their content.
            clean.left(slot);
            clean.came(slot, self.map.is_clean_slot(slot), recent);
            self.keep_to_limit();
        }
    }

    /// Applies the trims among the records of `version`.
    pub fn apply_trims(&mut self, changes: &[Record], version: Version) {
        for change in changes {
            let Record::Trim(range) = change else { continue };
            self.apply_trim(*range, version);
        }
    }

    fn apply_trim(&mut self, range: PageRange, version: Version) {
        for page in range.iter() {
            let entry = self.map.get(page);
            if entry.version < version {
                self.put(page, MapEntry::trimmed(version));
                self.statistics.pages_trimmed += u64::from(entry.place != Place::Unmapped);
            } else {
                self.returned_late(page, MapEntry::trimmed(version));
            }
        }
        if let Some(dump) = &mut self.dump {
            dump.log.trimmed(range, version);
        }
    }

    /// Puts the record page `own` of `version` in force: its slot is live, its former slot no longer.
    pub fn put_record(&mut self, version: Version, own: OwnPage) {
        if let Some(before) = self.log.records.insert(version, own) {
            self.drop_record(before);
        }
        self.map.set_record(own.slot, true);
        self.space.add_live(own.slot);
    }

    /// Marks the record page in `slot` as no longer needed.
    pub fn drop_record(&mut self, slot: SlotNo) {
        self.map.set_record(slot, false);
        self.space.remove_live(slot);
    }

    /// Panics if the parts are inconsistent. For tests.
    pub fn validate(&self) {
        self.space.validate();
        self.log.validate();
        self.checkpoints.validate();
        self.map.validate();
        if let Some(dump) = &self.dump {
            dump.validate();
        }
        if let Some(clean) = &self.clean {
            clean.validate(|slot| {
                self.map.pages_of(slot).next()?;
                Some(self.map.is_clean_slot(slot))
            });
        }
        self.unreadable.validate(|slot| self.map.pages_of(slot).next().is_some());
        let is_emptied = self.space.iter().any(|(_, zone)| zone.being_emptied);
        assert!(self.relocation.copied.is_empty() || is_emptied, "copies of no zone");
    }
}
