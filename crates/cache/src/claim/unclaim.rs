//! Makes a home readable again with nothing but the home: flash and journal are lost, or it is a
//! copy that was made below the cache.
use super::{Change, Claim, Evidence, look};
use tantalum_base::{Error, ErrorKind, Result, ResultExt};
use tantalum_media::BlockStore;

/// Positions in the undo file: of the record of the change, and of the content of the home's ends.
const RECORD_AT: u64 = 0;
const ORIGINALS_AT: u64 = 4096;

/// Bytes of an undo file.
pub const UNDO_BYTES: u64 = ORIGINALS_AT + (2 << 20);

/// Takes off the claim that `home` shows. The content of its ends is first saved in `undo`, 2 MiB
/// and a page, so that this can be repeated if it is interrupted. Returns the claim.
///
/// # Errors
/// `InvalidInput` if the home shows no claim; `Corrupt` if a change of the claim was interrupted,
/// or `undo` belongs to another home; those of the stores.
pub async fn unclaim<S: BlockStore, U: BlockStore>(home: &S, undo: &U) -> Result<Claim> {
    let begun = Change::load(undo, RECORD_AT, |_| ORIGINALS_AT).await;
    if let Ok(change) = begun
        && let Some(claim) = change.before
    {
        let context = "the undo file belongs to another home or to an earlier claim: remove it if it is not needed";
        change.carry_out(home).await.context(|| context)?;
        return Ok(claim);
    }
    let Evidence { claim, zero_sectors } = look(home).await?;
    let Some(claim) = claim else {
        let context = "the home shows no claim: it has none, or no sector of 512 bytes at its ends \
                       holds zeros (then only its journal or its flash can make it readable: \
                       `tantalum rescue`, `tantalum detach`)";
        return Err(Error::new(ErrorKind::InvalidInput, context));
    };
    if zero_sectors > 0 {
        let context = format!(
            "the claim covers only a part of the home: a change of the claim was interrupted and \
             {} has the rest (`tantalum rescue`), or somebody wrote to the home since",
            claim.journal()
        );
        return Err(Error::new(ErrorKind::Corrupt, context));
    }
    let change = Change::take_off(home, claim).await?;
    change.save(undo, RECORD_AT, ORIGINALS_AT).await.context(|| "writing the undo file")?;
    change.carry_out(home).await?;
    Ok(claim)
}
