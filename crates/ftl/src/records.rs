//! Changes of the mapping alone, written to the log as pages of the FTL's own.
//!
//! Layout of a record page (little endian): magic `u32`, count `u32`, then `count` entries of
//! 24 bytes: kind `u64` (1 trim), first page `u64`, pages `u64`. Rest zero. The page's
//! checksum is in its spare.
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, PageRange, Payload, Result};

const MAGIC: u32 = 0x5461_5243; // "TaRC"
const ENTRY_BYTES: usize = 24;
/// Entries that fit in a record page.
pub const ENTRIES_MAX: usize = (PAGE_BYTES - 8) / ENTRY_BYTES;

/// One change of the mapping alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The range holds nothing any more.
    Trim(PageRange),
}

/// A record page of `records` (at most [`ENTRIES_MAX`]).
pub fn encode(records: &[Record]) -> PageBuf {
    assert!(records.len() <= ENTRIES_MAX);
    let mut page = PageBuf::zero();
    let bytes = page.make_mut();
    bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[4..8].copy_from_slice(&(records.len() as u32).to_le_bytes());
    for (record, entry) in records.iter().zip(bytes[8..].chunks_exact_mut(ENTRY_BYTES)) {
        let Record::Trim(range) = record;
        let kind = 1u64;
        entry[..8].copy_from_slice(&kind.to_le_bytes());
        entry[8..16].copy_from_slice(&range.first.0.to_le_bytes());
        entry[16..24].copy_from_slice(&range.pages.to_le_bytes());
    }
    page
}

/// The records of a record page.
pub fn decode(page: &PageBuf) -> Result<Vec<Record>> {
    let word = |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
    let count = word(4) as usize;
    if word(0) != MAGIC || count > ENTRIES_MAX {
        return Err(Error::new(ErrorKind::Corrupt, "record page without its magic number"));
    }
    let entries = page[8..].chunks_exact(ENTRY_BYTES).take(count);
    entries
        .map(|entry| {
            let long = |at: usize| {
                let mut word = [0; 8];
                word.copy_from_slice(&entry[at..at + 8]);
                u64::from_le_bytes(word)
            };
            let range = PageRange::new(PageNo(long(8)), long(16));
            match long(0) {
                1 => Ok(Record::Trim(range)),
                kind => {
                    Err(Error::new(ErrorKind::Corrupt, format!("record of unknown kind {kind}")))
                }
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        let records = [
            Record::Trim(PageRange::new(PageNo(7), 1 << 40)),
            Record::Trim(PageRange::new(PageNo(1), 1)),
        ];
        assert_eq!(decode(&encode(&records)).unwrap(), records);
        assert_eq!(decode(&PageBuf::zero()).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
