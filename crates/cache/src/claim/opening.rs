//! Opens a home: an interrupted change is redone, and the claim is brought into the wanted state.
//! Otherwise the home is refused.
use super::{Change, Claim, Claimed, Evidence, Extent, Trust, look};
use crate::fault_points::Fault;
use crate::journal::Journal;
use crate::refusals::{CLAIM_MISSING, OTHERS_HOME, WRITTEN_OVER};
use tantalum_base::{Error, ErrorKind, Payload, Result, ResultExt};
use tantalum_media::BlockStore;
use tantalum_media::block_store::StoreLayer;

/// The possible remedies if a home shows its claim, and another program wrote to it.
const WAYS_OUT: &str = "put its own home back; `tantalum check --accept-loss` takes \
                        this home and keeps the newer pages of the flash; `tantalum attach \
                        --force` takes this home and gives up the flash";

/// The owner of a home, and how the home is opened.
#[derive(Clone, Copy, Debug)]
pub struct HomeOwner {
    /// Identity of the volume.
    pub volume_id: u128,
    /// Whether nothing may be written.
    pub read_only: bool,
    /// Whether a home that another program wrote to may be opened. Its [`Trust`] shows that case.
    pub accept_loss: bool,
    /// The claim on a home that cannot show it, found by comparison with pages of the flash because the journal's record is lost.
    pub claim_found: Option<Claim>,
}

/// Opens `home`, whose `journal` is stored elsewhere, as its cache sees it. An interrupted change
/// of the claim is redone.
///
/// # Errors
/// `Corrupt` if the claim was overwritten, or belongs to another volume; those of the stores.
pub async fn open_home<S, J, P>(
    home: S,
    journal: Option<&Journal<J, P>>,
    owner: HomeOwner,
) -> Result<Claimed<S>>
where
    S: BlockStore,
    J: BlockStore,
    P: Payload,
{
    if let Some(journal) = journal.filter(|journal| journal.has_unfinished_change()) {
        let change = journal.unfinished_change().await?;
        if owner.read_only {
            return Ok(Claimed::unfinished(home, change));
        }
        carry_out(&change, &home).await?;
        journal.end_change(&change).await?;
    }
    let (present, trust) = present_claim(&home, journal, owner).await?;
    let claimed = Claimed::plain(home);
    claimed.set_trust(trust);
    if trust == Trust::Doubted {
        claimed.set_missing(present);
    } else if let Some(claim) = present {
        claimed.set(Some((claim, Extent::of_claim(&claim, claimed.inner())?)));
    }
    Ok(claimed)
}

/// The claim on the home, and the evidence that it is the volume's own. The home is not changed.
///
/// - If loss is accepted, another program may have written to the home.
/// - If loss is accepted and nothing may be written, the claim may be another volume's.
/// - If the home is doubted, the result is the claim that it should show.
async fn present_claim<S, J, P>(
    home: &S,
    journal: Option<&Journal<J, P>>,
    owner: HomeOwner,
) -> Result<(Option<Claim>, Trust)>
where
    S: BlockStore,
    J: BlockStore,
    P: Payload,
{
    let Evidence { claim: shown, zero_sectors } = look(home).await?;
    if let Some(other) = shown.filter(|shown| shown.volume_id() != owner.volume_id) {
        if owner.accept_loss && owner.read_only {
            return Ok((Some(other), Trust::Own));
        }
        return Err(of_another(&other));
    }
    let known = match journal {
        Some(journal) => match journal.claim().await.and_then(|known| of_owner(known, owner)) {
            Ok(known) => known,
            Err(error) if shown.is_none() => return Err(error),
            // The record is not needed, as the home shows the claim itself.
            Err(_) => None,
        },
        None => None,
    };
    // The claim that the home shows counts first: the content is stored under it.
    let Some(present) = shown.or(known).or(owner.claim_found) else {
        return Ok((None, Trust::Unseen));
    };
    if zero_sectors > 0 && !Fault::ClaimNotChecked.is_planted() {
        return match (owner.accept_loss, shown) {
            (true, Some(_)) => Ok((shown, Trust::Torn)),
            (true, None) => Ok((Some(present), Trust::Doubted)),
            (false, Some(_)) => Err(written_over(&present, zero_sectors)),
            (false, None) => Err(claim_missing(&present)),
        };
    }
    if shown.is_none() {
        tracing::warn!("the home does not show its claim: no sector at its ends holds zeros");
    }
    if let Some(journal) = journal.filter(|_| known != Some(present) && !owner.read_only) {
        // The journal is new, or it records another claim than that on the home.
        journal.note_claim(present).await?;
    }
    Ok((Some(present), if shown.is_some() { Trust::Own } else { Trust::Unseen }))
}

