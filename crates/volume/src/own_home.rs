//! Tests whether a home is the volume's own, by comparing some pages that home and flash have in common.
//!
//! Before this test, nothing is written to a home that does not show its claim.
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload, Result};
use tantalum_cache::claim::{Claim, SECTOR_BYTES, Trust, accept, of_another};
use tantalum_cache::journal::{Journal, is_no_journal};
use tantalum_media::BlockStore;
use tantalum_runtime::Runtime;
use tantalum_runtime::life_cycle::is_damage;

use crate::config::VolumeConfig;
use crate::fault_points::Fault;
use crate::home_config::ClaimConfig;
use crate::open_options::OpenOptions;
use crate::refusals::{COMPARED, UNPROVEN};
use crate::superblock::Superblock;
use crate::tiered::{
    TieredDevice, TieredStores, home_config, is_ordered, open_cache, pair, told_home,
};
use crate::unseen_claim::{Unseen, refuse_unclaimed, unknown_claim, unseen_claim};

/// Number of clean pages that are compared with the home at an opening.
const COMPARED_PAGES: usize = 8;

/// Number of clean pages from which these are chosen. Pages that the flash cannot read are skipped.
const COMPARED_OF_PAGES: usize = 64;

/// Number of clean pages that are compared if the home should have a claim, but has no sector that could show it.
const DOUBTFUL_PAGES: usize = 1024;

/// Number of clean pages, spread over the volume, from which these are chosen.
const DOUBTFUL_OF_PAGES: usize = 64 << 10;

/// Number of clean pages that decide whether a doubted home is the volume's own.
const PROVING_PAGES: usize = 512;

/// The result for the ends of a home whose claim was not intact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Pages that were written to the home once more, with the content that the flash has.
    pub written: u64,
    /// Pages that only the home has, and of which it is unknown whether they were stored with or without the claim.
    pub unknown: u64,
}

/// The result of comparing a page of the flash with the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    Same,
    /// Some sectors are stored with the claim although they should be without it, or the reverse.
    Mixed,
    Differs,
}

/// The proof that a home without a claim must give, beside an equal page for each other one.
#[derive(Clone, Copy, Debug, Default)]
struct Proof {
    /// One page at least is equal.
    an_equal_page: bool,
    /// No page differs: the journal is lost, and with it the record of a rescue or a detach, after which the home may have newer
    /// pages than the flash.
    no_other_page: bool,
}

/// Compares some clean pages with their content on the home.
///
/// # Errors
/// `Corrupt` if the home has other content; those of the home; `Io` if the flash cannot read any of the pages now.
pub(crate) async fn compare<R: Runtime, S: BlockStore>(tiered: &TieredDevice<R, S>) -> Result<()> {
    let (drive, home) = (tiered.drive(), tiered.home());
    // The home should have a claim, but cannot show it.
    let is_doubtful = home.store().trust() == Trust::Unseen && home.store().claim().is_some();
    let (most, pages) = match is_doubtful {
        true => (DOUBTFUL_PAGES, drive.ftl().clean_pages(DOUBTFUL_OF_PAGES)),
        false => (COMPARED_PAGES, drive.ftl().clean_pages(COMPARED_OF_PAGES)),
    };
    let (mut compared, mut unreadable) = (0, None);
    let step = pages.len().div_ceil(most).max(1);
    // The compared pages are spread over all clean pages. If some cannot be read, others take their place.
    let spread = (0..step).flat_map(|from| pages.iter().skip(from).step_by(step));
    for page in spread.copied() {
        if compared == most {
            return Ok(());
        }
        let (mut here, mut there) = ([PageBuf::zero()], [PageBuf::zero()]);
        match drive.read(page, &mut here, None).await {
            Ok(()) => compared += 1,
            // A damaged clean page is read from the home anyway. A page that cannot be read now proves nothing.
            Err(error) if is_damage(error.kind()) => continue,
            Err(error) => {
                unreadable = Some(error);
                continue;
            }
        }
        home.read(page, &mut there, None).await?;
        if here != there {
            return Err(differs(page, BY_FORCE));
        }
    }
    match unreadable.filter(|_| compared == 0) {
        Some(error) => Err(error.wrap("no page of the flash can be compared with home")),
        None => Ok(()),
    }
}

fn differs(page: PageNo, otherwise: &str) -> Error {
    let context = format!(
        "{COMPARED} {page} as it was written there: it is another disk or another volume's, or \
         another program has changed it (put its own home back, or correct home.path: the names of \
         devices change{otherwise})"
    );
    COMPARED.error(ErrorKind::Corrupt, context)
}

/// Additional advice for a home that is refused at a normal opening.
const BY_FORCE: &str = "; `tantalum attach --force` takes this one, whatever it is, and gives up the \
                        newer pages in the flash";

