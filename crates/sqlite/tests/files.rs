//! File controls of an open file, and the behaviour if the volume's own file is replaced, or must not be
//! written.
mod common;
use common::disk::Disk;
use common::{Stage, new_volume, one, open_volume};
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use tantalum::Volume;
use tantalum_base::{Error, Result};
use tantalum_sqlite::VolumeOpener;

/// Calls a file control of the main database's file; returns the code and the resulting `argument`.
fn ask<T>(connection: &Connection, operation: c_int, mut argument: T) -> (c_int, T) {
    #[expect(unsafe_code, reason = "file controls have no safe interface")]
    // SAFETY: each test passes the argument that the operation expects.
    let code = unsafe {
        let argument = (&raw mut argument).cast::<c_void>();
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), operation, argument)
    };
    (code, argument)
}

#[test]
fn file_controls_are_answered_as_sqlites_own_vfs_does() {
    let stage = Stage::new(true);
    let connection = stage.open();
    connection.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();
    let number = |operation, number: c_int| ask(&connection, operation, number);
    assert_eq!(number(ffi::SQLITE_FCNTL_CHUNK_SIZE, 1 << 20), (ffi::SQLITE_OK, 1 << 20));
    assert_eq!(ask(&connection, ffi::SQLITE_FCNTL_SIZE_HINT, 1i64 << 30).0, ffi::SQLITE_OK);
    for (operation, at_first) in
        [(ffi::SQLITE_FCNTL_PERSIST_WAL, 0), (ffi::SQLITE_FCNTL_POWERSAFE_OVERWRITE, 1)]
    {
        assert_eq!(number(operation, -1), (ffi::SQLITE_OK, at_first));
        assert_eq!(number(operation, 1 - at_first), (ffi::SQLITE_OK, 1 - at_first));
        assert_eq!(number(operation, -1), (ffi::SQLITE_OK, 1 - at_first));
        connection.execute_batch("INSERT INTO t VALUES (2)").unwrap();
    }
    assert_eq!(number(ffi::SQLITE_FCNTL_HAS_MOVED, 7), (ffi::SQLITE_OK, 0));
    assert_eq!(number(ffi::SQLITE_FCNTL_LAST_ERRNO, 7), (ffi::SQLITE_OK, 0));
    let (code, name) =
        ask(&connection, ffi::SQLITE_FCNTL_TEMPFILENAME, std::ptr::null_mut::<c_char>());
    assert_eq!(code, ffi::SQLITE_OK);
    #[expect(unsafe_code, reason = "a string that SQLite gave")]
    // SAFETY: a string with a zero at its end, to be freed.
    let path = unsafe {
        let path = CStr::from_ptr(name).to_str().unwrap().to_owned();
        ffi::sqlite3_free(name.cast());
        path
    };
    assert!(Path::new(&path).parent().unwrap().is_dir() && !Path::new(&path).exists(), "{path}");
    assert_eq!(number(12345, 0).0, ffi::SQLITE_NOTFOUND);
}

#[test]
fn powersafe_overwrite_is_what_the_name_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = new_volume(&folder.path().join("volume"), "");
    tantalum_sqlite::register("psow", |path: &Path| Volume::open(path), Default::default())
        .unwrap();
    for (parameters, expected) in [
        ("", 1),
        ("&psow=0", 0),
        ("&psow=FALSE", 0),
        ("&psow=1", 1),
        ("&cache=private&psow=off", 0),
    ] {
        let name = format!("file:{}?vfs=psow{parameters}", path.display());
        let connection = Connection::open(name).unwrap();
        let told = ask::<c_int>(&connection, ffi::SQLITE_FCNTL_POWERSAFE_OVERWRITE, -1);
        assert_eq!(told, (ffi::SQLITE_OK, expected), "{parameters}");
    }
}

