//! Puts a claim on a home, or takes one off.
//!
//! First the content of the claimed bytes without any claim is saved elsewhere, together with the plan. So
//! each sector can be written again in its final form, whether it was written before or not. The final form
//! never depends on the present content of the sector. A sector that has neither its old nor its new form
//! was changed by another program: then nothing is written.
//!
//! | offset | bytes | the record of a change |
//! |---|---|---|
//! | 0 | 8 | magic `TantClam` |
//! | 8 | 8 | bytes of the home, both ends of which are claimed |
//! | 16 | 4 | CRC-32C of the claimed bytes without any claim |
//! | 20 | 4 | 1: there is a claim before the change; 2: there is one afterwards; or both |
//! | 512 | 512 | the claim before it, or zeros |
//! | 1024 | 512 | the claim afterwards, or zeros |
//! | 4092 | 4 | CRC-32C of the 4092 bytes before |
use super::evidence::read_extent;
use super::extent::can_end;
use super::{Claim, Extent, SECTOR_BYTES};
use crate::fault_points::Fault;
use tantalum_base::checksum::crc32c;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result, ResultExt};
use tantalum_media::BlockStore;

const MAGIC: &[u8; 8] = b"TantClam";
const BEFORE: u32 = 1;
const AFTER: u32 = 2;
const BEFORE_AT: usize = SECTOR_BYTES;
const AFTER_AT: usize = 2 * SECTOR_BYTES;
const CRC_AT: usize = PAGE_BYTES - 4;

/// A change of the claim at the ends of a home.
#[derive(Clone, PartialEq, Eq)]
pub struct Change {
    /// The claim before it.
    pub before: Option<Claim>,
    /// The claim afterwards.
    pub after: Option<Claim>,
    extent: Extent,
    home_bytes: u64,
    /// The content of the claimed bytes without any claim.
    originals: Vec<u8>,
}

/// The record of a change, without the saved bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) before: Option<Claim>,
    pub(crate) after: Option<Claim>,
    pub(crate) home_bytes: u64,
    pub(crate) originals_crc: u32,
}

