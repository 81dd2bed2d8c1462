//! The state of a home without a claim after the cache's last write to it. It serves to detect changes
//! that were made behind the cache.
//!
//! There are two places in the journal, at bytes 12288 and 16384, written in turn; the newer intact one
//! counts.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | magic `TantMark` |
//! | 8 | 8 | sequence number: counts the marks |
//! | 16 | 4 | 0: nothing is known of the home; 1: the cache is writing to it; 2: it has written everything, and synced it |
//! | 20 | 4 | a bit for each of the first 32 pages, from the lowest on: its checksum is valid |
//! | 24 | 8 | bytes of the home |
//! | 32 | 8 | time of its last modification, in nanoseconds since 1970; 0 if unknown |
//! | 64 | 128 | CRC-32C of each of its first 32 pages |
//! | 4092 | 4 | CRC-32C of the 4092 bytes before |
use std::cell::Cell;
use tantalum_base::checksum::crc32c;
use tantalum_base::{PAGE_BYTES, Result, ResultExt};
use tantalum_media::BlockStore;

/// Number of pages at the beginning of a home that are checked: superblocks of file systems are
/// there.
pub(super) const PAGES: usize = 32;

const MARKS_AT: [u64; 2] = [12288, 16384];
const MAGIC: &[u8; 8] = b"TantMark";
const CHECKSUMS_AT: usize = 64;
const CRC_AT: usize = PAGE_BYTES - 4;
/// Sequence numbers are below this. A mark with a larger one is invalid.
const SEQUENCE_END: u64 = 1 << 62;

/// The recorded state of a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) state: State,
    pub(super) home_bytes: u64,
    pub(super) checksums: [Option<u32>; PAGES],
}

/// Whether the cache is writing to the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Unknown,
    Writing,
    Settled { modified_ns: u64 },
}

impl Mark {
    pub(super) const UNKNOWN: Mark =
        Mark { state: State::Unknown, home_bytes: 0, checksums: [None; PAGES] };

    fn encode(&self, sequence: u64, page: &mut [u8]) {
        page.fill(0);
        let (state, modified_ns) = match self.state {
            State::Unknown => (0_u32, 0),
            State::Writing => (1, 0),
            State::Settled { modified_ns } => (2, modified_ns),
        };
        let known = (0..PAGES).filter(|at| self.checksums[*at].is_some());
        let known = known.fold(0_u32, |bits, at| bits | 1 << at);
        let mut put = |at: usize, field: &[u8]| page[at..at + field.len()].copy_from_slice(field);
        put(0, MAGIC);
        put(8, &sequence.to_le_bytes());
        put(16, &state.to_le_bytes());
        put(20, &known.to_le_bytes());
        put(24, &self.home_bytes.to_le_bytes());
        put(32, &modified_ns.to_le_bytes());
        for (at, checksum) in (CHECKSUMS_AT..).step_by(4).zip(self.checksums) {
            put(at, &checksum.unwrap_or(0).to_le_bytes());
        }
        let crc = crc32c(&page[..CRC_AT]);
        page[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    }

    /// The mark and its sequence number; `None` if the page is no mark, or damaged.
    fn decode(page: &[u8]) -> Option<(u64, Self)> {
        let word = |at: usize| page[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let is_mark = page[..8] == *MAGIC && crc32c(&page[..CRC_AT]) == word(CRC_AT);
        if !is_mark || long(8) >= SEQUENCE_END {
            return None;
        }
        let state = match word(16) {
            1 => State::Writing,
            2 => State::Settled { modified_ns: long(32) },
            _ => State::Unknown,
        };
        let mut checksums = [None; PAGES];
        for (at, checksum) in checksums.iter_mut().enumerate() {
            *checksum = (word(20) >> at & 1 == 1).then(|| word(CHECKSUMS_AT + 4 * at));
        }
        Some((long(8), Mark { state, home_bytes: long(24), checksums }))
    }
}

/// The newest mark in `journal`, and its sequence number.
///
/// # Errors
/// Those of the store.
pub(super) async fn newest<J: BlockStore>(journal: &J) -> Result<(u64, Mark)> {
    let mut newest = (0, Mark::UNKNOWN);
    for at in MARKS_AT {
        let page = journal.read(at, journal.buffer(PAGE_BYTES)).await;
        let page = page.context(|| "reading the journal's marks of the home")?;
        newest = Mark::decode(&page).filter(|mark| mark.0 > newest.0).unwrap_or(newest);
        journal.recycle(page);
    }
    Ok(newest)
}

/// Records in `journal` that nothing is known of the home, because another cache will be put over
/// it, whatever its content.
///
/// # Errors
/// Those of the store.
pub async fn forget_marks<J: BlockStore>(journal: J) -> Result<()> {
    let (sequence, _) = newest(&journal).await?;
    let marks = Marks::new(journal, sequence);
    if marks.is_empty() { Ok(()) } else { marks.write(&Mark::UNKNOWN).await }
}

/// The marks in a journal.
pub(super) struct Marks<J> {
    journal: J,
    sequence: Cell<u64>,
}

impl<J: BlockStore> Marks<J> {
    /// The marks of `journal`; the newest has this sequence number.
    pub(super) fn new(journal: J, sequence: u64) -> Self {
        Marks { journal, sequence: Cell::new(sequence) }
    }

    /// Whether the journal has no marks.
    pub(super) fn is_empty(&self) -> bool {
        self.sequence.get() == 0
    }

    /// Makes `mark` the current one; durable when it returns.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn write(&self, mark: &Mark) -> Result<()> {
        let sequence = self.sequence.get() + 1;
        let mut page = self.journal.buffer(PAGE_BYTES);
        mark.encode(sequence, &mut page);
        let at = MARKS_AT[(sequence % 2) as usize];
        let written = self.journal.write(at, page, true).await;
        self.journal.recycle(written.context(|| "writing a mark of the home to the journal")?);
        self.sequence.set(sequence);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_what_was_said_and_damaged_nothing() {
        let mut checksums = [None; PAGES];
        checksums[3] = Some(7);
        checksums[31] = Some(0);
        for state in [State::Unknown, State::Writing, State::Settled { modified_ns: 1 << 60 }] {
            let mark = Mark { state, home_bytes: 1 << 40, checksums };
            let mut page = [0xa5; PAGE_BYTES];
            mark.encode(9, &mut page);
            assert_eq!(Mark::decode(&page), Some((9, mark)));
            page[100] ^= 1;
            assert_eq!(Mark::decode(&page), None);
        }
    }
}