/// The claim in the journal's record, unless it is another volume's.
fn of_owner(known: Option<Claim>, owner: HomeOwner) -> Result<Option<Claim>> {
    match known {
        Some(other) if other.volume_id() != owner.volume_id => {
            let context = format!(
                "the journal's record of the claim is of volume {:032x}, and the journal of {:032x}",
                other.volume_id(),
                owner.volume_id
            );
            Err(Error::new(ErrorKind::Corrupt, context))
        }
        known => Ok(known),
    }
}

/// The refusal of a home that shows `other`, the claim of another volume.
pub fn of_another(other: &Claim) -> Error {
    let context = format!(
        "{OTHERS_HOME} {:032x}, whose journal is {}, and not to this one (put its own home back, or \
         correct home.path; `tantalum detach` or `tantalum rescue` of that volume ends its claim)",
        other.volume_id(),
        other.journal()
    );
    OTHERS_HOME.error(ErrorKind::Corrupt, context)
}

fn claim_missing(claim: &Claim) -> Error {
    let context = format!(
        "{CLAIM_MISSING} of volume {:032x}, which its cache put on it: it is probably another disk, \
         as the names of devices change (`tantalum stat` of a disk tells whose home it is). Put \
         its own home back, or correct home.path. If it is the volume's home, and somebody took \
         the claim off, `tantalum check --accept-loss` compares its pages with those of the flash \
         before it writes anything, and refuses another disk",
        claim.volume_id()
    );
    CLAIM_MISSING.error(ErrorKind::Corrupt, context)
}

fn written_over(claim: &Claim, zero_sectors: u64) -> Error {
    let context = format!(
        "{WRITTEN_OVER}: {zero_sectors} sectors of 512 bytes at its ends are zero on the medium; \
         under the claim of volume {:032x} no sector can be zero ({WAYS_OUT})",
        claim.volume_id()
    );
    WRITTEN_OVER.error(ErrorKind::Corrupt, context)
}

/// Records that `home` differs from its marks, so that it counts as doubted unless it shows its
/// claim.
pub fn doubt<S>(home: &Claimed<S>) {
    if home.trust() == Trust::Unseen {
        home.set_trust(Trust::Doubted);
    }
}

/// Accepts a home as it is although another program wrote to it. If it shows a part of its claim,
/// the claim is completed. If it shows none, it counts as a home without a claim.
///
/// # Errors
/// Those of the stores. Until it succeeds, the next opening finds the home as this one did.
pub async fn accept<S, J, P>(journal: &Journal<J, P>, home: &Claimed<S>) -> Result<()>
where
    S: BlockStore,
    J: BlockStore,
    P: Payload,
{
    match (home.trust(), home.claim()) {
        (Trust::Own | Trust::Unseen, _) => return Ok(()),
        (Trust::Torn, Some(claim)) => {
            let change = Change::mend(home.inner(), claim).await?;
            perform(journal, &change, home.inner()).await?;
        }
        (Trust::Torn, None) | (Trust::Doubted, _) => journal.forget_claim().await?,
    }
    home.set_trust(if home.claim().is_some() { Trust::Own } else { Trust::Unseen });
    Ok(())
}