#[test]
fn what_belongs_to_later_versions_answers() {
    let stage = Stage::new(true);
    let connection = stage.open();
    let file = std::ptr::null_mut::<ffi::sqlite3_file>();
    let (_, file) = ask(&connection, ffi::SQLITE_FCNTL_FILE_POINTER, file);
    #[expect(unsafe_code, reason = "methods that SQLite itself does not call")]
    // SAFETY: an open file, called as the methods are declared.
    unsafe {
        let methods = &*(*file).pMethods;
        let mut memory = file.cast::<c_void>();
        assert_eq!(methods.iVersion, 1, "with a later one, SQLite would take WAL for possible");
        let mapped = methods.xShmMap.unwrap()(file, 0, 32768, 1, &mut memory);
        assert_eq!((mapped, memory.is_null()), (ffi::SQLITE_IOERR_SHMMAP, true));
        assert_eq!(methods.xShmLock.unwrap()(file, 0, 1, 0), ffi::SQLITE_IOERR_SHMLOCK);
        methods.xShmBarrier.unwrap()(file);
        assert_eq!(methods.xShmUnmap.unwrap()(file, 1), ffi::SQLITE_OK);
        let mut memory = file.cast::<c_void>();
        let fetched = methods.xFetch.unwrap()(file, 0, 4096, &mut memory);
        assert_eq!((fetched, memory.is_null()), (ffi::SQLITE_OK, true));
        assert_eq!(methods.xUnfetch.unwrap()(file, 0, memory), ffi::SQLITE_OK);
    }
    connection.execute_batch("CREATE TABLE t(x)").unwrap();
}

fn system_errno(connection: &Connection) -> c_int {
    #[expect(unsafe_code, reason = "not in the safe interface")]
    // SAFETY: an open connection.
    unsafe {
        ffi::sqlite3_system_errno(connection.handle())
    }
}

#[test]
fn the_system_error_is_told_of_files_passed_on_and_of_volumes() {
    const ENOENT: c_int = 2;
    let connection = Stage::new(true).open();
    let attached = connection.execute_batch("ATTACH '/no such folder/plain.db' AS plain");
    assert_eq!(attached.unwrap_err().sqlite_error_code(), Some(ErrorCode::CannotOpen));
    assert_eq!(system_errno(&connection), ENOENT);

    let missing = |_: &Path| -> Result<Volume> {
        Err(Error::io("opening", std::io::Error::from_raw_os_error(5)).wrap("a volume"))
    };
    tantalum_sqlite::register("failing", missing, Default::default()).unwrap();
    let attached = connection.execute_batch("ATTACH 'file:/v.toml?vfs=failing' AS volume");
    assert_eq!(attached.unwrap_err().sqlite_error_code(), Some(ErrorCode::CannotOpen));
    assert_eq!(system_errno(&connection), 5);
}

#[test]
fn a_volume_made_again_is_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("volume");
    let path = new_volume(&at, "");
    tantalum_sqlite::register("again", |path: &Path| Volume::open(path), Default::default())
        .unwrap();
    let old = open_volume(&path, "again").unwrap();
    old.execute_batch("CREATE TABLE old(x); INSERT INTO old VALUES (1)").unwrap();
    std::fs::remove_dir_all(&at).unwrap();
    assert_eq!(ask::<c_int>(&old, ffi::SQLITE_FCNTL_HAS_MOVED, 7), (ffi::SQLITE_OK, 1));
    assert!(open_volume(&path, "again").is_err(), "there is none");
    new_volume(&at, "");
    let new = open_volume(&path, "again").unwrap();
    new.execute_batch("CREATE TABLE new(x); INSERT INTO new VALUES (2)").unwrap();
    assert_eq!(one::<i64>(&old, "SELECT x FROM old"), 1);
    // Nobody would ever find its commits, as with SQLite's own files.
    let lost = old.execute_batch("INSERT INTO old VALUES (3)").unwrap_err();
    assert_eq!(lost.sqlite_error_code(), Some(ErrorCode::ReadOnly));
    drop(old);
    let second = open_volume(&path, "again").unwrap();
    assert_eq!(one::<i64>(&second, "SELECT x FROM new"), 2);
    drop((new, second));
    let later = open_volume(&path, "again").unwrap();
    assert_eq!(one::<i64>(&later, "SELECT x FROM new"), 2);
}

