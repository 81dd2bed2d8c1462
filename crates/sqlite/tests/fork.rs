//! Forks with a volume open: a child has no part in what its parent opened.
mod common;
use common::{new_volume, one, open_volume};
use rusqlite::ErrorCode;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageNo};

/// One test at a time: a lock of SQLite's that another thread holds is held for ever in a child.
static FORKING: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    let alone = FORKING.lock().unwrap_or_else(PoisonError::into_inner);
    // Refused by whoever comes second.
    let _ = tantalum_sqlite::register("forked", tantalum_volume::open_client, Default::default());
    alone
}

mod c {
    #[expect(unsafe_code, reason = "nothing safe forks")]
    unsafe extern "C" {
        pub safe fn fork() -> i32;
        pub safe fn _exit(code: i32) -> !;
        pub safe fn alarm(seconds: u32) -> u32;
        #[cfg(target_arch = "x86_64")]
        pub unsafe fn syscall(number: i64, ...) -> i64;
        pub unsafe fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    }
}

/// A forked child. It goes on when it is told to; that it did right is its exit code.
struct Child {
    pid: i32,
    go: Option<PipeWriter>,
    told: PipeReader,
}

/// What a child has of its parent.
struct Parent {
    go: PipeReader,
    tell: PipeWriter,
}

impl Parent {
    /// Says that a point is reached, and waits until the parent goes on or has ended.
    fn wait(&mut self) {
        self.tell.write_all(b"x").unwrap();
        let _ = self.go.read(&mut [0]).unwrap();
    }
}

impl Child {
    fn new(body: impl FnOnce(&mut Parent)) -> Child {
        Child::by(|| c::fork(), body)
    }

    fn by(fork: fn() -> i32, body: impl FnOnce(&mut Parent)) -> Child {
        let (go, tell_go) = std::io::pipe().unwrap();
        let (told, tell) = std::io::pipe().unwrap();
        let pid = fork();
        assert!(pid >= 0);
        if pid == 0 {
            drop((tell_go, told));
            c::alarm(120);
            let body = std::panic::AssertUnwindSafe(|| body(&mut Parent { go, tell }));
            c::_exit(i32::from(std::panic::catch_unwind(body).is_err()));
        }
        Child { pid, go: Some(tell_go), told }
    }

    /// Waits until the child says that it is so far.
    fn reached(&mut self) {
        self.told.read_exact(&mut [0]).unwrap();
    }

    /// Lets it go on, waits for its end, and asserts that it did right.
    fn finish(mut self) {
        drop(self.go.take());
        let mut status = -1;
        #[expect(unsafe_code, reason = "a place for the status")]
        // SAFETY: it is one.
        unsafe {
            assert_eq!(c::waitpid(self.pid, &mut status, 0), self.pid);
        }
        assert_eq!(status, 0, "the child failed: see its message");
    }
}

fn code<T>(result: rusqlite::Result<T>) -> Option<ErrorCode> {
    result.err().and_then(|error| error.sqlite_error_code())
}

#[test]
fn a_child_gets_busy_and_then_an_opening_of_its_own() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = new_volume(folder.path(), "");
    let parents = open_volume(&path, "forked").unwrap();
    parents.execute_batch("CREATE TABLE t(who TEXT); INSERT INTO t VALUES ('parent')").unwrap();
    let mut inherited = Some(open_volume(&path, "forked").unwrap());
    let mut child = Child::new(|parent| {
        // Its own opening is refused while the parent has the volume.
        assert_eq!(code(open_volume(&path, "forked")), Some(ErrorCode::DatabaseBusy));
        // What it has from its parent does nothing, also when it is closed.
        let theirs = inherited.take().unwrap();
        let read = theirs.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
        assert_eq!(code(read), Some(ErrorCode::SystemIoFailure));
        let write = theirs.execute_batch("INSERT INTO t VALUES ('through the parent')");
        assert_eq!(code(write), Some(ErrorCode::SystemIoFailure));
        drop(theirs);
        assert_eq!(code(open_volume(&path, "forked")), Some(ErrorCode::DatabaseBusy));
        parent.wait();
        let own = open_volume(&path, "forked").unwrap();
        assert_eq!(one::<i64>(&own, "SELECT count(*) FROM t"), 2);
        own.execute_batch("INSERT INTO t VALUES ('child')").unwrap();
    });
    child.reached();
    parents.execute_batch("INSERT INTO t VALUES ('parent, later')").unwrap();
    drop((parents, inherited));
    child.finish();
    let all = open_volume(&path, "forked").unwrap();
    assert_eq!(
        one::<String>(&all, "SELECT group_concat(who, '; ') FROM t"),
        "parent; parent, later; child"
    );
    assert_eq!(one::<String>(&all, "PRAGMA integrity_check"), "ok");
}

