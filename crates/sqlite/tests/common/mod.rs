//! Common parts of the tests: disks, connections to them, dumps to compare.
#![allow(dead_code, reason = "not each test file uses all")]
pub mod disk;

use disk::Disk;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tantalum_runtime::live::{LiveOptions, spawn_thread};
use tantalum_sqlite::{Options, TraceSink};
use tantalum_volume::{VolumeConfig, create_volume};

/// Whether batch-atomic writes are reported to SQLite: the two ways to commit.
pub const MODES: [bool; 2] = [true, false];

/// Creates a volume of 32 MiB in `folder`, with `settings` of its device; returns the path of its VOLUME.toml.
pub fn new_volume(folder: &Path, settings: &str) -> PathBuf {
    new_volume_of(folder, "32MiB", settings)
}

/// The same with this capacity.
pub fn new_volume_of(folder: &Path, capacity: &str, settings: &str) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    let path = folder.join("VOLUME.toml");
    let text = format!(
        "kind = \"flash\"\n[media]\ntype = \"file\"\npath = \"data.tantalum\"
         [device]\ncapacity = \"{capacity}\"\n{settings}\n"
    );
    std::fs::write(&path, text).unwrap();
    let config = VolumeConfig::read(&path).unwrap();
    let thread = spawn_thread("create", LiveOptions::default(), move |live| async move {
        create_volume(&live, &config, false).await.unwrap();
    });
    thread.unwrap().join().unwrap();
    path
}

/// Opens the volume at `path`.
pub fn open_volume(path: &Path, vfs: &str) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags_and_vfs(path, OpenFlags::SQLITE_OPEN_READ_WRITE, vfs)?;
    connection.busy_timeout(std::time::Duration::ZERO)?;
    Ok(connection)
}

/// A VFS over one disk.
pub struct Stage {
    pub disk: Disk,
    pub vfs: String,
    memory_pages: usize,
    cache_pages: u32,
}

impl Stage {
    pub fn new(batch_atomic: bool) -> Stage {
        Stage::on(Disk::new(1 << 16, 4096), batch_atomic)
    }

    /// A stage without a page cache: everything outside SQLite's own cache is read from the disk.
    pub fn without_cache() -> Stage {
        let options = Options { cache_pages: 0, ..Options::default() };
        Stage::with(Disk::new(1 << 16, 4096), options)
    }

    /// A stage that keeps at most `memory_pages` pages of a transaction in memory. If that is few, it also caches
    /// few pages.
    pub fn with_memory(batch_atomic: bool, memory_pages: usize) -> Stage {
        Stage::with_memory_on(Disk::new(1 << 16, 4096), batch_atomic, memory_pages)
    }

    pub fn on(disk: Disk, batch_atomic: bool) -> Stage {
        Stage::with(disk, Options { batch_atomic, ..Options::default() })
    }

    pub fn with_memory_on(disk: Disk, batch_atomic: bool, memory_pages: usize) -> Stage {
        let usual = Options { batch_atomic, memory_pages, bulk_pages: 0, ..Options::default() };
        let cache_pages = if memory_pages < 100 { 8 } else { usual.cache_pages };
        Stage::with(disk, Options { cache_pages, ..usual })
    }

    /// A stage that keeps `memory_pages` pages of a transaction before it writes to the disk, and caches
    /// `cache_pages` pages of the disk.
    pub fn with_sizes(batch_atomic: bool, memory_pages: usize, cache_pages: u32) -> Stage {
        let options = Options {
            batch_atomic,
            memory_pages,
            cache_pages,
            bulk_pages: 0,
            ..Options::default()
        };
        Stage::with(Disk::new(1 << 16, 4096), options)
    }

    pub fn traced(
        batch_atomic: bool,
        memory_pages: usize,
        sink: impl TraceSink + 'static,
    ) -> Stage {
        let options = Options {
            batch_atomic,
            memory_pages,
            bulk_pages: 0,
            trace: Some(Box::new(sink)),
            ..Options::default()
        };
        Stage::with(Disk::new(1 << 16, 4096), options)
    }

    fn with(disk: Disk, options: Options) -> Stage {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let vfs = format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let opened = disk.clone();
        let (memory_pages, cache_pages) = (options.memory_pages, options.cache_pages);
        let opener = move |_: &Path| Ok(opened.client());
        tantalum_sqlite::register(&vfs, opener, options).unwrap();
        Stage { disk, vfs, memory_pages, cache_pages }
    }

    /// Another VFS over the present content of the disk, as after a crash of the process: everything that other
    /// connections hold in memory is missing.
    pub fn after_crash(&self, batch_atomic: bool) -> Stage {
        let crashed = Stage::with_sizes(batch_atomic, self.memory_pages, self.cache_pages);
        let pages = self.disk.state().pages.clone();
        crashed.disk.state().pages = pages;
        crashed
    }

    pub fn open(&self) -> Connection {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_URI;
        Connection::open_with_flags_and_vfs("/volume.toml", flags, self.vfs.as_str()).unwrap()
    }
}

/// The whole database as text: schema and rows.
pub fn dump(connection: &Connection) -> Vec<String> {
    let mut lines = Vec::new();
    let mut tables = Vec::new();
    let mut schema = connection
        .prepare("SELECT type, name, sql FROM sqlite_schema WHERE sql NOTNULL ORDER BY name")
        .unwrap();
    let mut rows = schema.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        lines.push(row.get::<_, String>(2).unwrap());
        if row.get::<_, String>(0).unwrap() == "table" {
            tables.push(row.get::<_, String>(1).unwrap());
        }
    }
    for table in tables {
        let mut all = connection.prepare(&format!("SELECT rowid, * FROM {table}")).unwrap();
        let columns = all.column_count();
        let mut rows = all.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let cells: Vec<_> = (0..columns)
                .map(|at| format!("{:?}", row.get::<_, rusqlite::types::Value>(at).unwrap()))
                .collect();
            lines.push(format!("{table}: {}", cells.join(", ")));
        }
    }
    lines
}

/// Asserts that SQLite's integrity check finds no problem.
pub fn check(connection: &Connection) {
    let verdict: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
}

pub fn one<T: rusqlite::types::FromSql>(connection: &Connection, sql: &str) -> T {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}