/// There is no journal that SQLite would have to find by the volume's name.
#[test]
fn a_volume_that_was_renamed_goes_on_under_its_new_name() {
    let folder = tempfile::tempdir().unwrap();
    let (at, aside) = (folder.path().join("volume"), folder.path().join("aside"));
    let path = new_volume(&at, "");
    tantalum_sqlite::register("renamed", |path: &Path| Volume::open(path), Default::default())
        .unwrap();
    let first = open_volume(&path, "renamed").unwrap();
    first.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();
    std::fs::rename(&at, &aside).unwrap();
    new_volume(&at, "");
    let other = open_volume(&path, "renamed").unwrap();
    other.execute_batch("CREATE TABLE other(x)").unwrap();
    first.execute_batch("INSERT INTO t VALUES (2)").unwrap();
    drop((first, other));
    let found = open_volume(&aside.join("VOLUME.toml"), "renamed").unwrap();
    assert_eq!(one::<i64>(&found, "SELECT sum(x) FROM t"), 3);
    let other = open_volume(&path, "renamed").unwrap();
    assert_eq!(one::<i64>(&other, "SELECT count(*) FROM other"), 0);
}

/// A volume whose file is readable but not writable.
struct ReadOnly {
    disk: Disk,
    can: bool,
}

impl VolumeOpener for ReadOnly {
    fn open(&self, _: &Path) -> Result<Volume> {
        Err(Error::io("opening", std::io::Error::from_raw_os_error(13)).wrap("a volume"))
    }

    fn open_read_only(&self, _: &Path) -> Option<Result<Volume>> {
        self.can.then(|| Ok(self.disk.client()))
    }
}

#[test]
fn a_file_that_may_not_be_written_is_opened_to_be_read() {
    let stage = Stage::new(true);
    stage.open().execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();
    for can in [true, false] {
        let vfs = format!("read only {can}");
        let opener = ReadOnly { disk: stage.disk.clone(), can };
        tantalum_sqlite::register(&vfs, opener, Default::default()).unwrap();
        for flags in [OpenFlags::SQLITE_OPEN_READ_ONLY, OpenFlags::SQLITE_OPEN_READ_WRITE] {
            let opened = Connection::open_with_flags_and_vfs("/v.toml", flags, &*vfs);
            if !can {
                let code = opened.unwrap_err().sqlite_error_code();
                assert_eq!(code, Some(ErrorCode::CannotOpen));
                continue;
            }
            let connection = opened.unwrap();
            assert!(connection.is_readonly("main").unwrap());
            assert_eq!(one::<i64>(&connection, "SELECT x FROM t"), 1);
            let refused = connection.execute_batch("INSERT INTO t VALUES (2)").unwrap_err();
            assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::ReadOnly));
        }
    }
}

/// Programs delete a database to start with a new one. A volume's configuration must not be deleted like
/// that.
#[test]
fn a_volume_is_not_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = new_volume(folder.path(), "");
    let opener = |path: &Path| Volume::open(path);
    tantalum_sqlite::register("undeleted", opener, Default::default()).unwrap();
    let delete = |path: &Path| {
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        #[expect(unsafe_code, reason = "as SQLite's own programs call a VFS")]
        // SAFETY: the VFS is registered, and the name has a zero at its end.
        unsafe {
            let vfs = ffi::sqlite3_vfs_find(c"undeleted".as_ptr());
            (*vfs).xDelete.unwrap()(vfs, name.as_ptr(), 1)
        }
    };
    assert_eq!(delete(&path), ffi::SQLITE_IOERR_DELETE);
    assert!(path.exists());
    // Other files are deleted, and deleting a missing journal succeeds.
    let other = folder.path().join("other.db");
    std::fs::write(&other, "").unwrap();
    assert_eq!(delete(&other), ffi::SQLITE_OK);
    assert!(!other.exists());
    assert_eq!(delete(&folder.path().join("VOLUME.toml-journal")), ffi::SQLITE_OK);
}
