//! Create, open, limits, close.
use std::ffi::c_char;
use std::path::Path;
use tantalum::{Durability, OpenOptions, PAGE_BYTES, Placement, Result, Volume};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::config::{NewConfig, NewSettings};
use tantalum_volume::{VolumeConfig, config, create_volume};

use crate::boundary::{call, check_pointer, invalid, path, put, reference};
use crate::status::TantalumStatus;

/// An open volume. Any number of threads may use it at the same time.
pub struct TantalumVolume(pub(crate) Volume);

/// For tantalum_create: give up what the volume's file or device holds.
pub const TANTALUM_CREATE_OVERWRITE: u32 = 1;

/// For tantalum_open: run the volume on a thread of its own, which cleans also while nobody
/// calls. Without, the calling threads do the work, which is quicker where there is mostly one.
pub const TANTALUM_OPEN_OWN_THREAD: u32 = 1;

/// For tantalum_open: to be read only. Nothing is written to the volume or beside it, so it may lie
/// on a read-only or full file system, and many may have it open like that at once, but nobody while
/// another one may write. Every change is READ_ONLY, tantalum_begin too.
pub const TANTALUM_OPEN_READ_ONLY: u32 = 2;

/// What survives a power cut.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TantalumDurability {
    /// What completed; tantalum_flush costs nothing.
    OnAck = 0,
    /// What completed before the last completed tantalum_flush, and a prefix of what came after,
    /// each write whole or not at all.
    OnFlush = 1,
    /// What completed before the last completed tantalum_flush; of the rest anything.
    Volatile = 2,
}

/// What a volume offers.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TantalumLimits {
    /// Pages of the volume, numbered from 0.
    pub pages: u64,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Pages that one tantalum_write may have; it is all or nothing.
    pub atomic_write_pages_max: u32,
    /// Pages that one transaction may write.
    pub transaction_pages_max: u32,
    /// Transactions that may be open at once.
    pub transactions_max: u32,
    /// Pairs that one tantalum_share may have; 0 where the volume has none.
    pub share_pairs_max: u32,
    /// What survives a power cut.
    pub durability: TantalumDurability,
}

/// Makes a new, empty volume.
///
/// `config_path` names its VOLUME.toml. Where there is none yet, one with every setting at its
/// default is written for a volume of `capacity_bytes`, which is a multiple of 4096. Where there is
/// one it is used as it is, and `capacity_bytes` is 0 or what it says. `flags` is 0 or
/// TANTALUM_CREATE_OVERWRITE.
///
/// Nothing new is left behind after an error. INVALID_INPUT where the volume exists already.
///
/// # Safety
/// `config_path` is NULL (an error) or a string with a zero at its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_create(
    config_path: *const c_char,
    capacity_bytes: u64,
    flags: u32,
) -> TantalumStatus {
    call(|| {
        // SAFETY: promised by the caller.
        let path = unsafe { path(config_path, "config_path") }?;
        check_flags(flags, TANTALUM_CREATE_OVERWRITE)?;
        create(path, capacity_bytes, flags & TANTALUM_CREATE_OVERWRITE != 0)
    })
}

/// Opens the volume of the VOLUME.toml at `config_path`, recovers it where that is needed, and
/// puts a handle into `*volume`. `flags` is 0, TANTALUM_OPEN_OWN_THREAD, TANTALUM_OPEN_READ_ONLY, or
/// both.
///
/// Where another process serves the volume to local ones (`tantalum serve --socket`), that one does the
/// work, and TANTALUM_OPEN_OWN_THREAD has no effect; `config_path` may also be the server's socket.
/// CLOSED is what every call returns when the server has gone: close the handle and open another.
///
/// The handle is the caller's, who gives it back with tantalum_close. Otherwise one process has a
/// volume open, once, or many read it; others get LOCKED, and a child after fork() is another one: there
/// the handle's calls return CLOSED, and tantalum_close frees it and leaves the volume alone.
/// `*volume` is NULL after an error.
///
/// # Safety
/// `config_path` is NULL (an error) or a string with a zero at its end; `volume` is NULL (an error)
/// or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_open(
    config_path: *const c_char,
    flags: u32,
    volume: *mut *mut TantalumVolume,
) -> TantalumStatus {
    call(|| {
        // SAFETY: promised by the caller.
        unsafe { put(volume, std::ptr::null_mut(), "volume") }?;
        // SAFETY: promised by the caller.
        let path = unsafe { path(config_path, "config_path") }?;
        check_flags(flags, TANTALUM_OPEN_OWN_THREAD | TANTALUM_OPEN_READ_ONLY)?;
        let placement = match flags & TANTALUM_OPEN_OWN_THREAD {
            0 => Placement::Caller,
            _ => Placement::Thread,
        };
        let read_only = flags & TANTALUM_OPEN_READ_ONLY != 0;
        let options = OpenOptions { read_only, placement, ..OpenOptions::default() };
        let opened = Volume::open_with(path, options)?;
        let opened = Box::into_raw(Box::new(TantalumVolume(opened)));
        // SAFETY: promised by the caller.
        unsafe { put(volume, opened, "volume") }
    })
}

