//! Opens a file or a block device, and keeps others from using it at the same time.
//!
//! A lock excludes other processes of this program. The kernel reports other users. A block device can be opened
//! exclusively, as file systems, swap and other programs do. For a file there is only the kernel's report
//! ([`in_use`](super::in_use)).
use super::Place;
use super::file::FileStoreOptions;
use super::in_use::{Kernel, is_busy};
use super::refusals::{FOLDER, IN_USE, NO_STORE, NOT_ALLOWED, OPEN, OPEN_HERE, READ_ONLY_DEVICE};
use crate::fault_points::Fault;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;
use tantalum_base::{Error, ErrorKind, Result, file_kind};
use tantalum_runtime::live::named_file::{Named, open_named};

/// Maximum wait for a file that no living process is known to hold.
const WAIT: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(10);

/// Opens the file and locks it, with direct I/O if requested and possible; returns the options in effect. A reader
/// shares the file with other readers, and with a file system mounted from it, which does no harm.
pub(super) fn open_alone(
    path: &Path,
    create: bool,
    options: FileStoreOptions,
) -> Result<(File, FileStoreOptions)> {
    let asks = !options.read_only && !Fault::OthersNotAsked.is_planted();
    if asks {
        refuse_used(path)?;
        refuse_read_only(path)?;
    }
    // `O_EXCL` together with `O_CREAT` would have another meaning.
    let exclusive = asks && Place::of(path).is_device();
    let open = |flags: OFlags| {
        let flags = if exclusive { flags | OFlags::EXCL } else { flags };
        let mut open = OpenOptions::new();
        open.read(true).write(!options.read_only).create(create && !exclusive).mode(options.mode);
        open_named(path, &open, flags)
    };
    let opened = wait_for(path, || match open_direct(open, options) {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if exclusive && is_busy(&error) => refuse_used(path).map(|()| None),
        Err(error) => Err(not_opened(path, error)),
    })?;
    let opened = match opened {
        (Named::Usable(file), options) => (file, options),
        (Named::Other(kind), _) => return Err(no_store(path, kind)),
    };
    lock(&opened.0, path, options.read_only)?;
    Ok(opened)
}

/// Opens with direct I/O if requested and possible; returns the options in effect.
fn open_direct(
    open: impl Fn(OFlags) -> std::io::Result<Named>,
    options: FileStoreOptions,
) -> std::io::Result<(Named, FileStoreOptions)> {
    if options.direct {
        match open(OFlags::DIRECT) {
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {}
            opened => return opened.map(|file| (file, options)),
        }
    }
    Ok((open(OFlags::empty())?, FileStoreOptions { direct: false, ..options }))
}

/// The error for a failed open, with the reason, and the remedy if known.
fn not_opened(path: &Path, error: std::io::Error) -> Error {
    use std::io::ErrorKind::{IsADirectory, PermissionDenied};
    match error.kind() {
        IsADirectory => no_store(path, file_kind::FOLDER),
        PermissionDenied => {
            let context = format!(
                "{} {NOT_ALLOWED}: run the command as root, or as a user who may read and write it",
                path.display()
            );
            Error::io(context, error)
        }
        _ => io(path, "opening", error),
    }
}

/// The error if `path` leads to something of this `kind`, which is neither a file nor a block device.
pub fn no_store(path: &Path, kind: &str) -> Error {
    let at = path.display();
    match kind {
        file_kind::FOLDER => FOLDER.error(ErrorKind::Io, format!("{at} {FOLDER}")),
        _ => NO_STORE.error(ErrorKind::InvalidInput, format!("{at} is {kind}{NO_STORE}")),
    }
}

/// Fails if the kernel reports a user of the file or device.
fn refuse_used(path: &Path) -> Result<()> {
    match Kernel::running().use_of(path) {
        None => Ok(()),
        Some(used) => {
            let context = format!("{} {used}", path.display());
            Err(Error::new(ErrorKind::InvalidInput, context))
        }
    }
}

/// Fails if the kernel writes nothing to the device. It could be opened, and each write would fail.
fn refuse_read_only(path: &Path) -> Result<()> {
    if !Kernel::running().is_read_only(path) {
        return Ok(());
    }
    let at = path.display();
    let context = format!(
        "{at} {READ_ONLY_DEVICE}: `blockdev --setrw {at}`, unless it is write-protected, or was set up so (`losetup -r`)"
    );
    Err(READ_ONLY_DEVICE.error(ErrorKind::ReadOnly, context))
}

/// Locks the file, shared with other readers if `shared`. This is a kernel lock, so no lock file is left behind.
fn lock(file: &File, path: &Path, shared: bool) -> Result<()> {
    wait_for(path, || {
        let locked = if shared { file.try_lock_shared() } else { file.try_lock() };
        match locked {
            Ok(()) => Ok(Some(())),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(io(path, "locking", error)),
        }
    })
}

/// Retries `attempt` until it returns a value, or fails with the name of the holder. A killed process holds its lock
/// until the kernel has finished its I/O, possibly after its parent was notified of its exit. So if no living process
/// is known to hold the file, this waits.
fn wait_for<T>(path: &Path, mut attempt: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(gotten) = attempt()? {
            return Ok(gotten);
        }
        let holder = holder(path);
        if holder.is_some_and(is_alive) || waited >= WAIT {
            let holder = match holder {
                Some(pid) if pid == std::process::id() => format!(
                    "{} {OPEN_HERE}: use the volume that is open (in Rust a clone of it), or close it first",
                    path.display()
                ),
                Some(pid) => format!(
                    "{OPEN} {pid}) has {} open: stop it first, or let `tantalum serve` share the \
                     volume (with --socket for SQLite and programs)",
                    path.display()
                ),
                None => format!(
                    "{} {IN_USE}: another process, a file system of another container, or one over \
                     several devices; it must be free",
                    path.display()
                ),
            };
            return Err(Error::new(ErrorKind::Locked, holder));
        }
        pause(RETRY);
        waited += RETRY;
    }
}

#[expect(clippy::disallowed_methods, reason = "opening is synchronous, and only for real files")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Whether the process runs: it exists and is not a zombie.
fn is_alive(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    // The state follows the process name in parentheses, which may contain any character.
    state.is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

/// The process that holds the lock of the file, according to /proc/locks.
pub fn holder(path: &Path) -> Option<u32> {
    let inode = std::fs::metadata(path).ok()?.ino();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let pid = fields.nth(4)?;
        let locked = fields.next()?;
        (locked.rsplit(':').next()? == inode.to_string()).then(|| pid.parse().ok())?
    })
}

pub(super) fn io(path: &Path, what: &str, error: std::io::Error) -> Error {
    Error::io(format!("{what} {}", path.display()), error)
}

#[cfg(test)]
mod tests;
