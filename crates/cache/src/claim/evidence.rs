//! Evidence of a claim on a home.
use super::{Claim, Extent, OPERATION_BYTES, SECTOR_BYTES};
use std::collections::BTreeMap;
use tantalum_base::{Result, ResultExt};
use tantalum_media::BlockStore;

/// The evidence in some bytes of a home, whole sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The claim that most sectors show in clear, if any does.
    pub claim: Option<Claim>,
    /// Number of zero sectors. Under a claim there are none, so a program that does not know the
    /// claim wrote them.
    pub zero_sectors: u64,
}

/// Finds the claim that most of the sectors show, and counts the zero sectors.
pub fn claim_in(bytes: &[u8]) -> Evidence {
    let mut shown: BTreeMap<&[u8], (u64, Claim)> = BTreeMap::new();
    let mut zero_sectors = 0;
    for sector in bytes.chunks_exact(SECTOR_BYTES) {
        if sector.iter().all(|byte| *byte == 0) {
            zero_sectors += 1;
        } else if let Some(claim) = Claim::of_sector(sector) {
            shown.entry(sector).or_insert((0, claim)).0 += 1;
        }
    }
    let claim = shown.into_values().max_by_key(|(count, _)| *count).map(|(_, claim)| claim);
    Evidence { claim, zero_sectors }
}

/// The evidence on `home`, in the bytes that a claim made now would cover. If these show a claim
/// that was made when the home was shorter, the evidence is in the bytes that this claim covers.
///
/// # Errors
/// Those of the store; `Corrupt` if the home is shorter than when it was claimed.
pub async fn look<S: BlockStore>(home: &S) -> Result<Evidence> {
    let extent = Extent::of(home.bytes());
    let evidence = claim_in(&read_extent(home, extent).await?);
    let Some(claim) = evidence.claim else { return Ok(evidence) };
    match Extent::of_claim(&claim, home)? {
        its if its == extent => Ok(evidence),
        its => Ok(claim_in(&read_extent(home, its).await?)),
    }
}

/// The bytes of `extent`, as they are on the medium.
pub(super) async fn read_extent<S: BlockStore>(home: &S, extent: Extent) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(extent.bytes() as usize);
    for (range, _) in extent.operations() {
        debug_assert!(range.end - range.start <= OPERATION_BYTES as u64);
        let buf = home.buffer((range.end - range.start) as usize);
        let buf = home.read(range.start, buf).await.context(|| "reading the ends of the home")?;
        bytes.extend_from_slice(&buf);
        home.recycle(buf);
    }
    Ok(bytes)
}
