//! Reads and writes at byte offsets, as pages.
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, Payload, Result};

const PAGE: u64 = PAGE_BYTES as u64;

/// A range of bytes within one page.
struct Part {
    page: PageNo,
    from: usize,
    bytes: usize,
}

/// Splits `bytes` bytes at `offset` into parts of pages.
fn parts(offset: u64, bytes: usize) -> Result<Vec<Part>> {
    let end = offset.checked_add(bytes as u64).ok_or_else(|| {
        let context = format!("{bytes} bytes at {offset} are beyond the largest volume");
        Error::new(ErrorKind::OutOfRange, context)
    })?;
    let pages = offset / PAGE..end.div_ceil(PAGE);
    let part = |page: u64| {
        let from = offset.max(page * PAGE);
        let bytes = (end.min((page + 1) * PAGE) - from) as usize;
        Part { page: PageNo(page), from: (from % PAGE) as usize, bytes }
    };
    Ok(if bytes == 0 { Vec::new() } else { pages.map(part).collect() })
}

/// Fills `out` with the bytes at `offset`, from the pages that `read` returns.
pub(crate) fn read(
    offset: u64,
    out: &mut [u8],
    read: impl FnOnce(PageNo, usize) -> Result<Vec<PageBuf>>,
) -> Result<()> {
    let parts = parts(offset, out.len())?;
    let Some(first) = parts.first() else { return Ok(()) };
    let pages = read(first.page, parts.len())?;
    let mut rest = out;
    for (part, page) in parts.iter().zip(&pages) {
        let (here, after) = rest.split_at_mut(part.bytes);
        here.copy_from_slice(&page[part.from..part.from + part.bytes]);
        rest = after;
    }
    Ok(())
}

/// The new content of all pages that overlap `bytes` at `offset`, in order. `base` returns the old content of a page that
/// changes only in part.
pub(crate) fn pages(
    offset: u64,
    bytes: &[u8],
    mut base: impl FnMut(PageNo) -> Result<PageBuf>,
) -> Result<Vec<PageBuf>> {
    let mut rest = bytes;
    let mut pages = Vec::new();
    for part in parts(offset, bytes.len())? {
        let (here, after) = rest.split_at(part.bytes);
        let whole = part.bytes == PAGE_BYTES;
        let mut page = if whole { PageBuf::zero() } else { base(part.page)? };
        page.make_mut()[part.from..part.from + part.bytes].copy_from_slice(here);
        pages.push(page);
        rest = after;
    }
    Ok(pages)
}
