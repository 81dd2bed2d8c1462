//! What is dirty when a cache is opened.
//!
//! That a page is clean is not in the flash's log, but in checkpoints: a kill makes pages dirty again that went home since the
//! last one. The journal knows better: with an epoch it says up to which version home has everything.
use tantalum_base::PageNo;
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_ssd::Drive;

use crate::dirty::DirtyPages;
use crate::journal::Journal;

/// What the flash holds that home does not.
pub(crate) struct Found {
    /// Its pages. Those of a committed epoch are in the round.
    pub dirty: DirtyPages,
    /// Ranges of trimmed pages among them.
    pub trims: u64,
}

/// Looks for dirty pages, and marks those clean that home has as the `journal` says. An epoch that is committed
/// there has yet to be written in place.
pub(crate) fn find_dirty<M: ZoneMedia, J: BlockStore>(
    drive: &Drive<M>,
    journal: Option<&Journal<J, M::Page>>,
) -> Found {
    let ftl = drive.ftl();
    let home = journal.and_then(Journal::home_state);
    let is_at_home = |page| home.as_ref().is_some_and(|home| home.has(page, ftl.version_of(page)));
    let is_in_epoch = |page| journal.is_some_and(|journal| journal.has(page));
    let mut found = Found { dirty: DirtyPages::default(), trims: 0 };
    let (mut next, mut trimmed_end) = (PageNo(0), None);
    while let Some(page) = ftl.next_dirty(next) {
        next = PageNo(page.0 + 1);
        match is_at_home(page) {
            true if is_in_epoch(page) => _ = found.dirty.round.insert(page),
            true => {
                ftl.mark_clean([page]);
                continue;
            }
            false => found.dirty.changed(page),
        }
        if drive.is_trimmed(page) {
            found.trims += u64::from(trimmed_end != Some(page));
            trimmed_end = Some(next);
        }
    }
    let mut next = PageNo(0);
    while let Some(page) = ftl.next_lost(next) {
        found.dirty.unreadable.insert(page);
        next = PageNo(page.0 + 1);
    }
    found
}
