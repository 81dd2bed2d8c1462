//! Page contents that identify themselves.
use tantalum_base::{PAGE_BYTES, PageBuf};

/// A content with its number in every word, so that a partial content is recognised.
pub fn content(number: u64) -> PageBuf {
    PageBuf::copy_from(&number.to_le_bytes().repeat(PAGE_BYTES / 8))
}