impl Change {
    /// Plans to put `claim` on a home that has none. Writes nothing.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn put_on<S: BlockStore>(home: &S, claim: Claim) -> Result<Self> {
        Self::plan(home, Extent::of_claim(&claim, home)?, None, Some(claim)).await
    }

    /// Plans to take `claim` off the home that has it. Writes nothing.
    ///
    /// # Errors
    /// Those of the store; `Corrupt` if the home is shorter than it was.
    pub async fn take_off<S: BlockStore>(home: &S, claim: Claim) -> Result<Self> {
        Self::plan(home, Extent::of_claim(&claim, home)?, Some(claim), None).await
    }

    /// Plans to complete `claim` on a home of which another program overwrote sectors with zeros.
    /// The content of these sectors under the claim will be zeros. Writes nothing.
    ///
    /// # Errors
    /// As for [`take_off`](Self::take_off).
    pub(super) async fn mend<S: BlockStore>(home: &S, claim: Claim) -> Result<Self> {
        let mut change = Self::take_off(home, claim).await?;
        for sector in change.originals.chunks_mut(SECTOR_BYTES) {
            if sector == claim.sector() {
                sector.fill(0);
            }
        }
        Ok(Change { before: None, after: Some(claim), ..change })
    }

    async fn plan<S: BlockStore>(
        home: &S,
        extent: Extent,
        before: Option<Claim>,
        after: Option<Claim>,
    ) -> Result<Self> {
        let mut originals = read_extent(home, extent).await?;
        if let Some(claim) = &before {
            claim.toggle(&mut originals);
        }
        let home_bytes = before.or(after).map_or(0, |claim| claim.home_bytes());
        Ok(Change { before, after, extent, home_bytes, originals })
    }

    /// Whether the new claim is visible on the home itself, without the journal.
    pub fn shows(&self) -> bool {
        self.originals.chunks(SECTOR_BYTES).any(|sector| sector.iter().all(|byte| *byte == 0))
    }

    /// Number of bytes that [`save`](Self::save) writes besides the record.
    pub(crate) fn saved_bytes(&self) -> u64 {
        saved_bytes(self.extent)
    }

    /// The record.
    pub(crate) fn record(&self) -> Record {
        Record {
            before: self.before,
            after: self.after,
            home_bytes: self.home_bytes,
            originals_crc: crc32c(&self.originals),
        }
    }

    /// Saves everything needed to redo the change: its record at byte `record_at` of `store`, and
    /// the content of the claimed bytes without any claim at `originals_at`. Durable when it
    /// returns.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn save<S: BlockStore>(
        &self,
        store: &S,
        record_at: u64,
        originals_at: u64,
    ) -> Result<()> {
        let mut at = originals_at;
        for piece in self.originals.chunks(super::OPERATION_BYTES) {
            let mut buf = store.buffer(piece.len().next_multiple_of(PAGE_BYTES));
            let (saved, rest) = buf.split_at_mut(piece.len());
            saved.copy_from_slice(piece);
            rest.fill(0);
            store.recycle(store.write(at, buf, false).await?);
            at += piece.len() as u64;
        }
        self.record().save(store, record_at).await
    }

    /// Reads a change that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// `Format` if there is none, `Checksum` if it is damaged; those of the store.
    pub(crate) async fn load<S: BlockStore>(
        store: &S,
        record_at: u64,
        originals_at: impl FnOnce(u64) -> u64,
    ) -> Result<Self> {
        let record = Record::load(store, record_at).await?;
        let Record { before, after, home_bytes, originals_crc } = record;
        let extent = Extent::of(home_bytes);
        let mut at = originals_at(saved_bytes(extent));
        let mut originals = Vec::with_capacity(extent.bytes() as usize);
        let damaged = || {
            Error::new(ErrorKind::Checksum, "the saved content of the ends of the home is damaged")
        };
        if at.checked_add(saved_bytes(extent)).is_none_or(|end| end > store.bytes()) {
            return Err(damaged());
        }
        while originals.len() < extent.bytes() as usize {
            let length = (extent.bytes() as usize - originals.len()).min(super::OPERATION_BYTES);
            let buf = store.buffer(length.next_multiple_of(PAGE_BYTES));
            let buf = store.read(at, buf).await?;
            originals.extend_from_slice(&buf[..length]);
            store.recycle(buf);
            at += length as u64;
        }
        if crc32c(&originals) != originals_crc {
            return Err(damaged());
        }
        Ok(Change { before, after, extent, home_bytes, originals })
    }

    /// Writes the ends of `home` in their final form; durable when it returns. May be repeated,
    /// even after it was interrupted.
    ///
    /// # Errors
    /// Those of the store; `Corrupt`, with nothing written, if a sector has neither its old nor its
    /// new form.
    pub async fn carry_out<S: BlockStore>(&self, home: &S) -> Result<()> {
        if !can_end(self.home_bytes, home.bytes()) {
            let context =
                format!("the home has {} bytes, but had {}", home.bytes(), self.home_bytes);
            return Err(Error::new(ErrorKind::Corrupt, context));
        }
        let found = read_extent(home, self.extent).await?;
        self.check(&found)?;
        for (range, place) in self.extent.operations() {
            let mut buf = home.buffer((range.end - range.start) as usize);
            let place = place..place + buf.len();
            match Fault::ClaimToggled.is_planted() {
                false => {
                    buf.copy_from_slice(&self.originals[place]);
                    self.after.iter().for_each(|claim| claim.toggle(&mut buf));
                }
                true => {
                    buf.copy_from_slice(&found[place]);
                    self.before.iter().chain(&self.after).for_each(|claim| claim.toggle(&mut buf));
                }
            }
            let written = home.write(range.start, buf, false).await;
            home.recycle(written.context(|| "writing the ends of the home")?);
        }
        home.sync().await.context(|| "syncing the home")
    }

    fn check(&self, found: &[u8]) -> Result<()> {
        let sectors = found.chunks(SECTOR_BYTES).zip(self.originals.chunks(SECTOR_BYTES));
        let is_one = |found: &[u8], original: &[u8], claim: &Option<Claim>| match claim {
            None => found == original,
            Some(claim) => {
                let under = original.iter().zip(claim.sector()).map(|(byte, text)| byte ^ text);
                under.eq(found.iter().copied())
            }
        };
        let mut known = sectors.map(|(found, original)| {
            is_one(found, original, &self.before) || is_one(found, original, &self.after)
        });
        if known.all(|known| known) {
            return Ok(());
        }
        let context = "somebody changed the home while its claim was being changed";
        Err(Error::new(ErrorKind::Corrupt, context))
    }

    /// Copies the content of the claimed bytes without any claim over `bytes`, which start at
    /// `offset` of the home.
    pub(super) fn show(&self, offset: u64, bytes: &mut [u8]) {
        for (part, place) in self.extent.parts(offset, bytes.len()) {
            let length = part.len();
            bytes[part].copy_from_slice(&self.originals[place..place + length]);
        }
    }
}

