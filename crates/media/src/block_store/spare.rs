//! Space that a sparse file reserves past its end, for when its file system is full.
//!
//! The file system under a sparse file may be full at any write. Writes that are already accepted must still reach
//! the file, or the log could not continue. So the file reserves some space past its end, and releases it when a
//! write finds no other. From then on the store is full: callers check before they accept new writes
//! (`BlockStore::check_room`), and refuse them until the reserve is restored. Full is a transient state, and no write
//! fails because of it.
use super::opening::io;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::cell::Cell;
use std::fs::File;
use std::path::Path;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::{Live, Runtime};

/// Minimum time between attempts to allocate space that the file system reports as free but does not grant; a quota
/// may be the reason.
const RETRY_NS: u64 = 20_000_000;

/// The reserve of one file.
pub(super) struct Spare {
    live: Live,
    /// Size of the reserve in bytes; 0 for none.
    wanted: Cell<u64>,
    held: Cell<bool>,
    /// Time of the last attempt to allocate it.
    tried_ns: Cell<Option<u64>>,
}

impl Spare {
    pub(super) fn new(live: &Live) -> Spare {
        let (wanted, held) = (Cell::new(0), Cell::new(false));
        Spare { live: live.clone(), wanted, held, tried_ns: Cell::new(None) }
    }

    /// Reserves `bytes` past the end of `file` from now on.
    pub(super) fn keep(&self, file: &File, path: &Path, bytes: u64) {
        self.wanted.set(bytes);
        // Ignore the error: the writer gets it from the next check.
        let _ = self.check(file, path);
    }

    /// Ensures that the reserve is held, and allocates it if necessary.
    ///
    /// # Errors
    /// `OutOfSpace` if the file system is full.
    pub(super) fn check(&self, file: &File, path: &Path) -> Result<()> {
        let wanted = self.wanted.get();
        if wanted == 0 || self.held.get() {
            return Ok(());
        }
        let free = rustix::fs::fstatvfs(file);
        if free.is_ok_and(|free| free.f_bavail.saturating_mul(free.f_frsize) < wanted) {
            return Err(full(path, wanted));
        }
        let now_ns = self.live.now_ns();
        if self.tried_ns.get().is_some_and(|tried_ns| now_ns < tried_ns + RETRY_NS) {
            return Err(full(path, wanted));
        }
        self.tried_ns.set(Some(now_ns));
        let end = file.metadata().map_err(|error| io(path, "looking at", error))?.len();
        match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, end, wanted) {
            Ok(()) => {
                self.held.set(true);
                Ok(())
            }
            Err(Errno::NOSPC | Errno::DQUOT) => {
                // Some file systems keep the space that they allocated before they ran out.
                let _ = file.set_len(end);
                Err(full(path, wanted))
            }
            // The reserve is not supported here: then a write to a full file system fails.
            Err(_) => {
                self.wanted.set(0);
                Ok(())
            }
        }
    }

    /// Called after a write failed with `error`. Returns whether to retry it, because space was released.
    pub(super) fn makes_room(&self, file: &File, error: &Error) -> bool {
        if self.wanted.get() == 0 || !is_no_space(error) {
            return false;
        }
        self.give_back(file);
        true
    }

    /// Releases the reserve.
    pub(super) fn give_back(&self, file: &File) {
        if self.held.replace(false) {
            // Setting the same length frees the space allocated past the end.
            let _ = file.metadata().and_then(|metadata| file.set_len(metadata.len()));
        }
    }
}

/// Whether `error` was caused by a full file system, a quota or the limit on file size.
pub(super) fn is_no_space(error: &Error) -> bool {
    std::iter::successors(error.cause(), |source| source.source())
        .filter_map(|source| source.downcast_ref::<std::io::Error>())
        .any(|error| says_no_space(error.kind()))
}

/// Like [`is_no_space`], for an operating-system error.
pub(super) fn says_no_space(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(kind, StorageFull | QuotaExceeded | FileTooLarge)
}

fn full(path: &Path, wanted: u64) -> Error {
    let context = format!(
        "the file system of {} is full: the volume takes no writes until {} KiB are free there",
        path.display(),
        wanted >> 10
    );
    Error::new(ErrorKind::OutOfSpace, context)
}
