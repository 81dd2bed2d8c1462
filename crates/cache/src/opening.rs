//! Compares the flash of a cache and its home at an opening.
//!
//! The flash's log does not record that a page is clean; only checkpoints do. So after a kill,
//! pages that were destaged since the last checkpoint count as dirty again. If they were destaged
//! in an epoch, the journal corrects this: it records the version up to which the home has
//! everything.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Result};
use tantalum_ftl::{Ftl, FtlOptions, RecoveryReport};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_ssd::Drive;

use crate::dirty::DirtyPages;
use crate::fault_points::Fault;
use crate::journal::{Journal, apply};
use crate::tiered::OpenJournal;

/// Writes to the home in flight at a time.
const IN_FLIGHT_MAX: usize = 8;

/// Recovers the flash of a cache over `home`; `journal` is the one beside the home, if there is
/// one.
///
/// The end of the flash's log may be damaged although it was durable. The home may have the content
/// of the damaged part. Then these pages are read from the home, after all of the epoch in the
/// journal was written there.
///
/// # Errors
/// Those of [`Ftl::recover`], of the journal and of the home; `ReadOnly` if the epoch must first be
/// written to the home, and nothing may be changed.
pub async fn recover_flash<M, H, J>(
    media: M,
    options: FtlOptions,
    home: &H,
    journal: Option<&mut OpenJournal<J, M::Page>>,
) -> Result<(Rc<Ftl<M>>, RecoveryReport)>
where
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    let home_state = journal.as_ref().and_then(|(journal, _)| journal.home_state());
    let rebuilt = Ftl::rebuild(media, options, home_state).await?;
    if let Some((journal, committed)) = journal.filter(|_| rebuilt.is_behind_home())
        && committed.is_some()
        && !Fault::HomeNotCaughtUp.is_planted()
    {
        if options.read_only {
            let context = "the end of the flash's log is damaged, and the home lacks changes \
                           that its journal has: open the volume for writing";
            return Err(Error::new(ErrorKind::ReadOnly, context));
        }
        apply(journal, home, IN_FLIGHT_MAX).await?;
        journal.mark_applied().await?;
        *committed = None;
    }
    rebuilt.conclude().await
}

/// The changes in the flash that the home lacks.
pub(crate) struct Found {
    /// Their pages. Those of a committed epoch are in the round.
    pub dirty: DirtyPages,
    /// Ranges of trimmed pages among them.
    pub trims: u64,
}

/// Searches for dirty pages, and marks those clean that the home has according to the `journal`. An
/// epoch that is committed there must still be written in place.
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
        next = PageNo(page.0 + 1);
        _ = match is_at_home(page) {
            true if is_in_epoch(page) => found.dirty.round.insert(page),
            true => ftl.mark_clean([page]) > 0,
            false => found.dirty.lost.insert(page),
        };
    }
    found
}
