//! A cache's home that has later changes than the log, whose end is damaged though it had been durable.
use tantalum_base::{PageNo, Result, Version};
use tantalum_media::ZoneMedia;

use crate::cache::HomeState;
use crate::fault_points::Fault;
use crate::map::{MapEntry, Place};
use crate::recovery::{Recovery, SKIPPED_VERSIONS, corrupt};

impl<M: ZoneMedia> Recovery<'_, M> {
    /// Where home is ahead of the log, takes every page from there: beside later content of others, what is here would
    /// be half of what was written all or nothing. Returns the version up to which none may be used again then.
    ///
    /// # Errors
    /// `Corrupt` where home is ahead and nothing says what it lacks, unless loss is accepted.
    pub(super) fn follow_home(&mut self) -> Result<Option<Version>> {
        let Some(home) = self.home.take() else { return Ok(None) };
        let is_ahead = home.version > self.parts.log.durable();
        if !is_ahead || Fault::HomeAheadUnnoticed.is_planted() {
            return Ok(None);
        }
        if home.lacks.is_none() && !self.reader.options.accept_loss {
            return Err(corrupt(
                "the end of the log is damaged: home has changes that were in it, and lacks too many pages that \
                 were lost before",
            ));
        }
        self.is_behind_home = true;
        self.take_all_pages(&home);
        Ok(Some(Version(home.version.0 + SKIPPED_VERSIONS)))
    }

    fn take_all_pages(&mut self, home: &HomeState) {
        let mut next = 0;
        while let Some(page) = self.parts.map.next_known(next) {
            let version = self.parts.map.get(PageNo(page)).version;
            self.parts.replace(PageNo(page), MapEntry::at_home(version));
            self.report.pages_taken_from_home += 1;
            next = page + 1;
        }
        for page in home.lacks.iter().flatten() {
            let (version, place) = (home.version, Place::Lost);
            self.parts.replace(*page, MapEntry { version, place, ..MapEntry::default() });
        }
    }
}
