//! The journal's records of the claim on the home, and of a change of it that can be redone if it
//! is interrupted.
//!
//! There is room for two [records](crate::claim::Change), at bytes 4096 and 8192; the head says
//! which one counts. A change is saved in the other one. The content of the home's ends is saved in
//! the last bytes of the journal, which the committed epoch must not reach. When that is durable,
//! the head is set to say that the claim is being changed. When the change of the home is complete,
//! the head says that the claim is there, or that there is none.
use super::index::pages_for;
use super::{FIRST_CONTENT_BYTE, Journal};
use crate::claim::{Change, Claim, Record};
use crate::fault_points::Fault;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Payload, Result, ResultExt};
use tantalum_media::BlockStore;

const RECORDS_AT: [u64; 2] = [4096, 8192];

/// Selects one of the two records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slot {
    First,
    Second,
}

/// The state of the claim, as recorded in the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    None,
    Changing(Slot),
    On(Slot),
}

impl Slot {
    fn record_at(self) -> u64 {
        RECORDS_AT[self as usize]
    }
}

impl Standing {
    pub(super) fn encode(self) -> u16 {
        match self {
            Standing::None => 0,
            Standing::Changing(slot) => 1 + slot as u16,
            Standing::On(slot) => 3 + slot as u16,
        }
    }

    pub(super) fn decode(field: u16) -> Result<Self> {
        let slot = if field % 2 == 1 { Slot::First } else { Slot::Second };
        match field {
            0 => Ok(Standing::None),
            1 | 2 => Ok(Standing::Changing(slot)),
            3 | 4 => Ok(Standing::On(slot)),
            other => {
                Err(Error::new(ErrorKind::Format, format!("unknown state {other} of the claim")))
            }
        }
    }

    fn other_slot(self) -> Slot {
        match self {
            Standing::Changing(Slot::First) | Standing::On(Slot::First) => Slot::Second,
            _ => Slot::First,
        }
    }
}

impl<S: BlockStore, P: Payload> Journal<S, P> {
    /// Whether the journal says that the home has a claim.
    pub fn has_claim(&self) -> bool {
        matches!(self.heads.claim.get(), Standing::On(_))
    }

    /// Whether a change of the claim was interrupted: nothing may be written to the home before it
    /// is redone.
    pub fn has_unfinished_change(&self) -> bool {
        matches!(self.heads.claim.get(), Standing::Changing(_))
    }

    /// The claim on the home.
    ///
    /// # Errors
    /// `Checksum` or `Format` if the record is damaged; those of the store.
    pub async fn claim(&self) -> Result<Option<Claim>> {
        let Standing::On(slot) = self.heads.claim.get() else { return Ok(None) };
        let record = Record::load(&self.store, slot.record_at()).await;
        Ok(record.context(|| "the journal's record of the claim")?.after)
    }

    /// The change that was interrupted.
    ///
    /// # Errors
    /// `Checksum` or `Format` if the journal is damaged, or no change was interrupted; those of the
    /// store.
    pub async fn unfinished_change(&self) -> Result<Change> {
        let Standing::Changing(slot) = self.heads.claim.get() else {
            return Err(Error::new(ErrorKind::Format, "no change of the claim was begun"));
        };
        let at = |bytes| self.originals_at(bytes);
        let change = Change::load(&self.store, slot.record_at(), at).await;
        change.context(
            || "a change of the claim on the home was cut short, and the journal is damaged",
        )
    }

    /// Whether the journal has room to save `change` besides the committed epoch.
    pub fn has_room_for(&self, change: &Change) -> bool {
        let epoch_pages = self.with_committed(|committed| {
            committed.index.entries.len() as u64 + pages_for(committed.index.len())
        });
        let saved_pages = change.saved_bytes().div_ceil(PAGE_BYTES as u64);
        epoch_pages.unwrap_or(0).saturating_add(saved_pages) <= self.limits.room_pages
    }

    /// Saves the plan of `change`, durably. It must be carried out and [ended](Self::end_change)
    /// before anything else is written to the journal or the home.
    ///
    /// # Errors
    /// `OutOfSpace` if there is no room for it; those of the store.
    pub async fn begin_change(&self, change: &Change) -> Result<()> {
        if !self.has_room_for(change) {
            let context = "the journal has no room for the content of the ends of the home";
            return Err(Error::new(ErrorKind::OutOfSpace, context));
        }
        if Fault::ClaimNotJournaled.is_planted() {
            return Ok(());
        }
        let slot = self.heads.claim.get().other_slot();
        let originals_at = self.originals_at(change.saved_bytes());
        let saved = change.save(&self.store, slot.record_at(), originals_at).await;
        saved.context(|| "saving the content of the ends of the home")?;
        self.heads.claim.set(Standing::Changing(slot));
        self.write_present_head().await
    }

    /// Records, durably, that `change` is complete on the home.
    ///
    /// # Errors
    /// Those of the store; the record may be written despite an error.
    pub async fn end_change(&self, change: &Change) -> Result<()> {
        match (change.after, self.heads.claim.get()) {
            (None, _) => return self.forget_claim().await,
            (Some(_), Standing::Changing(slot)) => self.heads.claim.set(Standing::On(slot)),
            (Some(claim), _) => return self.note_claim(claim).await,
        }
        self.write_present_head().await
    }

    /// Records, durably, that the home has no claim.
    ///
    /// # Errors
    /// Those of the store; the record may be written despite an error.
    pub async fn forget_claim(&self) -> Result<()> {
        self.heads.claim.set(Standing::None);
        self.write_present_head().await
    }

    /// Records, durably, that the home has `claim`, which was found there.
    ///
    /// # Errors
    /// Those of the store; the record may be written despite an error.
    pub async fn note_claim(&self, claim: Claim) -> Result<()> {
        let slot = self.heads.claim.get().other_slot();
        let record = Record {
            before: None,
            after: Some(claim),
            home_bytes: claim.home_bytes(),
            originals_crc: 0,
        };
        record.save(&self.store, slot.record_at()).await?;
        self.heads.claim.set(Standing::On(slot));
        self.write_present_head().await
    }

    async fn write_present_head(&self) -> Result<()> {
        let _turn = self.heads.turn.acquire(1).await;
        let state = self.heads.state.get();
        self.write_head(state).await
    }

    /// The position at which `bytes` bytes at the end of the journal begin.
    fn originals_at(&self, bytes: u64) -> u64 {
        let room_bytes = self.limits.room_pages * PAGE_BYTES as u64;
        FIRST_CONTENT_BYTE + room_bytes.saturating_sub(bytes)
    }
}
