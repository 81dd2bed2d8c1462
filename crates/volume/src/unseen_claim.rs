//! A home that cannot show its claim. If the journal with its record is lost, the claim is found; if the flash is lost, a rescue of
//! the home is refused. So is a home without a claim, if the journal is lost.
//!
//! No sector at the ends of such a home is zero. So it is unknown whether it has a claim, and its ends may be read wrongly. Pages
//! that home and flash have in common decide: if a page was stored with the claim, it differs from the flash's content by the
//! claim's text.
use tantalum_base::{
    Error, ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload, Result, ResultExt,
};
use tantalum_cache::claim::{Claim, Evidence, Extent, SECTOR_BYTES, look};
use tantalum_cache::journal::Journal;
use tantalum_media::BlockStore;
use tantalum_media::block_store::StoreLayer;
use tantalum_runtime::Runtime;

use crate::fault_points::Fault;
use crate::own_home::clean_content;
use crate::refusals::{CLAIM_GONE, CLAIM_UNKNOWN, NOT_SHOWN};
use crate::tiered::TieredDevice;

/// The result of the search.
#[derive(Debug)]
pub(crate) enum Unseen {
    /// There is no claim, or the home shows it.
    Absent,
    /// There is this claim.
    Found(Box<Claim>),
    /// Home and flash have no page in common there that could decide it.
    Unknown,
}

/// Searches for a claim of volume `volume_id` on the home of `tiered`. The home was opened as one without a claim if it shows none.
///
/// # Errors
/// Those of home and flash.
pub(crate) async fn unseen_claim<R: Runtime, S: BlockStore>(
    tiered: &TieredDevice<R, S>,
    volume_id: u128,
) -> Result<Unseen> {
    let home = tiered.home().store();
    if home.claim().is_some() || look(home.inner()).await?.zero_sectors > 0 {
        return Ok(Unseen::Absent);
    }
    // Only the beginning is compared: if the home grew, its end is not claimed.
    let [first, _] = Extent::of(BlockStore::bytes(home)).ranges();
    for page in (0..first.end.div_ceil(PAGE_BYTES as u64)).map(PageNo) {
        if !tiered.drive().ftl().is_clean(page) {
            continue;
        }
        let Some(content) = clean_content(tiered, page).await? else { continue };
        let mut there = [PageBuf::zero()];
        tiered.home().read(page, &mut there, None).await?;
        let bytes = (first.end - page.0 * PAGE_BYTES as u64).min(PAGE_BYTES as u64) as usize;
        match text_between(&content[..bytes], &there[0][..bytes]) {
            Some(claim) if claim.volume_id() == volume_id => {
                return Ok(Unseen::Found(Box::new(claim)));
            }
            None if content == there[0] => return Ok(Unseen::Absent),
            _ => {}
        }
    }
    Ok(Unseen::Unknown)
}

/// The claim, if all sectors of `stored` differ from those of `content` by its text.
fn text_between(content: &[u8], stored: &[u8]) -> Option<Claim> {
    let text: Vec<u8> = content.iter().zip(stored).map(|(a, b)| a ^ b).collect();
    let claim = Claim::of_sector(text.get(..SECTOR_BYTES)?)?;
    text.chunks(SECTOR_BYTES).all(|sector| sector == claim.sector()).then_some(claim)
}

/// Refuses a home without a claim, if the journal is lost. The journal would tell whether the home was rescued or detached, after
/// which it may have newer pages than the flash.
///
/// # Errors
/// `Corrupt`.
pub(crate) fn refuse_unclaimed() -> Result<()> {
    if Fault::UnclaimedHomeTaken.is_planted() {
        return Ok(());
    }
    let context = format!(
        "{CLAIM_GONE}: it may have been rescued or detached, and have newer pages than the flash (put the journal back. Only if \
         nothing has written to this home without its cache, `tantalum check --accept-loss` takes it with the pages of the flash \
         over it, if those that both have are equal; else `tantalum attach --force` puts a new cache over the home as it is, and \
         gives up the pages in the flash)"
    );
    Err(CLAIM_GONE.error(ErrorKind::Corrupt, context))
}

/// The refusal of a home if it is unknown whether it has a claim.
pub(crate) fn unknown_claim() -> Error {
    let context = format!(
        "{CLAIM_UNKNOWN}: the journal, which knows it, is lost, no sector at the ends of the home is zero, and the flash has no \
         page of them that home should have too (put the journal back; only if the home never had a claim, set home.claim = \
         \"none\")"
    );
    CLAIM_UNKNOWN.error(ErrorKind::Corrupt, context)
}

/// Refuses a home that has a claim according to its `journal`, but cannot show it. Without the flash it cannot be distinguished from
/// another disk.
///
/// # Errors
/// `InvalidInput` if it is such a home; those of the stores.
pub(crate) async fn refuse_unseen<S: BlockStore>(journal: S, home: &S) -> Result<()> {
    let pair = Journal::<S, PageBuf>::pair_of(&journal).await.context(|| "the journal")?;
    let (journal, _) = Journal::<S, PageBuf>::open(journal, pair, 0).await?;
    let Evidence { claim: shown, zero_sectors } = look(home).await?;
    if shown.is_some() || zero_sectors > 0 || journal.has_unfinished_change() {
        return Ok(());
    }
    // The journal records that there is no claim.
    if journal.claim().await.is_ok_and(|known| known.is_none()) {
        return Ok(());
    }
    let context = format!(
        "{NOT_SHOWN}: it should have a claim, and no sector at its ends is zero, so that it could not show it. Another disk may have \
         its name: make sure by its serial number; then --force rescues it"
    );
    Err(NOT_SHOWN.error(ErrorKind::InvalidInput, context))
}
