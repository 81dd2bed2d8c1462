//! The page in front of the database: volume page 0.
//!
//! ```text
//! bytes       content, integers little-endian
//! 0..8        magic "TANTSQLT"
//! 8..12       version of this layout, 1
//! 12..16      zero
//! 16..24      size in bytes: the database is not longer than this
//! 24..4092    zero
//! 4092..4096  CRC-32C of the bytes before
//! ```
//!
//! The size is rounded up when the database grows, so that a growing database does not rewrite
//! this page in each transaction.
use tantalum_base::checksum::crc32c;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, Result};

const MAGIC: &[u8; 8] = b"TANTSQLT";
const VERSION: u32 = 1;
const CHECKSUM_AT: usize = PAGE_BYTES - 4;

/// The header page of a database of at most `size_bytes`.
pub(crate) fn encode(size_bytes: u64) -> PageBuf {
    let mut page = [0; PAGE_BYTES];
    page[..8].copy_from_slice(MAGIC);
    page[8..12].copy_from_slice(&VERSION.to_le_bytes());
    page[16..24].copy_from_slice(&size_bytes.to_le_bytes());
    let checksum = crc32c(&page[..CHECKSUM_AT]);
    page[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
    PageBuf::copy_from(&page)
}

/// The size in bytes from the header page; 0 on a volume that was never written.
pub(crate) fn decode(page: &PageBuf) -> Result<u64> {
    if page.iter().all(|byte| *byte == 0) {
        return Ok(0);
    }
    let refuse = |kind, why: String| Err(Error::new(kind, format!("page 0 of the volume: {why}")));
    if &page[..8] != MAGIC {
        return refuse(ErrorKind::Format, "the content of the volume is not a database".into());
    }
    let mut word = [0; 4];
    word.copy_from_slice(&page[CHECKSUM_AT..]);
    if u32::from_le_bytes(word) != crc32c(&page[..CHECKSUM_AT]) {
        return refuse(ErrorKind::Checksum, "the checksum does not match".into());
    }
    word.copy_from_slice(&page[8..12]);
    let version = u32::from_le_bytes(word);
    if version != VERSION {
        return refuse(ErrorKind::Format, format!("version {version}, this program has {VERSION}"));
    }
    let mut size = [0; 8];
    size.copy_from_slice(&page[16..24]);
    Ok(u64::from_le_bytes(size))
}

/// The pages that a database takes from page 0 on, this header among them, if `header` is the page in front of one.
pub fn pages_of_database(header: &PageBuf) -> Option<u64> {
    let size_bytes = decode(header).ok().filter(|_| header.starts_with(MAGIC))?;
    Some(1 + size_bytes.div_ceil(PAGE_BYTES as u64))
}

/// The database's size, and the size recorded in its header, from the first pages of the volume.
pub(crate) fn sizes_told_by(front: &[PageBuf]) -> Result<(u64, u64)> {
    let [header, first] = front else {
        return Err(Error::new(ErrorKind::Format, "the volume gave another number of pages"));
    };
    let recorded_bytes = decode(header)?;
    let size_bytes = size_told_by_sqlite(first).unwrap_or(u64::MAX).min(recorded_bytes);
    Ok((size_bytes, recorded_bytes))
}

/// The database's size according to its first page: page size at byte 16, page count at 28. It is valid only if the change
/// counters at 24 and 92 are equal (SQLite's file format, section 1.3).
fn size_told_by_sqlite(page: &PageBuf) -> Option<u64> {
    let word = |at: usize| u32::from_be_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
    let page_bytes = match u64::from(page[16]) << 8 | u64::from(page[17]) {
        1 => 65536,
        page_bytes => page_bytes,
    };
    (page.starts_with(b"SQLite format 3\0") && word(28) != 0 && word(24) == word(92))
        .then(|| page_bytes * u64::from(word(28)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::Payload;

    #[test]
    fn tells_the_size_and_refuses_the_rest() {
        assert_eq!(decode(&encode(12345)).unwrap(), 12345);
        assert_eq!(decode(&PageBuf::zero()).unwrap(), 0);
        let kind = |change: fn(&mut [u8; PAGE_BYTES])| {
            let mut page = encode(12345);
            change(page.make_mut());
            decode(&page).unwrap_err().kind()
        };
        assert_eq!(kind(|page| page[0] = b'x'), ErrorKind::Format);
        assert_eq!(kind(|page| page[17] ^= 1), ErrorKind::Checksum);
        let other_version = |page: &mut [u8; PAGE_BYTES]| {
            page[8] = 9;
            let checksum = crc32c(&page[..CHECKSUM_AT]);
            page[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        };
        assert_eq!(kind(other_version), ErrorKind::Format);
    }
}
