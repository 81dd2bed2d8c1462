//! Registration, and the callbacks of `sqlite3_vfs`.
use super::api::Api;
use super::methods::{FileState, Handle, METHODS, OpenFile};
use super::over_base::{self, OverBase, app_of, over_base};
use super::stop::{caught, set_errno};
use crate::codes::{errno_of, lock};
use crate::database::{Access, Database};
use crate::file::DatabaseFile;
use crate::journal::{Journal, Journals};
use crate::lock_waits;
use crate::memory::{Memory, Room};
use crate::opener::{Options, SharedTrace, VolumeOpener, free_pages};
use libsqlite3_sys as sqlite;
use sqlite::{sqlite3_file, sqlite3_vfs};
use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tantalum::Volume;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::live::Process;

/// Registers a VFS called `name` with the SQLite library linked into this program. A database can then be opened with
/// the volume's path and the VFS's name, for example `file:/path/VOLUME.toml?vfs=NAME`. The VFS stays registered until
/// the process ends.
///
/// A name that is taken is refused as [`ErrorKind::InvalidInput`].
pub fn register(name: &str, opener: impl VolumeOpener, options: Options) -> Result<()> {
    register_with(Api::started()?, name, opener, options)
}

pub(super) fn register_with(
    api: Api,
    name: &str,
    opener: impl VolumeOpener,
    options: Options,
) -> Result<()> {
    over_base::register(api, name, |c_name, base| {
        let ordinary = Room::new(options.cache_pages, options.memory_pages);
        let vfs = Vfs {
            api,
            base,
            name: name.into(),
            opener: Box::new(opener),
            batch_atomic: options.batch_atomic,
            ordinary,
            bulk: ordinary.grown(options.bulk_pages),
            trace: options.trace.map(|sink| Arc::new(Mutex::new(sink))),
            here: AtomicPtr::default(),
        };
        sqlite3_vfs {
            xOpen: Some(x_open),
            xDelete: Some(x_delete),
            xAccess: Some(x_access),
            xGetLastError: Some(x_get_last_error),
            xSleep: Some(x_sleep),
            // SAFETY: `base` is SQLite's default VFS.
            ..unsafe { over_base(c_name, vfs, |base| base.max(size_of::<OpenFile>() as c_int)) }
        }
    })
}

/// A registered VFS.
pub(super) struct Vfs {
    pub(super) api: Api,
    base: *mut sqlite3_vfs,
    pub(super) name: String,
    opener: Box<dyn VolumeOpener>,
    pub(super) batch_atomic: bool,
    ordinary: Room,
    bulk: Room,
    trace: Option<SharedTrace>,
    /// The state of this process. In a forked child it is the parent's state until the child first uses the VFS.
    here: AtomicPtr<Here>,
}

/// The open volumes and other state of one process. A forked child starts with new state and does not touch its
/// parent's: the volumes do not belong to the child, and a lock may be held by a thread that it does not have.
struct Here {
    process: Process,
    memory: Arc<Memory>,
    /// Locked while a volume is opened or closed, so that one is closed completely before the next is opened.
    open: Mutex<BTreeMap<PathBuf, Weak<Database>>>,
    journals: Journals,
    last_error: Mutex<String>,
}

impl Vfs {
    fn here(&self) -> &Here {
        let mut at = self.here.load(Ordering::Acquire);
        loop {
            // SAFETY: null, or leaked below.
            if let Some(here) = unsafe { at.as_ref() }
                && here.process.is_current()
            {
                return here;
            }
            let new = Box::into_raw(Box::new(Here {
                process: Process::current(),
                memory: Arc::new(Memory::new(self.ordinary, self.bulk, free_pages)),
                open: Mutex::default(),
                journals: Journals::default(),
                last_error: Mutex::default(),
            }));
            match self.here.compare_exchange(at, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => at = new,
                Err(other) => {
                    // SAFETY: created above, and nobody else has it.
                    drop(unsafe { Box::from_raw(new) });
                    at = other;
                }
            }
        }
    }

    /// Reports the details that `code` does not contain.
    pub(super) fn report(&self, code: c_int, text: &str) {
        let text = format!("tantalum: {text}");
        self.api.log(code, &text);
        *lock(&self.here().last_error) = text;
    }

