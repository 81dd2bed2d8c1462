//! Handles a cache whose home has later changes than its log: then the end of the log was durable and is damaged now.
use tantalum_base::{PageNo, Result, Version};
use tantalum_media::ZoneMedia;

use crate::cache::Lacks;
use crate::fault_points::Fault;
use crate::map::{MapEntry, Place};
use crate::recovery::{Recovery, SKIPPED_VERSIONS, corrupt};

impl<M: ZoneMedia> Recovery<'_, M> {
    /// If home is ahead of the log, takes every page from home: the content here, beside later content of other pages
    /// at home, could be half of an atomic batch. Then returns the version up to which no version may be used again.
    ///
    /// # Errors
    /// `Corrupt` if home is ahead and it is unknown which changes it lacks, unless loss is accepted. If loss is
    /// accepted and home may lack any change, the content here is used.
    pub(super) fn follow_home(&mut self) -> Result<Option<Version>> {
        let Some(home) = self.home.take() else { return Ok(None) };
        let place = || "the journal beside the home".into();
        if !self.reader.is_sound(self.reader.limits.home_state(&home), place)? {
            return Ok(None);
        }
        let is_ahead = home.version > self.parts.log.durable();
        if !is_ahead || Fault::HomeAheadUnnoticed.is_planted() {
            return Ok(None);
        }
        let is_accepted = self.reader.options.accept_loss;
        match &home.lacks {
            Lacks::PagesUnknown if !is_accepted => {
                return Err(corrupt(
                    "the end of the log is damaged: home has changes that were in it, and lacks too many pages \
                     that were lost before",
                ));
            }
            Lacks::ChangesUnknown if !is_accepted => {
                return Err(corrupt(
                    "the end of the log is damaged: home may have some of the changes that were in \
                     it, without others that belong to them",
                ));
            }
            Lacks::ChangesUnknown => {}
            Lacks::PagesUnknown => self.take_all_pages(home.version, &[]),
            Lacks::Pages(lacks) => self.take_all_pages(home.version, lacks),
        }
        Ok(Some(Version(home.version.0 + SKIPPED_VERSIONS)))
    }

    fn take_all_pages(&mut self, home: Version, lacks: &[PageNo]) {
        self.is_behind_home = true;
        let mut next = 0;
        while let Some(page) = self.parts.map.next_known(next) {
            let version = self.parts.map.get(PageNo(page)).version;
            let entry = match self.parts.map.is_staging(PageNo(page)) {
                true => MapEntry::trimmed(version),
                false => MapEntry::at_home(version),
            };
            self.parts.replace(PageNo(page), entry);
            self.report.pages_taken_from_home += 1;
            next = page + 1;
        }
        for page in lacks {
            let lost = MapEntry { version: home, place: Place::Lost, ..MapEntry::default() };
            self.parts.replace(*page, lost);
        }
    }
}
