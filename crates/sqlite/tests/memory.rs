//! SQLite runs out of memory during a call of the VFS: the result is an error, or correct.
#![allow(unsafe_code, reason = "an allocator of SQLite's that fails")]
mod common;
use common::{MODES, Stage};
use libsqlite3_sys as sqlite;
use rusqlite::ErrorCode;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

/// Allocations until one fails.
static LEFT: AtomicI64 = AtomicI64::new(i64::MAX);
static PLAIN: OnceLock<Plain> = OnceLock::new();

/// SQLite's own allocator.
struct Plain {
    allocate: unsafe extern "C" fn(c_int) -> *mut c_void,
    allocate_again: unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void,
}

fn fails() -> bool {
    LEFT.fetch_sub(1, Ordering::Relaxed) == 0
}

unsafe extern "C" fn allocate(bytes: c_int) -> *mut c_void {
    // SAFETY: with SQLite's own arguments.
    if fails() { std::ptr::null_mut() } else { unsafe { (PLAIN.get().unwrap().allocate)(bytes) } }
}

unsafe extern "C" fn allocate_again(old: *mut c_void, bytes: c_int) -> *mut c_void {
    if fails() {
        return std::ptr::null_mut();
    }
    // SAFETY: as above.
    unsafe { (PLAIN.get().unwrap().allocate_again)(old, bytes) }
}

/// Wraps SQLite's allocator. Called before SQLite is used.
fn fail_allocations() {
    // SAFETY: SQLite fills in the methods, and copies those passed to it.
    unsafe {
        let mut methods = std::mem::zeroed::<sqlite::sqlite3_mem_methods>();
        let get = sqlite::SQLITE_CONFIG_GETMALLOC;
        assert_eq!(sqlite::sqlite3_config(get, &raw mut methods), sqlite::SQLITE_OK);
        PLAIN.get_or_init(|| Plain {
            allocate: methods.xMalloc.unwrap(),
            allocate_again: methods.xRealloc.unwrap(),
        });
        methods.xMalloc = Some(allocate);
        methods.xRealloc = Some(allocate_again);
        // Without lookaside memory, each allocation goes through this allocator.
        let aside = sqlite::sqlite3_config(sqlite::SQLITE_CONFIG_LOOKASIDE, 0 as c_int, 0 as c_int);
        assert_eq!(aside, sqlite::SQLITE_OK);
        let set = sqlite::SQLITE_CONFIG_MALLOC;
        assert_eq!(sqlite::sqlite3_config(set, &raw const methods), sqlite::SQLITE_OK);
    }
}

#[test]
fn a_pragma_that_runs_out_of_memory_says_so() {
    fail_allocations();
    for batch in MODES {
        let stage = Stage::new(batch);
        for sql in ["PRAGMA journal_mode=WAL", "PRAGMA journal_mode"] {
            let mut failed = 0;
            for allocation in 0.. {
                let connection = stage.open();
                let set_up = "CREATE TABLE IF NOT EXISTS t(x); PRAGMA journal_mode=WAL";
                connection.execute_batch(set_up).unwrap();
                LEFT.store(allocation, Ordering::Relaxed);
                let answer = connection.query_row(sql, [], |row| row.get::<_, String>(0));
                let reached = LEFT.swap(i64::MAX, Ordering::Relaxed) < 0;
                match answer {
                    Ok(mode) => assert_eq!(mode, "delete", "{sql}, allocation {allocation}"),
                    Err(error) => {
                        failed += 1;
                        let code = error.sqlite_error_code();
                        assert_eq!(
                            code,
                            Some(ErrorCode::OutOfMemory),
                            "{sql}, {allocation}: {error}"
                        );
                    }
                }
                if !reached {
                    break;
                }
            }
            assert!(failed > 3, "{sql}: {failed}");
        }
    }
}