/// Bytes needed to save the content of `extent`, in whole pages.
fn saved_bytes(extent: Extent) -> u64 {
    extent.bytes().next_multiple_of(PAGE_BYTES as u64)
}

impl Record {
    /// Writes the record; durable when it returns.
    pub(crate) async fn save<S: BlockStore>(&self, store: &S, at: u64) -> Result<()> {
        let mut page = store.buffer(PAGE_BYTES);
        page.fill(0);
        let flags = self.before.map_or(0, |_| BEFORE) | self.after.map_or(0, |_| AFTER);
        let mut put = |at: usize, field: &[u8]| page[at..at + field.len()].copy_from_slice(field);
        put(0, MAGIC);
        put(8, &self.home_bytes.to_le_bytes());
        put(16, &self.originals_crc.to_le_bytes());
        put(20, &flags.to_le_bytes());
        self.before.iter().for_each(|claim| put(BEFORE_AT, claim.sector()));
        self.after.iter().for_each(|claim| put(AFTER_AT, claim.sector()));
        let crc = crc32c(&page[..CRC_AT]);
        page[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        store.recycle(store.write(at, page, false).await?);
        store.sync().await
    }

    /// Reads a record.
    ///
    /// # Errors
    /// As for [`Change::load`].
    pub(crate) async fn load<S: BlockStore>(store: &S, at: u64) -> Result<Self> {
        if store.bytes() < at + PAGE_BYTES as u64 {
            return Err(Error::new(ErrorKind::Format, "there is no record of a claim"));
        }
        let page = store.read(at, store.buffer(PAGE_BYTES)).await?;
        let record = Self::decode(&page);
        store.recycle(page);
        record
    }

    fn decode(page: &[u8]) -> Result<Self> {
        if page[..8] != *MAGIC {
            return Err(Error::new(ErrorKind::Format, "there is no record of a claim"));
        }
        let damaged = || Error::new(ErrorKind::Checksum, "the record of the claim is damaged");
        let word = |at: usize| page[at..at + 4].try_into().map(u32::from_le_bytes).unwrap_or(0);
        if crc32c(&page[..CRC_AT]) != word(CRC_AT) {
            return Err(damaged());
        }
        let claim = |flag: u32, at: usize| match word(20) & flag {
            0 => Ok(None),
            _ => Claim::of_sector(&page[at..at + SECTOR_BYTES]).map(Some).ok_or_else(damaged),
        };
        Ok(Record {
            before: claim(BEFORE, BEFORE_AT)?,
            after: claim(AFTER, AFTER_AT)?,
            home_bytes: u64::from(word(8)) | u64::from(word(12)) << 32,
            originals_crc: word(16),
        })
    }
}