/// Accepts the home although its claim is not intact or it was changed, if it is the volume's own. Claimed pages that the flash
/// has too are compared, and written to the home again if they differ. Nothing is written to a home that is not the volume's own.
///
/// # Errors
/// `Corrupt` if the home is another one, or no page shows that it is the volume's own; those of the stores.
pub(crate) async fn accept_home<R: Runtime, S: BlockStore>(
    tiered: &TieredDevice<R, S>,
) -> Result<Ends> {
    let home = tiered.home().store();
    if matches!(home.trust(), Trust::Unseen | Trust::Doubted) {
        prove(tiered, Proof::default()).await?;
        home.allow_writes();
    }
    let ends = write_ends(tiered).await?;
    if let Some(journal) = tiered.home_journal() {
        accept(journal, home).await?;
    }
    Ok(ends)
}

/// Checks that the home is the volume's own, if loss is accepted or the journal is lost. This must precede any change of the
/// stores. Returns the claim on the home, if it was found only by comparison with pages of the flash.
///
/// # Errors
/// `Corrupt` if the home is another one, if no page shows that it is the volume's own, or if it is unknown whether it has a claim.
/// If the journal is lost and loss is not accepted, also if it has no claim.
pub(crate) async fn prove_first<R: Runtime, S: BlockStore + Clone>(
    runtime: &R,
    stores: &TieredStores<S>,
    config: &VolumeConfig,
    superblock: &Superblock,
    options: OpenOptions,
) -> Result<Option<Claim>> {
    let is_lost = is_journal_lost(stores, config, superblock).await;
    let OpenOptions { read_only, accept_loss, .. } = options;
    if read_only && accept_loss || !accept_loss && !is_lost {
        return Ok(None);
    }
    let journal = stores.journal.clone().filter(|_| !is_lost);
    let TieredStores { flash, home, .. } = stores;
    let stores = TieredStores { flash: flash.clone(), home: home.clone(), journal };
    let looking = OpenOptions { read_only: true, ..options };
    let look = |claim| {
        open_cache(runtime, stores.clone(), config, superblock, looking, claim, Box::new(|| 0))
    };
    let mut tiered = match look(None).await {
        Ok((tiered, _)) => tiered,
        // The end of the flash's log is damaged, and the home still lacks the epoch in the journal.
        Err(error) if error.kind() == ErrorKind::ReadOnly => return Ok(None),
        Err(error) => return Err(error),
    };
    let at_home = |error: Error| error.wrap(told_home(config));
    let unseen = match is_lost && !Fault::UnseenClaimIgnored.is_planted() {
        true => unseen_claim(&tiered, superblock.volume_id).await.map_err(at_home)?,
        false => Unseen::Absent,
    };
    if let Unseen::Found(claim) = &unseen {
        drop(tiered);
        (tiered, _) = look(Some(**claim)).await?;
    }
    let is_claim_wanted = home_config(config)?.claim == ClaimConfig::Xor;
    let proof = Proof { an_equal_page: is_lost && is_claim_wanted, no_other_page: is_lost };
    let proven = prove_home(&tiered, superblock.volume_id, proof).await;
    proven.map_err(at_home)?;
    match unseen {
        Unseen::Found(claim) => return Ok(Some(*claim)),
        Unseen::Unknown if is_claim_wanted => return Err(at_home(unknown_claim())),
        Unseen::Unknown | Unseen::Absent => {}
    }
    if is_lost && !accept_loss && tiered.home().store().claim().is_none() {
        refuse_unclaimed().map_err(at_home)?;
    }
    Ok(None)
}

/// Whether the journal of a volume with dense destaging is missing or damaged. An opening to write replaces it.
async fn is_journal_lost<S: BlockStore + Clone>(
    stores: &TieredStores<S>,
    config: &VolumeConfig,
    superblock: &Superblock,
) -> bool {
    if is_ordered(config) {
        return false;
    }
    let Some(store) = stores.journal.clone() else { return true };
    let opened = Journal::<S, PageBuf>::open(store, pair(superblock), 0).await;
    opened.is_err_and(|error| is_no_journal(&error))
}

/// Refuses a home before anything is changed, if it has another volume's claim, or if it shows no claim and lacks the `wanted` proof.
///
/// # Errors
/// As [`accept_home`].
async fn prove_home<R: Runtime, S: BlockStore>(
    tiered: &TieredDevice<R, S>,
    volume_id: u128,
    wanted: Proof,
) -> Result<()> {
    let home = tiered.home().store();
    match (home.trust(), home.claim()) {
        (_, Some(claim)) if claim.volume_id() != volume_id => Err(of_another(&claim)),
        (Trust::Unseen | Trust::Doubted, _) => prove(tiered, wanted).await,
        (Trust::Own | Trust::Torn, _) => Ok(()),
    }
}