/// Puts what the volume offers into `*limits`.
///
/// # Safety
/// `volume` is NULL (an error) or open; `limits` is NULL (an error) or has room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_limits(
    volume: *const TantalumVolume,
    limits: *mut TantalumLimits,
) -> TantalumStatus {
    call(|| {
        // SAFETY: promised by the caller.
        let offered = unsafe { reference(volume, "volume") }?.0.limits();
        let value = TantalumLimits {
            pages: offered.pages,
            page_bytes: offered.page_bytes,
            atomic_write_pages_max: offered.atomic_write_pages_max,
            transaction_pages_max: offered.transaction_pages_max,
            transactions_max: offered.transactions_max,
            share_pairs_max: offered.share_pairs_max,
            durability: match offered.durability {
                Durability::OnAck => TantalumDurability::OnAck,
                Durability::OnFlush => TantalumDurability::OnFlush,
                Durability::Volatile => TantalumDurability::Volatile,
            },
        };
        // SAFETY: promised by the caller.
        unsafe { put(limits, value, "limits") }
    })
}

/// Flushes the volume, aborts the transactions that are still open, closes it and frees the handle,
/// whatever is returned: an error says that the flush failed, so that what came after the last
/// completed one may be lost at a power cut. NULL is nothing to close. No other call may be running
/// on the handle, or come after.
///
/// # Safety
/// `volume` is NULL or from tantalum_open and not closed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tantalum_close(volume: *mut TantalumVolume) -> TantalumStatus {
    call(|| {
        if volume.is_null() {
            return Ok(());
        }
        check_pointer(volume, "volume")?;
        // SAFETY: created by `Box::into_raw` in `tantalum_open`; the caller promises that it is closed
        // only once.
        let volume = unsafe { Box::from_raw(volume) };
        volume.0.flush()
    })
}

fn check_flags(flags: u32, known: u32) -> Result<()> {
    if flags & !known != 0 {
        return Err(invalid(format!("flags {flags:#x} has unknown bits")));
    }
    Ok(())
}

fn create(path: &Path, capacity_bytes: u64, overwrite: bool) -> Result<()> {
    let new = (!path.exists()).then(|| NewConfig::at(path));
    let config = if new.is_none() {
        let config = VolumeConfig::read(path)?;
        let says = config.capacity_pages()? * PAGE_BYTES as u64;
        if capacity_bytes != 0 && capacity_bytes != says {
            return Err(invalid(format!(
                "the capacity in {} is {says} bytes: pass that, or 0",
                path.display()
            )));
        }
        config
    } else if capacity_bytes == 0 {
        return Err(invalid(format!(
            "{} does not exist: pass a capacity to create it",
            path.display()
        )));
    } else {
        if !capacity_bytes.is_multiple_of(PAGE_BYTES as u64) {
            return Err(invalid(format!(
                "{capacity_bytes} bytes are not a multiple of {PAGE_BYTES}"
            )));
        }
        config::write_new(path, &format!("{}KiB", capacity_bytes / 1024), &NewSettings::default())?
    };
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    let created = live.run(async move { create_volume(&handle, &config, overwrite).await });
    created.map(drop).inspect_err(|error| new.iter().for_each(|new| new.discard_after(error)))
}