/// Puts the claim that is `wanted` on a home that has none, or takes off a claim that is not
/// wanted. Does neither if the claim would not be visible on the home, or if the journal has no
/// room for the change. A claim with another text stays: rewriting it would put the ends of the
/// home at risk only to correct a path.
///
/// # Errors
/// Those of the stores.
pub async fn settle<S, J, P>(
    journal: &Journal<J, P>,
    home: &Claimed<S>,
    wanted: Option<Claim>,
) -> Result<()>
where
    S: BlockStore,
    J: BlockStore,
    P: Payload,
{
    let (change, claim) = match (home.claim(), wanted) {
        (None, Some(claim)) => (Change::put_on(home.inner(), claim).await?, Some(claim)),
        (Some(claim), None) => (Change::take_off(home.inner(), claim).await?, None),
        (None, None) | (Some(_), Some(_)) => return Ok(()),
    };
    if let Some(why) = why_not(journal, &change) {
        let now = if home.claim().is_some() { "keeps its claim" } else { "gets no claim" };
        tracing::warn!("the home {now}: {why}");
        return Ok(());
    }
    perform(journal, &change, home.inner()).await?;
    let extent = claim.map(|claim| Extent::of_claim(&claim, home.inner())).transpose()?;
    home.set(claim.zip(extent));
    Ok(())
}

fn why_not<J: BlockStore, P: Payload>(
    journal: &Journal<J, P>,
    change: &Change,
) -> Option<&'static str> {
    if change.after.is_some() && !change.shows() {
        Some(
            "no sector of 512 bytes at its ends is zero, so that a claim could not be seen there (set home.claim = \"none\")",
        )
    } else if !journal.has_room_for(change) {
        Some("the journal is full; the next opening of the volume tries again")
    } else {
        None
    }
}

/// Makes the home an image of its own, without a claim and without an owner. The content of the
/// journal has been applied.
///
/// # Errors
/// Those of the stores. After opening the home again, this can be repeated.
pub async fn release<S, J, P>(journal: &Journal<J, P>, home: &Claimed<S>) -> Result<()>
where
    S: BlockStore,
    J: BlockStore,
    P: Payload,
{
    if let Some(claim) = home.claim() {
        journal.mark_applied().await?;
        let change = Change::take_off(home.inner(), claim).await?;
        journal.begin_change(&change).await?;
        carry_out(&change, home.inner()).await?;
        home.set(None);
    }
    journal.give_up().await
}

/// Puts `claim` on `home`, which has none.
///
/// # Errors
/// `InvalidInput`, with nothing written, if the claim would not be visible on the home; those of
/// the stores.
pub async fn put_on<S, J, P>(journal: &Journal<J, P>, home: &S, claim: Claim) -> Result<()>
where
    S: BlockStore,
    J: BlockStore,
    P: Payload,
{
    let change = Change::put_on(home, claim).await?;
    if !change.shows() {
        let context = "no sector of 512 bytes in the first and the last MiB of the home is zero, so that a claim could not be seen \
                       there: set home.claim = \"none\"";
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    perform(journal, &change, home).await
}

/// Takes `claim` off `home`.
///
/// # Errors
/// Those of the stores.
pub async fn take_off<S, J, P>(journal: &Journal<J, P>, home: &S, claim: Claim) -> Result<()>
where
    S: BlockStore,
    J: BlockStore,
    P: Payload,
{
    let change = Change::take_off(home, claim).await?;
    perform(journal, &change, home).await
}

/// Performs `change`, so that it can be redone if it is interrupted.
async fn perform<S, J, P>(journal: &Journal<J, P>, change: &Change, home: &S) -> Result<()>
where
    S: BlockStore,
    J: BlockStore,
    P: Payload,
{
    journal.begin_change(change).await?;
    carry_out(change, home).await?;
    journal.end_change(change).await
}

async fn carry_out<S: BlockStore>(change: &Change, home: &S) -> Result<()> {
    let carried_out = change.carry_out(home).await;
    carried_out.context(|| {
        "changing the claim on the home (nothing is lost; repeat the command when the home can be read and written)"
    })
}