/// Refuses the home if more of the compared pages differ than are equal, or if it lacks the `wanted` proof. If the home is doubted,
/// there must be an equal page.
async fn prove<R: Runtime, S: BlockStore>(
    tiered: &TieredDevice<R, S>,
    wanted: Proof,
) -> Result<()> {
    let (mut same, mut different, mut first) = (0, 0, None);
    // One different page decides, so all are compared.
    let pages = if wanted.no_other_page { usize::MAX } else { PROVING_PAGES };
    for page in tiered.drive().ftl().clean_pages(pages) {
        let Some(content) = clean_content(tiered, page).await? else { continue };
        // A page of zeros proves nothing: any disk has zeros.
        if content == PageBuf::zero() {
            continue;
        }
        match compare_page(tiered, page, &content).await? {
            Compared::Same | Compared::Mixed => same += 1,
            Compared::Differs => {
                if wanted.no_other_page {
                    return Err(differs(page, ""));
                }
                different += 1;
                first = first.or(Some(page));
            }
        }
    }
    let must_show = wanted.an_equal_page;
    let is_doubted = must_show || tiered.home().store().trust() == Trust::Doubted;
    match first {
        Some(page) if different > same => Err(differs(page, "")),
        _ if same == 0 && is_doubted => {
            let (why, otherwise) = match must_show {
                true => (
                    "the journal is lost, and the home shows no claim",
                    "; only if it is the right one and never had a claim, set home.claim = \"none\"",
                ),
                false => ("it is not as its cache left it", ""),
            };
            let context = format!(
                "{UNPROVEN}: {why}, and the flash has no page that home \
                 should have too (put its own home back, or correct home.path: the names of \
                 devices change{otherwise})"
            );
            Err(UNPROVEN.error(ErrorKind::Corrupt, context))
        }
        _ => Ok(()),
    }
}

/// The content that the flash has of a clean page; `None` if it cannot be read.
pub(crate) async fn clean_content<R: Runtime, S: BlockStore>(
    tiered: &TieredDevice<R, S>,
    page: PageNo,
) -> Result<Option<PageBuf>> {
    let mut content = [PageBuf::zero()];
    match tiered.drive().read(page, &mut content, None).await {
        Ok(()) => {
            let [content] = content;
            Ok(Some(content))
        }
        Err(error) if is_damage(error.kind()) || error.kind() == ErrorKind::Io => Ok(None),
        Err(error) => Err(error),
    }
}

async fn compare_page<R: Runtime, S: BlockStore>(
    tiered: &TieredDevice<R, S>,
    page: PageNo,
    content: &PageBuf,
) -> Result<Compared> {
    let [plain, other] = readings(tiered, page).await?;
    let sectors = content.chunks(SECTOR_BYTES);
    let readings = plain.chunks(SECTOR_BYTES).zip(other.chunks(SECTOR_BYTES));
    let mut result = Compared::Same;
    for (sector, (plain, other)) in sectors.zip(readings) {
        result = match (sector == plain, sector == other) {
            (true, _) => result,
            (false, true) => Compared::Mixed,
            (false, false) => return Ok(Compared::Differs),
        };
    }
    Ok(result)
}

/// Two readings of a page on the home: as it is read now, and as it would be read if it were stored the other way, with the claim
/// instead of without it or the reverse.
async fn readings<R: Runtime, S: BlockStore>(
    tiered: &TieredDevice<R, S>,
    page: PageNo,
) -> Result<[Vec<u8>; 2]> {
    let mut there = [PageBuf::zero()];
    tiered.home().read(page, &mut there, None).await?;
    let now = there[0].to_vec();
    let mut other = now.clone();
    if let Some((claim, extent)) = tiered.home().store().mixed()? {
        let parts = extent.parts(page.0 * PAGE_BYTES as u64, PAGE_BYTES);
        parts.for_each(|(part, _)| claim.toggle(&mut other[part]));
    }
    Ok([now, other])
}

/// Repairs the claimed pages of a home whose claim is not intact: writes pages again that the flash has and that differ. Counts
/// the pages of which it is unknown how they are stored.
async fn write_ends<R: Runtime, S: BlockStore>(tiered: &TieredDevice<R, S>) -> Result<Ends> {
    let home = tiered.home();
    let Some((_, extent)) = home.store().mixed()? else { return Ok(Ends::default()) };
    let page_bytes = PAGE_BYTES as u64;
    let pages =
        extent.ranges().map(|range| range.start / page_bytes..range.end.div_ceil(page_bytes));
    let mut is_mixed = home.store().trust() == Trust::Torn;
    let (mut ends, mut of_home) = (Ends::default(), Vec::new());
    for page in pages.into_iter().flatten().map(PageNo) {
        let ftl = tiered.drive().ftl();
        if ftl.is_dirty(page) || ftl.is_lost(page) {
            continue;
        }
        let content = match ftl.is_clean(page) {
            true => clean_content(tiered, page).await?,
            false => None,
        };
        let Some(content) = content else {
            of_home.push(page);
            continue;
        };
        let compared = compare_page(tiered, page, &content).await?;
        if compared != Compared::Same {
            home.write(page, &[content], None).await?;
            ends.written += 1;
        }
        is_mixed |= compared == Compared::Mixed;
    }
    home.flush().await?;
    for page in of_home.into_iter().filter(|_| is_mixed) {
        let readings = readings(tiered, page).await?;
        let is_known = readings[0].chunks(SECTOR_BYTES).zip(readings[1].chunks(SECTOR_BYTES));
        let is_zero = |sector: &[u8]| sector.iter().all(|byte| *byte == 0);
        let mut is_known = is_known.map(|(now, other)| is_zero(now) || is_zero(other));
        ends.unknown += u64::from(!is_known.all(|known| known));
    }
    Ok(ends)
}
