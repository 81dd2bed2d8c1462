//! Forks with a volume open: a child must not use anything that its parent opened.
mod common;
use common::{new_volume, one, open_volume};
use rusqlite::ErrorCode;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tantalum::front_end::FrontEnd;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageNo};

/// One test at a time: a lock of SQLite's that another thread holds stays locked forever in a child.
static FORKING: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    let alone = FORKING.lock().unwrap_or_else(PoisonError::into_inner);
    // The second registration is refused.
    let _ = tantalum_sqlite::register(
        "forked",
        |path: &Path| tantalum::Volume::open(path),
        Default::default(),
    );
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

/// A forked child. It continues when told to; its exit code shows whether it behaved correctly.
struct Child {
    pid: i32,
    go: Option<PipeWriter>,
    told: PipeReader,
}

/// A child's pipes to its parent.
struct Parent {
    go: PipeReader,
    tell: PipeWriter,
}

impl Parent {
    /// Reports that a point is reached, and waits until the parent continues or has ended.
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

    /// Waits until the child reports that it has reached its next point.
    fn reached(&mut self) {
        self.told.read_exact(&mut [0]).unwrap();
    }

    /// Lets the child continue, waits for its end, and asserts that it succeeded.
    fn finish(mut self) {
        drop(self.go.take());
        let mut status = -1;
        #[expect(unsafe_code, reason = "a place for the status")]
        // SAFETY: the process is a child of this one.
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
        // The child cannot open the volume itself while the parent has it open.
        assert_eq!(code(open_volume(&path, "forked")), Some(ErrorCode::DatabaseBusy));
        // The inherited connection does nothing, even when it is closed.
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

/// The counters file beside the volume belongs to the parent: a child neither writes nor removes it.
#[test]
#[expect(clippy::disallowed_methods, reason = "counters are written by the real clock")]
fn a_child_leaves_the_counters_of_its_parent_alone() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = new_volume(folder.path(), "");
    let counters = path.with_extension("toml.counters");
    let client = tantalum::Volume::open(&path).unwrap();
    let read = || client.read(PageNo(0), 1);
    while !counters.exists() {
        read().unwrap();
    }
    let mut inherited = Some(client.clone());
    let child = Child::new(|_| {
        let before = std::fs::read(&counters).unwrap();
        // The next write of the counters would be due.
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

/// A fork of which the C library is not aware, as some runtimes make it.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_child_of_a_bare_system_call_is_another_process_too() {
    fn bare_fork() -> i32 {
        const FORK: i64 = 57;
        #[expect(unsafe_code, reason = "the system call alone")]
        // SAFETY: takes no arguments; the child only calls functions that need no other thread.
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

/// At any moment of another thread's commits: nothing in the child waits for a thread that does not
/// exist there.
#[test]
fn a_child_is_refused_also_where_another_thread_was_committing() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let client = tantalum::Volume::open(new_volume(folder.path(), "")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (client, done) = (client.clone(), &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let page = (PageNo(thread), PageBuf::copy_from(&[1; PAGE_BYTES]));
                    client.write_scattered(vec![page]).unwrap();
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
        // Ends here without closing anything, like a killed process.
        std::mem::forget(connection);
    });
    parent.finish();
    let connection = open_volume(&path, "forked").unwrap();
    assert_eq!(one::<i64>(&connection, "SELECT x FROM t"), 1);
    drop(tell_go);
}

/// Python's multiprocessing, as used by many programs, with the loadable extension.
#[test]
fn pythons_multiprocessing_gets_busy_and_loses_nothing() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = new_volume(folder.path(), "");
    let test = std::env::current_exe().unwrap();
    let script = include_str!("fork.py");
    // The first one found may be built without loadable extensions.
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