    /// Reports a panic; returns `code`.
    fn panicked(&self, code: c_int) -> c_int {
        self.report(code, "a bug made a call panic");
        code
    }

    /// The text of the last report.
    pub(super) fn last_error(&self) -> String {
        lock(&self.here().last_error).clone()
    }

    /// Closes a file, and the volume if this was the last open file on it.
    pub(super) fn close(&self, handle: Box<Handle>) {
        if !handle.is_of_this_process() {
            std::mem::forget(handle);
            return;
        }
        let mut open = lock(&self.here().open);
        drop(handle);
        open.retain(|_, database| database.strong_count() > 0);
    }

    /// The database at `path`, for a connection that only reads or that may write.
    fn open_database(&self, path: &Path, only_reads: bool) -> Result<Arc<Database>> {
        let Here { open, memory, .. } = self.here();
        let mut open = lock(open);
        if let Some(database) = open.get(path).and_then(Weak::upgrade)
            && !database.has_moved()
            && !database.has_gone()
        {
            database.check_usable()?;
            if !only_reads && database.access() == Access::Read {
                self.open_to_write(path, &database)?;
            }
            return Ok(database);
        }
        let (client, access) = self.open_volume(path, only_reads)?;
        let trace = self.trace.clone();
        let database = Arc::new(Database::open(client, trace, access, memory)?);
        open.insert(path.into(), Arc::downgrade(&database));
        Ok(database)
    }

