//! Databases opened with `mode=ro` and `immutable=1`: nothing is written, and readers share the
//! volume.
mod common;

use common::{new_volume, one, open_volume};
use rusqlite::{Connection, ErrorCode};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tantalum::Volume;
use tantalum::front_end;
use tantalum_base::{ErrorKind, Result};
use tantalum_sqlite::VolumeOpener;
use tantalum_testing::skip;

/// Like the opener of the extension.
struct ByConfiguration;

impl VolumeOpener for ByConfiguration {
    fn open(&self, path: &Path) -> Result<Volume> {
        Volume::open(path)
    }

    fn open_read_only(&self, path: &Path) -> Option<Result<Volume>> {
        Some(front_end::open_to_read(path))
    }
}

const READERS: [&str; 2] = ["mode=ro", "immutable=1"];

/// A volume with a table that has one row, in a folder of its own.
fn volume(folder: &Path, vfs: &str) -> PathBuf {
    tantalum_sqlite::register(vfs, ByConfiguration, Default::default()).unwrap();
    let path = new_volume(&folder.join("volume"), "");
    let writer = open_volume(&path, vfs).unwrap();
    writer.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();
    path
}

fn open(path: &Path, vfs: &str, how: &str) -> rusqlite::Result<Connection> {
    Connection::open(format!("file:{}?vfs={vfs}&{how}", path.display()))
}

/// All content and attributes of a folder, except for access times.
fn everything_in(folder: &Path) -> BTreeMap<PathBuf, (Option<Vec<u8>>, [i64; 5])> {
    let about = |path: &Path| {
        let it = std::fs::metadata(path).unwrap();
        [it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec(), it.len() as i64]
    };
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut all: BTreeMap<_, _> =
        files.map(|path| (path.clone(), (std::fs::read(&path).ok(), about(&path)))).collect();
    all.insert(folder.to_path_buf(), (None, about(folder)));
    all
}

/// The state left by a killed writer: a copy of its files while it has them open.
fn killed(path: &Path, vfs: &str, to: &Path) -> PathBuf {
    let writer = open_volume(path, vfs).unwrap();
    writer.execute_batch("UPDATE t SET x = 2; BEGIN; UPDATE t SET x = 3").unwrap();
    std::fs::create_dir(to).unwrap();
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    to.join(path.file_name().unwrap())
}

#[test]
fn nothing_is_written_after_a_close_and_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let closed = volume(folder.path(), "nothing");
    let killed = killed(&closed, "nothing", &folder.path().join("killed"));
    for path in [closed, killed] {
        for how in READERS {
            let before = everything_in(path.parent().unwrap());
            let reader = open(&path, "nothing", how).unwrap();
            assert_eq!(one::<i64>(&reader, "SELECT x FROM t"), 2, "{how}");
            let refused = reader.execute_batch("INSERT INTO t VALUES (2)").unwrap_err();
            assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::ReadOnly), "{how}");
            drop(reader);
            assert!(everything_in(path.parent().unwrap()) == before, "{how} wrote");
        }
        let writer = open_volume(&path, "nothing").unwrap();
        writer.execute_batch("UPDATE t SET x = x").unwrap();
        assert_eq!(one::<i64>(&writer, "SELECT x FROM t"), 2);
    }
}

#[test]
fn readers_of_several_openings_share_it_and_a_writer_is_kept_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = volume(folder.path(), "shared");
    // A second opening of the file, as by another process.
    let other = Volume::open_read_only(&path).unwrap();
    for how in READERS {
        let reader = open(&path, "shared", how).unwrap();
        assert_eq!(one::<i64>(&reader, "SELECT x FROM t"), 1, "{how}");
        drop(Volume::open_read_only(&path).unwrap());
        assert_eq!(Volume::open(&path).err().unwrap().kind(), ErrorKind::Locked);
        let busy = open_volume(&path, "shared").unwrap_err();
        assert_eq!(busy.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
        assert_eq!(one::<i64>(&reader, "SELECT x FROM t"), 1, "it reads on");
    }
    drop(other);
    open_volume(&path, "shared").unwrap().execute_batch("UPDATE t SET x = 2").unwrap();
}

#[test]
fn a_writer_may_come_to_readers_of_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = volume(folder.path(), "together");
    let reader = open(&path, "together", "mode=ro").unwrap();
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(one::<i64>(&reader, "SELECT x FROM t"), 1);
    let writer = open_volume(&path, "together").unwrap();
    writer.busy_timeout(Duration::ZERO).unwrap();
    let busy = writer.execute_batch("UPDATE t SET x = 2").unwrap_err();
    assert_eq!(busy.sqlite_error_code(), Some(ErrorCode::DatabaseBusy), "its lock is still there");
    assert_eq!(one::<i64>(&reader, "SELECT x FROM t"), 1);
    reader.execute_batch("COMMIT").unwrap();
    writer.execute_batch("UPDATE t SET x = 2").unwrap();
    assert_eq!(one::<i64>(&reader, "SELECT x FROM t"), 2);
    let refused = reader.execute_batch("UPDATE t SET x = 3").unwrap_err();
    assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::ReadOnly));
    drop((reader, writer));
    let again = open(&path, "together", "mode=ro").unwrap();
    assert_eq!(one::<i64>(&again, "SELECT x FROM t"), 2);
}

#[test]
fn a_volume_on_a_read_only_mount_is_read_whatever_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let closed = volume(folder.path(), "mounted");
    let killed = killed(&closed, "mounted", &folder.path().join("killed"));
    let at = folder.path().join("mount");
    std::fs::create_dir(&at).unwrap();
    let mount = |arguments: &[&str]| {
        let mounted = Command::new("mount").args(arguments).arg(&at).output().unwrap();
        mounted.status.success()
    };
    let source = killed.parent().unwrap().to_str().unwrap();
    if !mount(&["--bind", source]) || !mount(&["-o", "remount,bind,ro"]) {
        skip("mount");
        return;
    }
    let path = at.join(killed.file_name().unwrap());
    let read = |how: &str| {
        let reader = open(&path, "mounted", how)?;
        let refused = reader.execute_batch("UPDATE t SET x = 4").unwrap_err();
        assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::ReadOnly), "{how}");
        // A connection for writing joins, and reads as well.
        let second = open(&path, "mounted", "psow=1")?;
        Ok::<_, rusqlite::Error>([&reader, &second].map(|it| one::<i64>(it, "SELECT x FROM t")))
    };
    let found = ["psow=1", "mode=ro", "immutable=1"].map(read);
    Command::new("umount").arg(&at).status().unwrap();
    for found in found {
        assert_eq!(found.unwrap(), [2, 2]);
    }
}
