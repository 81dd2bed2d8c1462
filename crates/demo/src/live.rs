//! Part 1: a real SQLite on a volume, each commit one device transaction.
use crate::load::{Model, Transaction, create, verify};
use anyhow::{Context, ensure};
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tantalum_base::PageNo;
use tantalum_console::output::print_line;
use tantalum_console::progress::Progress;
use tantalum_report::number;
use tantalum_sqlite::{Options, TraceSink};
use tantalum_trace::{PageEvent, Recorder};

/// Runs the load on the volume at `volume` and records SQLite's page accesses to `trace`.
pub fn run(volume: &Path, trace: &Path, seed: u64, transactions: i64) -> anyhow::Result<()> {
    print_line("1. SQLite on a volume in a file: each commit is one device transaction")?;
    let recorder = Arc::new(Recorder::create(trace)?);
    let sink = Recording(Arc::clone(&recorder));
    let options = Options { trace: Some(Box::new(sink)), ..Options::default() };
    tantalum_sqlite::register(
        "tantalum-recorded",
        |path: &Path| tantalum::Volume::open(path),
        options,
    )?;
    let connection = open(volume, "tantalum-recorded")?;
    create(&connection)?;
    let progress = Progress::steps("transactions");
    #[expect(clippy::disallowed_methods, reason = "the demo measures real time")]
    let start = Instant::now();
    let mut committed = 0;
    for transaction in 1..=transactions {
        committed += i64::from(Transaction::new(seed, transaction).run(&connection)?);
        progress.step(transaction as usize, transactions as usize);
    }
    let seconds = start.elapsed().as_secs_f64();
    progress.finish();
    verify(&connection, &mut Model::new(seed), 0, transactions)?;
    let files = other_files(volume, trace)?;
    ensure!(files.is_empty(), "SQLite wrote beside the volume: {files:?}");
    connection.close().map_err(|(_, error)| error).context("closing the database")?;
    let events = recorder.finish()?;
    print_line(&format!(
        "   {} transactions ({} committed, {} rolled back) in {seconds:.1} s: {} a second",
        number::thousands(transactions as u64),
        number::thousands(committed as u64),
        number::thousands((transactions - committed) as u64),
        number::thousands((transactions as f64 / seconds) as u64),
    ))?;
    print_line("   every row is correct; no journal and no WAL file was written")?;
    print_line(&format!("   recorded {} page events\n", number::thousands(events)))?;
    Ok(())
}

/// Opens the database on the volume at `path` through the VFS called `vfs`.
pub fn open(path: &Path, vfs: &str) -> anyhow::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    Connection::open_with_flags_and_vfs(path, flags, vfs)
        .with_context(|| format!("opening the database on {}", path.display()))
}

/// Files in the volume's folder that are neither the volume's own nor the trace.
fn other_files(volume: &Path, trace: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let own = ["toml", "toml.counters", "tantalum"].map(|ending| volume.with_extension(ending));
    let known = [&own[..], &[trace.to_path_buf()]].concat();
    let dir = volume.parent().context("the volume lies in a folder")?;
    let paths = std::fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path()));
    let paths = paths.collect::<std::io::Result<Vec<PathBuf>>>()?;
    Ok(paths.into_iter().filter(|path| !known.contains(path)).collect())
}

struct Recording(Arc<Recorder>);

// One SQLite call moves a few pages: 32 bits are plenty.
impl TraceSink for Recording {
    fn read(&mut self, page: PageNo, pages: u64) {
        self.0.record(PageEvent::Read { page, pages: pages as u32 });
    }

    fn write(&mut self, page: PageNo, pages: u64) {
        self.0.record(PageEvent::Write { page, pages: pages as u32 });
    }

    fn commit(&mut self) {
        self.0.record(PageEvent::Commit);
    }
}