    /// Opens the volume: read-only if `only_reads`, or if its file must not be written.
    fn open_volume(&self, path: &Path, only_reads: bool) -> Result<(Volume, Access)> {
        if only_reads && let Some(client) = self.opener.open_read_only(path) {
            let client = client?;
            let access = if client.is_read_only() { Access::Read } else { Access::Write };
            return Ok((client, access));
        }
        match self.opener.open(path) {
            Ok(client) => {
                let access = if client.is_read_only() { Access::ReadAlone } else { Access::Write };
                Ok((client, access))
            }
            Err(error) if may_not_be_written(&error) => match self.opener.open_read_only(path) {
                Some(client) => Ok((client?, Access::ReadAlone)),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Reopens the volume of a read-only `database` for writing, if it may be written.
    fn open_to_write(&self, path: &Path, database: &Database) -> Result<()> {
        let to_read = || match self.opener.open_read_only(path) {
            Some(client) => client,
            None => self.opener.open(path),
        };
        match database.open_to_write(|| self.opener.open(path), to_read) {
            // A server's volume cannot be reopened here, so behind a read-only server it stays read-only.
            Err(error) if may_not_be_written(&error) || error.kind() == ErrorKind::Unsupported => {
                database.set_read_alone();
                Ok(())
            }
            opened => opened,
        }
    }

    /// The open file for `path`; `None` if the default VFS serves it.
    fn open_file(
        &self,
        path: &Path,
        flags: c_int,
        asked: Asked,
    ) -> std::result::Result<Option<Handle>, c_int> {
        if asked.vfs && !self.opener.is_volume(path) {
            self.report(
                sqlite::SQLITE_CANTOPEN,
                &format!("{} is not a volume, but its name says vfs={}", path.display(), self.name),
            );
            return Err(sqlite::SQLITE_CANTOPEN);
        }
        if flags & sqlite::SQLITE_OPEN_MAIN_DB != 0 && self.opener.is_volume(path) {
            let read_only = asked.immutable || flags & sqlite::SQLITE_OPEN_READONLY != 0;
            return match self.open_database(path, read_only) {
                Ok(database) => {
                    let file = DatabaseFile::new(database, read_only, self.here().memory.share());
                    Ok(Some(Handle::Database(Box::new(file))))
                }
                Err(error) => {
                    let code = match error.kind() {
                        ErrorKind::Locked => sqlite::SQLITE_BUSY,
                        ErrorKind::Latched => sqlite::SQLITE_IOERR,
                        _ => sqlite::SQLITE_CANTOPEN,
                    };
                    self.report(code, &format!("opening {}: {error}", path.display()));
                    set_errno(errno_of(&error));
                    Err(code)
                }
            };
        }
        if self.is_side_file(path) {
            if flags & sqlite::SQLITE_OPEN_WAL != 0 {
                self.report(sqlite::SQLITE_CANTOPEN, WAL_REFUSED);
                return Err(sqlite::SQLITE_CANTOPEN);
            }
            let journals = &self.here().journals;
            let new = flags & sqlite::SQLITE_OPEN_CREATE != 0;
            let found = if new { None } else { journals.find(path) };
            return Ok(Some(Handle::Journal(found.unwrap_or_else(|| self.new_journal(path)))));
        }
        Ok(None)
    }

    /// A new journal called `path`, which may borrow pages of its database.
    fn new_journal(&self, path: &Path) -> Arc<Mutex<Journal>> {
        let Here { open, journals, .. } = self.here();
        let journal = journals.create(path);
        let name = path.as_os_str().as_bytes().strip_suffix(b"-journal").unwrap_or_default();
        // Opening another volume may take long. Meanwhile a new journal does not wait for it, and borrows no pages.
        if let Ok(open) = open.try_lock()
            && let Some(database) = open.get(Path::new(OsStr::from_bytes(name)))
            && let Some(database) = database.upgrade()
        {
            database.lend_to(&journal);
        }
        journal
    }

    /// Whether `path` is the path of a volume's journal or WAL, as SQLite names them.
    fn is_side_file(&self, path: &Path) -> bool {
        let name = path.as_os_str().as_bytes();
        [&b"-journal"[..], b"-wal"]
            .iter()
            .filter_map(|suffix| name.strip_suffix(*suffix))
            .any(|volume| self.opener.is_volume(Path::new(OsStr::from_bytes(volume))))
    }
}

// SAFETY: `base` is set once, to SQLite's default VFS.
unsafe impl OverBase for Vfs {
    fn base(&self) -> *mut sqlite3_vfs {
        self.base
    }
}

/// Whether opening failed because the file must not be written, due to its mode or its file system.
fn may_not_be_written(error: &Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let kind = std::io::Error::from_raw_os_error(errno_of(error)).kind();
    matches!(kind, PermissionDenied | ReadOnlyFilesystem)
}

/// The answer to a request for WAL.
pub(super) const WAL_REFUSED: &str = "a volume has no WAL and needs none: each commit is one \
     device transaction; the journal mode is unchanged";

/// # Safety
/// `name` is a C string that outlives the result.
unsafe fn path_of<'a>(name: *const c_char) -> &'a Path {
    // SAFETY: as the caller promises.
    Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()))
}

/// Requests in the name of a database.
#[derive(Clone, Copy, Default)]
struct Asked {
    /// The VFS that it names, as in `file:x.toml?vfs=tantalum`. Names without it get here if they are attached to a
    /// database that uses this VFS.
    vfs: bool,
    /// A promise that nobody changes the file (`immutable=1`). SQLite may still open it for writing.
    immutable: bool,
}

/// # Safety
/// `name` and `flags` are the arguments that SQLite passed to xOpen.
unsafe fn asked_by(api: &Api, name: *const c_char, flags: c_int) -> Asked {
    let database = sqlite::SQLITE_OPEN_MAIN_DB | sqlite::SQLITE_OPEN_URI;
    if flags & database != database {
        return Asked::default();
    }
    // SAFETY: as the caller promises.
    unsafe {
        Asked {
            vfs: api.has_uri_parameter(name, c"vfs"),
            immutable: api.uri_boolean(name, c"immutable", false),
        }
    }
}

/// The settings in a file's name.
///
/// # Safety
/// `name` and `flags` are the arguments that SQLite passed to xOpen.
unsafe fn state_of(api: &Api, name: *const c_char, flags: c_int) -> FileState {
    let default = FileState::default();
    // Other names may have no parameters, and no terminator after them.
    if flags & sqlite::SQLITE_OPEN_URI == 0 {
        return default;
    }
    // SAFETY: as the caller promises.
    let powersafe_overwrite =
        unsafe { api.uri_boolean(name, c"psow", default.powersafe_overwrite) };
    FileState { powersafe_overwrite, ..default }
}

unsafe extern "C" fn x_open(
    table: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes its own table, a file of `szOsFile` bytes to fill in, and a name that is null only for
    // temporary files.
    unsafe {
        (*file).pMethods = std::ptr::null();
        let vfs = app_of::<Vfs>(table);
        let opened = caught(|| match name.is_null() {
            true => Ok(None),
            false => vfs.open_file(path_of(name), flags, asked_by(&vfs.api, name, flags)),
        });
        match opened.unwrap_or_else(|| Err(vfs.panicked(sqlite::SQLITE_IOERR))) {
            Ok(Some(handle)) => {
                let read_only = matches!(&handle, Handle::Database(file) if file.is_read_only());
                file.cast::<OpenFile>().write(OpenFile {
                    base: sqlite3_file { pMethods: &METHODS },
                    vfs,
                    handle: Box::into_raw(Box::new(handle)),
                    state: state_of(&vfs.api, name, flags),
                });
                let writing = sqlite::SQLITE_OPEN_READWRITE | sqlite::SQLITE_OPEN_CREATE;
                if !out_flags.is_null() {
                    *out_flags = match read_only {
                        true => flags & !writing | sqlite::SQLITE_OPEN_READONLY,
                        false => flags,
                    };
                }
                sqlite::SQLITE_OK
            }
            Ok(None) => match (*vfs.base).xOpen {
                Some(open) => open(vfs.base, name, file, flags, out_flags),
                None => sqlite::SQLITE_CANTOPEN,
            },
            Err(code) => code,
        }
    }
}

/// Sleeps for `microseconds`, less the time of earlier waits for locks that were refused.
unsafe extern "C" fn x_sleep(table: *mut sqlite3_vfs, microseconds: c_int) -> c_int {
    let asked = Duration::from_micros(u64::try_from(microseconds).unwrap_or(0));
    let rest = lock_waits::rest_of_sleep(asked).as_micros() as c_int;
    if rest > 0 {
        // SAFETY: SQLite passes its own table.
        unsafe { over_base::x_sleep::<Vfs>(table, rest) };
    }
    microseconds
}

unsafe extern "C" fn x_delete(table: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: SQLite passes its own table and a name.
    unsafe {
        let vfs = app_of::<Vfs>(table);
        let path = path_of(name);
        match caught(|| (vfs.opener.is_volume(path), vfs.is_side_file(path))) {
            None => vfs.panicked(sqlite::SQLITE_IOERR_DELETE),
            Some((true, _)) => {
                // Programs that need a fresh database delete the old one, for example speedtest1.
                let told = format!("{} is a volume, which SQLite may not delete", path.display());
                vfs.report(sqlite::SQLITE_IOERR_DELETE, &told);
                sqlite::SQLITE_IOERR_DELETE
            }
            Some((_, true)) => {
                vfs.here().journals.delete(path);
                sqlite::SQLITE_OK
            }
            Some(_) => over_base::x_delete::<Vfs>(table, name, sync),
        }
    }
}

unsafe extern "C" fn x_access(
    table: *mut sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes its own table, a name, and a place for the result.
    unsafe {
        let vfs = app_of::<Vfs>(table);
        match caught(|| vfs.is_side_file(path_of(name))) {
            None => vfs.panicked(sqlite::SQLITE_IOERR_ACCESS),
            Some(true) => {
                let there = vfs.here().journals.find(path_of(name)).is_some();
                *out = c_int::from(there && flags == sqlite::SQLITE_ACCESS_EXISTS);
                sqlite::SQLITE_OK
            }
            Some(false) => over_base::x_access::<Vfs>(table, name, flags, out),
        }
    }
}

/// The text describes the last failure in this VFS. The number is `errno`. The default VFS sets it for its own failures,
/// which include those of files that were passed on to it. Failures of open files of this VFS set it as well.
unsafe extern "C" fn x_get_last_error(
    table: *mut sqlite3_vfs,
    bytes: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite passes its own table and `bytes` bytes at `out`; the default VFS is not asked for a text.
    unsafe {
        let vfs = app_of::<Vfs>(table);
        let number = match (*vfs.base).xGetLastError {
            Some(method) => method(vfs.base, 0, std::ptr::null_mut()),
            None => 0,
        };
        if bytes > 0 && !out.is_null() {
            let text = vfs.last_error();
            let length = text.len().min(bytes as usize - 1);
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), out, length);
            *out.add(length) = 0;
        }
        number
    }
}
