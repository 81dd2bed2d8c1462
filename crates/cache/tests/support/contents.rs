//! Contents of pages that say which they are.
use tantalum_base::{PAGE_BYTES, PageBuf};

/// A content with its number in every word, so that a part of it is seen to be one.
pub fn content(number: u64) -> PageBuf {
    PageBuf::copy_from(&number.to_le_bytes().repeat(PAGE_BYTES / 8))
}
