//! A home that has later changes than the medium: the end of the log was damaged, though it had been durable.
use tantalum_base::{PageNo, Result, Version};
use tantalum_media::ZoneMedia;

use crate::fault_points::Fault;
use crate::map::MapEntry;
use crate::recovery::{Recovery, SKIPPED_VERSIONS, corrupt};

impl<M: ZoneMedia> Recovery<'_, M> {
    /// Where home is ahead, takes every page from there: beside later content of others, what is here would be half
    /// of what was written all or nothing. Returns the version up to which none may be used again then.
    ///
    /// # Errors
    /// `Corrupt` where home lacks pages that were lost here, unless loss is accepted.
    pub(super) fn follow_home(&mut self) -> Result<Option<Version>> {
        let is_ahead = |version| version > self.parts.log.durable();
        let home = self.reader.options.home.filter(|home| is_ahead(home.version));
        let Some(home) = home.filter(|_| !Fault::HomeAheadUnnoticed.is_planted()) else {
            return Ok(None);
        };
        if !home.is_complete && !self.reader.options.accept_loss {
            return Err(corrupt(
                "the end of the log is damaged: home has changes that were in it, and lacks pages that were lost before",
            ));
        }
        let mut next = 0;
        while let Some(page) = self.parts.map.next_known(next) {
            let version = self.parts.map.get(PageNo(page)).version;
            self.parts.replace(PageNo(page), MapEntry::at_home(version));
            self.report.pages_taken_from_home += 1;
            next = page + 1;
        }
        Ok(Some(Version(home.version.0 + SKIPPED_VERSIONS)))
    }
}
