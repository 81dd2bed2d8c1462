//! Read, write, flush, trim, share.
use std::ffi::c_void;
use tantalum::front_end::{FrontEnd, leave_open};
use tantalum::{Transaction, Volume};
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, PageRange, Result};

use crate::boundary::{call, check_pointer, copy_out, invalid, reference, slice};
use crate::status::TantalumStatus;
use crate::volume::TantalumVolume;

/// Page `to` takes the content that page `from` has.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TantalumPair {
    /// The page that is remapped.
    pub to: u64,
    /// The page whose content it takes; keeps it.
    pub from: u64,
}

/// Reads `pages` pages from page `first_page` into `buffer`, which has room for that many times
/// page_bytes and needs no alignment. A page that was never written reads as zeros. After an error
/// the buffer is unchanged; content that does not match its checksum is never given out.
///
/// # Safety
/// `volume` is NULL (an error) or open; `buffer` is NULL (an error) or has the room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_read(
    volume: *const TantalumVolume,
    first_page: u64,
    pages: u64,
    buffer: *mut c_void,
) -> TantalumStatus {
    // SAFETY: promised by the caller.
    unsafe { read(volume, None, first_page, pages, buffer) }
}

/// Writes `pages` pages from page `first_page` on, all or nothing, at most atomic_write_pages_max
/// of them. `content` is that many times page_bytes, without alignment; it is copied and stays the
/// caller's. What survives a power cut when this has returned is in TantalumLimits.durability.
/// CONFLICT where an open transaction wrote one of the pages.
///
/// # Safety
/// `volume` is NULL (an error) or open; `content` is NULL (an error) or as long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_write(
    volume: *const TantalumVolume,
    first_page: u64,
    pages: u64,
    content: *const c_void,
) -> TantalumStatus {
    // SAFETY: promised by the caller.
    unsafe { write(volume, None, first_page, pages, content) }
}

/// Makes everything that completed before durable.
///
/// # Safety
/// `volume` is NULL (an error) or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_flush(volume: *const TantalumVolume) -> TantalumStatus {
    // SAFETY: promised by the caller.
    call(|| unsafe { reference(volume, "volume") }?.0.flush())
}

/// Gives `pages` pages from `first_page` on up: they read as zeros, and their room is free. CONFLICT
/// where an open transaction wrote one of them.
///
/// # Safety
/// `volume` is NULL (an error) or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_trim(
    volume: *const TantalumVolume,
    first_page: u64,
    pages: u64,
) -> TantalumStatus {
    call(|| {
        // SAFETY: promised by the caller.
        let volume = &unsafe { reference(volume, "volume") }?.0;
        volume.trim(PageRange::new(PageNo(first_page), pages))
    })
}

/// Remaps `count` pairs at once, all or none, at most share_pairs_max of them: each page `to` takes
/// the content of its page `from`, which keeps it, without a second copy being written. UNSUPPORTED
/// where share_pairs_max is 0, UNMAPPED where a page `from` holds nothing, INVALID_INPUT where a page
/// is `to` twice, or both `to` and `from`, CONFLICT where an open transaction wrote a page `to`.
///
/// # Safety
/// `volume` is NULL (an error) or open; `pairs` points to `count` pairs, or is NULL (an error unless
/// `count` is 0).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_share(
    volume: *const TantalumVolume,
    pairs: *const TantalumPair,
    count: usize,
) -> TantalumStatus {
    call(|| {
        // SAFETY: promised by the caller.
        let volume = &unsafe { reference(volume, "volume") }?.0;
        let pairs_max = volume.limits().share_pairs_max;
        if pairs_max > 0 && count > pairs_max as usize {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("a share of {count} pairs is over the volume's limit of {pairs_max}"),
            ));
        }
        // SAFETY: promised by the caller.
        let pairs = unsafe { slice(pairs, count, "pairs") }?;
        volume.share(pairs.iter().map(|pair| (PageNo(pair.to), PageNo(pair.from))).collect())
    })
}

/// As tantalum_share with the pairs (to, from), (to + 1, from + 1), ... for `pages` pages. The two
/// ranges may not overlap.
///
/// # Safety
/// `volume` is NULL (an error) or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_share_range(
    volume: *const TantalumVolume,
    to: u64,
    from: u64,
    pages: u64,
) -> TantalumStatus {
    call(|| {
        // SAFETY: promised by the caller.
        let volume = &unsafe { reference(volume, "volume") }?.0;
        let pairs = volume.limits().share_range_pairs(PageNo(to), PageNo(from), pages)?;
        volume.share(pairs)
    })
}

/// # Safety
/// As [`tantalum_read`].
pub(crate) unsafe fn read(
    volume: *const TantalumVolume,
    tx: Option<u64>,
    first_page: u64,
    pages: u64,
    buffer: *mut c_void,
) -> TantalumStatus {
    call(|| {
        // SAFETY: promised by the caller.
        let volume = &unsafe { reference(volume, "volume") }?.0;
        let first = PageNo(first_page);
        volume.limits().check_range(PageRange::new(first, pages))?;
        if pages == 0 {
            return Ok(());
        }
        check_pointer(buffer.cast::<u8>(), "buffer")?;
        // The range was checked, so this is no more than the largest volume has.
        let count = pages as usize;
        let content = match tx {
            Some(tx) => in_transaction(volume, tx, |open| open.read(first, count))?,
            None => volume.read(first, count)?,
        };
        let parts = content.iter().map(|page| &page[..]);
        // SAFETY: promised by the caller.
        unsafe { copy_out(parts, buffer.cast(), count * PAGE_BYTES) };
        Ok(())
    })
}

/// # Safety
/// As [`tantalum_write`].
pub(crate) unsafe fn write(
    volume: *const TantalumVolume,
    tx: Option<u64>,
    first_page: u64,
    pages: u64,
    content: *const c_void,
) -> TantalumStatus {
    call(|| {
        // SAFETY: promised by the caller.
        let volume = &unsafe { reference(volume, "volume") }?.0;
        let first = PageNo(first_page);
        volume.limits().check_range(PageRange::new(first, pages))?;
        let pages_max = volume.limits().atomic_write_pages_max;
        if pages > u64::from(pages_max) {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("a write of {pages} pages is over the volume's limit of {pages_max}"),
            ));
        }
        // SAFETY: promised by the caller.
        let content = unsafe { page_bufs(content, pages as usize, "content") }?;
        match tx {
            Some(tx) => in_transaction(volume, tx, |open| open.write(first, content)),
            None => volume.write(first, content),
        }
    })
}

/// Calls `body` with the open transaction `tx`, which stays open.
fn in_transaction<T>(
    volume: &Volume,
    tx: u64,
    body: impl FnOnce(&mut Transaction) -> Result<T>,
) -> Result<T> {
    let mut transaction = volume.transaction(tx);
    let result = body(&mut transaction);
    leave_open(transaction);
    result
}

/// Copies of the `count` pages at `content`.
///
/// # Safety
/// If `content` is not null, it points to that many pages.
pub(crate) unsafe fn page_bufs(
    content: *const c_void,
    count: usize,
    name: &str,
) -> Result<Vec<PageBuf>> {
    let length = count.checked_mul(PAGE_BYTES);
    let length = length.ok_or_else(|| invalid(format!("{name} is longer than memory")))?;
    // SAFETY: promised by the caller.
    let bytes = unsafe { slice(content.cast::<u8>(), length, name) }?;
    Ok(bytes.chunks(PAGE_BYTES).map(PageBuf::copy_from).collect())
}
