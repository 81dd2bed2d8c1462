//! Room that a sparse file keeps behind its end, for when its file system is full.
//!
//! The file system under a sparse file may be full at any write. Writes that were accepted by then still have to reach
//! it, or the log behind it could not go on. So the file has some room beyond its end, and gives it back when a write finds no
//! other. From then on it is full: whoever takes new writes asks before (`BlockStore::check_room`), and refuses them until the
//! file has that room again. Full is a state that passes, and no write fails because of it.
use super::opening::io;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::cell::Cell;
use std::fs::File;
use std::path::Path;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::{Live, Runtime};

/// How often room is asked for that the file system says it has, and does not give: a quota may be in the way.
const RETRY_NS: u64 = 20_000_000;

/// The room behind one file.
pub(super) struct Spare {
    live: Live,
    /// How much is wanted; 0 for none.
    wanted: Cell<u64>,
    held: Cell<bool>,
    /// When it was asked for last.
    tried_ns: Cell<Option<u64>>,
}

impl Spare {
    pub(super) fn new(live: &Live) -> Spare {
        let (wanted, held) = (Cell::new(0), Cell::new(false));
        Spare { live: live.clone(), wanted, held, tried_ns: Cell::new(None) }
    }

    /// Keeps `bytes` behind the end of `file` from now on.
    pub(super) fn keep(&self, file: &File, path: &Path, bytes: u64) {
        self.wanted.set(bytes);
        // Whoever writes is told.
        let _ = self.check(file, path);
    }

    /// Has the room, now or again.
    ///
    /// # Errors
    /// `OutOfSpace` where the file system is full.
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
                // Some file systems keep what they allocated before they ran out of space.
                let _ = file.set_len(end);
                Err(full(path, wanted))
            }
            // It cannot be kept here: then a full file system fails the write that finds it so.
            Err(_) => {
                self.wanted.set(0);
                Ok(())
            }
        }
    }

    /// A write failed because of `error`: whether it is to be tried again, as there is room now.
    pub(super) fn makes_room(&self, file: &File, error: &Error) -> bool {
        if self.wanted.get() == 0 || !is_no_space(error) {
            return false;
        }
        self.give_back(file);
        true
    }

    /// Gives the room to whoever needs it.
    pub(super) fn give_back(&self, file: &File) {
        if self.held.replace(false) {
            // To the same length: what is allocated behind the end goes.
            let _ = file.metadata().and_then(|metadata| file.set_len(metadata.len()));
        }
    }
}

/// Whether `error` says that the file system, a quota or the limit of a file's size leaves no room.
pub(super) fn is_no_space(error: &Error) -> bool {
    std::iter::successors(error.cause(), |source| source.source())
        .filter_map(|source| source.downcast_ref::<std::io::Error>())
        .any(|error| says_no_space(error.kind()))
}

/// As [`is_no_space`], of the operating system's error.
pub(super) fn says_no_space(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(kind, StorageFull | QuotaExceeded | FileTooLarge)
}

fn full(path: &Path, wanted: u64) -> Error {
    let context = format!(
        "the file system of {} is full: nothing more is written to the volume until it has room for {} KiB again",
        path.display(),
        wanted >> 10
    );
    Error::new(ErrorKind::OutOfSpace, context)
}
