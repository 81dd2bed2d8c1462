//! Begin, commit, abort; reads and writes inside; scattered writes in one call.
use std::ffi::c_void;
use tantalum::front_end::{FrontEnd, leave_open};
use tantalum::{Error, ErrorKind, PageNo};

use crate::boundary::{call, check_pointer, put, reference, slice};
use crate::pages::{page_bufs, read, write};
use crate::status::TantalumStatus;
use crate::volume::TantalumVolume;

/// Opens a transaction and puts its number into `*tx`. One that is still open when the volume is
/// closed, or when the process ends, is aborted.
///
/// # Safety
/// `volume` is NULL (an error) or open; `tx` is NULL (an error) or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_begin(
    volume: *const TantalumVolume,
    tx: *mut u64,
) -> TantalumStatus {
    call(|| {
        // SAFETY: promised by the caller.
        let volume = &unsafe { reference(volume, "volume") }?.0;
        // Checked first: otherwise a transaction would be opened whose number nobody gets.
        check_pointer(tx, "tx")?;
        let begun = leave_open(volume.begin()?);
        // SAFETY: promised by the caller.
        unsafe { put(tx, begun, "tx") }
    })
}

/// Makes all that the transaction wrote visible and durable, all or nothing. After an error the
/// transaction has ended, and nothing of it is there, except after CLOSED, LATCHED and PANICKED: then
/// all of it or nothing is there, as the next opening shows. Read it back before repeating it.
///
/// # Safety
/// `volume` is NULL (an error) or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_commit(volume: *const TantalumVolume, tx: u64) -> TantalumStatus {
    // SAFETY: promised by the caller.
    call(|| unsafe { reference(volume, "volume") }?.0.transaction(tx).commit())
}

/// Drops all that the transaction wrote.
///
/// # Safety
/// `volume` is NULL (an error) or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_abort(volume: *const TantalumVolume, tx: u64) -> TantalumStatus {
    // SAFETY: promised by the caller.
    call(|| unsafe { reference(volume, "volume") }?.0.transaction(tx).abort())
}

/// As tantalum_read, but sees what transaction `tx` wrote.
///
/// # Safety
/// `volume` is NULL (an error) or open; `buffer` is NULL (an error) or has the room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_read_tx(
    volume: *const TantalumVolume,
    tx: u64,
    first_page: u64,
    pages: u64,
    buffer: *mut c_void,
) -> TantalumStatus {
    // SAFETY: promised by the caller.
    unsafe { read(volume, Some(tx), first_page, pages, buffer) }
}

/// As tantalum_write, in transaction `tx`: nobody else sees it before the commit. CONFLICT where
/// another open transaction wrote one of the pages. A transaction that nobody used for long may be
/// aborted where a server has the volume: then it is UNKNOWN_TRANSACTION, and the message says why.
///
/// # Safety
/// `volume` is NULL (an error) or open; `content` is NULL (an error) or as long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_write_tx(
    volume: *const TantalumVolume,
    tx: u64,
    first_page: u64,
    pages: u64,
    content: *const c_void,
) -> TantalumStatus {
    // SAFETY: promised by the caller.
    unsafe { write(volume, Some(tx), first_page, pages, content) }
}

/// Writes `count` pages in one transaction of its own, in one round trip: visible and durable when
/// it returns, all or nothing; after CLOSED, LATCHED and PANICKED as tantalum_commit. Page number `page_numbers[i]` takes the page_bytes at
/// `content + i * page_bytes`. Each number stands once; at most transaction_pages_max of them. It takes
/// none of the transactions_max open transactions. CONFLICT where one of these wrote one of the pages.
///
/// # Safety
/// `volume` is NULL (an error) or open; `page_numbers` and `content` are that long, or NULL (an error
/// unless `count` is 0).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_write_scattered(
    volume: *const TantalumVolume,
    page_numbers: *const u64,
    content: *const c_void,
    count: usize,
) -> TantalumStatus {
    call(|| {
        // SAFETY: promised by the caller.
        let volume = &unsafe { reference(volume, "volume") }?.0;
        let pages_max = volume.limits().transaction_pages_max;
        if count > pages_max as usize {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("a transaction of {count} pages is over the volume's limit of {pages_max}"),
            ));
        }
        // SAFETY: promised by the caller.
        let numbers = unsafe { slice(page_numbers, count, "page_numbers") }?;
        // SAFETY: promised by the caller.
        let content = unsafe { page_bufs(content, count, "content") }?;
        let numbers = numbers.iter().copied().map(PageNo);
        volume.write_scattered(numbers.zip(content).collect())
    })
}