/// The counters beside the volume are the parent's: a child neither writes nor removes them.
#[test]
#[expect(clippy::disallowed_methods, reason = "counters are written by the real clock")]
fn a_child_leaves_the_counters_of_its_parent_alone() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = new_volume(folder.path(), "");
    let counters = path.with_extension("toml.counters");
    let client = tantalum_volume::open_client(&path).unwrap();
    let read = || client.read(PageNo(0), 1);
    while !counters.exists() {
        read().unwrap();
    }
    let mut inherited = Some(client.clone());
    let child = Child::new(|_| {
        let before = std::fs::read(&counters).unwrap();
        // It would be time to write again.
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert_eq!(read().unwrap_err().kind(), ErrorKind::Closed);
        client.tell_progress(7);
        drop(inherited.take());
        assert_eq!(std::fs::read(&counters).unwrap(), before);
    });
    child.finish();
    let before = std::fs::read(&counters).unwrap();
    while std::fs::read(&counters).unwrap() == before {
        read().unwrap();
    }
    drop((client, inherited));
    assert!(!counters.exists());
}

/// A fork that the C library does not tell of, as some runtimes make them.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_child_of_a_bare_system_call_is_another_process_too() {
    fn bare_fork() -> i32 {
        const FORK: i64 = 57;
        #[expect(unsafe_code, reason = "the system call alone")]
        // SAFETY: takes no arguments; the child calls what needs no other thread.
        unsafe {
            c::syscall(FORK) as i32
        }
    }
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = new_volume(folder.path(), "");
    let connection = open_volume(&path, "forked").unwrap();
    connection.execute_batch("CREATE TABLE t(x)").unwrap();
    let child = Child::by(bare_fork, |_| {
        let write = connection.execute_batch("INSERT INTO t VALUES (1)");
        assert_eq!(code(write), Some(ErrorCode::SystemIoFailure));
        assert_eq!(code(open_volume(&path, "forked")), Some(ErrorCode::DatabaseBusy));
    });
    child.finish();
    connection.execute_batch("INSERT INTO t VALUES (2)").unwrap();
    assert_eq!(one::<i64>(&connection, "SELECT sum(x) FROM t"), 2);
}

/// At any moment of another thread's commits: nothing in the child waits for a thread that is not there.
#[test]
fn a_child_is_refused_also_where_another_thread_was_committing() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let client = tantalum_volume::open_client(&new_volume(folder.path(), "")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (client, done) = (client.clone(), &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let page = (PageNo(thread), PageBuf::copy_from(&[1; PAGE_BYTES]));
                    client.write_transaction(vec![page]).unwrap();
                }
            });
        }
        let mut inherited = Some(client);
        for _ in 0..50 {
            let child = Child::new(|_| {
                let theirs = inherited.take().unwrap();
                assert_eq!(theirs.read(PageNo(0), 1).unwrap_err().kind(), ErrorKind::Closed);
                assert_eq!(theirs.flush().unwrap_err().kind(), ErrorKind::Closed);
                drop(theirs);
            });
            child.finish();
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn an_idle_child_keeps_no_lock() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = new_volume(folder.path(), "");
    let connection = open_volume(&path, "forked").unwrap();
    connection.execute_batch("CREATE TABLE t(x)").unwrap();
    let mut child = Child::new(|parent| parent.wait());
    child.reached();
    drop(connection);
    let connection = open_volume(&path, "forked").unwrap();
    connection.execute_batch("INSERT INTO t VALUES (1)").unwrap();
    drop(connection);
    child.finish();
}

#[test]
fn a_child_that_outlives_its_parent_keeps_no_lock() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = new_volume(folder.path(), "");
    let (go, tell_go) = std::io::pipe().unwrap();
    let mut tell_go = Some(tell_go);
    let parent = Child::new(|_| {
        let connection = open_volume(&path, "forked").unwrap();
        connection.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();
        drop(tell_go.take());
        let mut grandchild = Child::new(|parent| {
            parent.tell.write_all(b"x").unwrap();
            let _ = (&go).read(&mut [0]);
        });
        grandchild.reached();
        // Ends here without closing anything, as a killed one does.
        std::mem::forget(connection);
    });
    parent.finish();
    let connection = open_volume(&path, "forked").unwrap();
    assert_eq!(one::<i64>(&connection, "SELECT x FROM t"), 1);
    drop(tell_go);
}

/// Python's multiprocessing, as many programs use it, with the loadable extension.
#[test]
fn pythons_multiprocessing_gets_busy_and_loses_nothing() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = new_volume(folder.path(), "");
    let test = std::env::current_exe().unwrap();
    let script = include_str!("fork.py");
    // One that was built without loadable extensions may come first.
    let out = ["python3", "/usr/bin/python3"].into_iter().find_map(|python| {
        let mut command = Command::new(python);
        command.args(["-c", script]).arg(test.with_file_name("libtantalum_sqlite.so")).arg(&path);
        command.output().ok().filter(|out| !out.stdout.starts_with(b"skipped"))
    });
    let Some(out) = out else {
        return tantalum_testing::skip("python3 that loads extensions");
    };
    let told = String::from_utf8_lossy(&out.stdout);
    let wanted = "child: SQLITE_BUSY\nidle child: reopened\nlater child: wrote\n\
                  [('child',), ('parent',), ('parent, later',)]\n";
    assert_eq!(told, wanted, "{}", String::from_utf8_lossy(&out.stderr));
}
