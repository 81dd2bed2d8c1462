//! Runs the same SQLite load on a volume and on plain files, in turns, so that other activity on the machine slows all
//! of them.
use anyhow::{Context, ensure};
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tantalum::Volume;
use tantalum::front_end::FrontEnd;
use tantalum_runtime::live::{LiveOptions, spawn_thread};
use tantalum_sqlite::counting::{self, Counters};
use tantalum_volume::{VolumeConfig, config, create_volume};

/// A load: its tables and its transactions.
pub struct Load<'a> {
    /// Makes the tables.
    pub create: &'a dyn Fn(&Connection) -> rusqlite::Result<()>,
    /// Runs a transaction, numbered from 1; returns whether it committed.
    pub run: &'a dyn Fn(&Connection, i64) -> rusqlite::Result<bool>,
}

/// The parameters of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct CompareOptions {
    /// Rounds of each system; its rate is the median of them.
    pub rounds: usize,
    /// Transactions per round.
    pub transactions: i64,
    /// Capacity of the volume, as in VOLUME.toml; space for cleaning is added to it.
    pub capacity: &'static str,
}

/// The results of one system.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the system.
    pub system: &'static str,
    /// Transactions per second: the median of the rounds.
    pub transactions_per_second: f64,
    /// Bytes written per committed transaction, including the writes of closing: the last checkpoint of a WAL, the
    /// checkpoint of a volume.
    pub bytes_per_transaction: f64,
    /// Syncs and durable writes per committed transaction.
    pub syncs_per_transaction: f64,
    /// The three values above as multiples of Tantalum's; for the rate, the median of the ratios of the rounds.
    pub ratios: [f64; 3],
}

/// Runs `load` on a new volume, and on plain files with `DELETE` and WAL, all in `folder` and with `synchronous=FULL`.
/// The first row is Tantalum's. `progress` is called with (rounds done, total).
pub fn compare(
    folder: &Path,
    load: &Load<'_>,
    options: CompareOptions,
    mut progress: impl FnMut(usize, usize),
) -> anyhow::Result<Vec<Row>> {
    let mut systems = vec![
        System::on_volume(folder, options.capacity)?,
        System::on_file(folder, "SQLite, DELETE", "delete")?,
        System::on_file(folder, "SQLite, WAL", "wal")?,
    ];
    for system in &mut systems {
        system.prepare(load)?;
    }
    let turns = options.rounds * systems.len();
    for round in 0..options.rounds {
        // Each system is first in some round.
        for turn in 0..systems.len() {
            let system = (round + turn) % systems.len();
            let first = 1 + round as i64 * options.transactions;
            systems[system].turn(load, first, options.transactions)?;
            progress(round * systems.len() + turn + 1, turns);
        }
    }
    let measured: Vec<Measured> =
        systems.into_iter().map(System::finish).collect::<anyhow::Result<_>>()?;
    Ok(measured.iter().map(|system| system.row(&measured[0])).collect())
}

/// (bytes written, syncs) so far.
type Written = Box<dyn Fn() -> (u64, u64)>;

struct System {
    name: &'static str,
    journal_mode: &'static str,
    connection: Connection,
    written: Written,
    at_start: (u64, u64),
    rates: Vec<f64>,
    committed: u64,
}

impl System {
    fn on_volume(folder: &Path, capacity: &str) -> anyhow::Result<System> {
        let path = folder.join("compare.toml");
        let text = config::template(capacity).replace("data.tantalum", "compare.tantalum");
        std::fs::write(&path, text).context("writing compare.toml")?;
        let config = VolumeConfig::read(&path)?;
        spawn_thread("create", LiveOptions::default(), move |live| async move {
            create_volume(&live, &config, true).await
        })?
        .join()??;
        let name = unused_name();
        let counters = Arc::new(Mutex::new(None));
        let opened = Arc::clone(&counters);
        let opener = move |path: &Path| {
            let volume = Volume::open(path)?;
            *opened.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) =
                volume.store_counters();
            Ok(volume)
        };
        tantalum_sqlite::register(&name, opener, Default::default())?;
        let connection = open(path, &name)?;
        let counters = counters.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let counters = counters.context("the volume was not opened")?;
        let written = move || {
            let counts = counters.snapshot();
            (counts.bytes_written, counts.durable_operations())
        };
        // DELETE is SQLite's default; on a volume, every mode commits in the same way.
        Ok(System::new("Tantalum", "delete", connection, Box::new(written)))
    }

    fn on_file(
        folder: &Path,
        name: &'static str,
        journal_mode: &'static str,
    ) -> anyhow::Result<System> {
        let vfs = unused_name();
        let counters: Counters = counting::register(&vfs)?;
        let connection = open(folder.join(format!("compare-{journal_mode}.db")), &vfs)?;
        let written = move || {
            let counts = counters.snapshot();
            (counts.bytes_written, counts.syncs())
        };
        Ok(System::new(name, journal_mode, connection, Box::new(written)))
    }

    fn new(
        name: &'static str,
        journal_mode: &'static str,
        connection: Connection,
        written: Written,
    ) -> System {
        let (rates, committed, at_start) = (Vec::new(), 0, (0, 0));
        System { name, journal_mode, connection, written, at_start, rates, committed }
    }

    /// Makes the tables; counting starts afterwards.
    fn prepare(&mut self, load: &Load<'_>) -> anyhow::Result<()> {
        let mode: String = self.connection.query_row(
            &format!("PRAGMA journal_mode={}", self.journal_mode),
            [],
            |row| row.get(0),
        )?;
        ensure!(mode == self.journal_mode, "SQLite chose journal_mode={mode}");
        self.connection.execute_batch("PRAGMA synchronous=FULL")?;
        (load.create)(&self.connection).with_context(|| format!("{}: creating", self.name))?;
        self.checkpoint()?;
        self.at_start = (self.written)();
        Ok(())
    }

    fn turn(&mut self, load: &Load<'_>, first: i64, count: i64) -> anyhow::Result<()> {
        #[expect(clippy::disallowed_methods, reason = "measures real time")]
        let start = Instant::now();
        for number in first..first + count {
            let committed = (load.run)(&self.connection, number)
                .with_context(|| format!("{}: transaction {number}", self.name))?;
            self.committed += u64::from(committed);
        }
        self.rates.push(count as f64 / start.elapsed().as_secs_f64());
        Ok(())
    }

    /// Writes the content of a WAL to the database.
    fn checkpoint(&self) -> rusqlite::Result<()> {
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }

    fn finish(self) -> anyhow::Result<Measured> {
        self.checkpoint()?;
        self.connection.close().map_err(|(_, error)| error).context("closing")?;
        let (bytes, syncs) = (self.written)();
        let per_transaction = |count: u64| count as f64 / self.committed.max(1) as f64;
        Ok(Measured {
            name: self.name,
            rates: self.rates,
            bytes: per_transaction(bytes - self.at_start.0),
            syncs: per_transaction(syncs - self.at_start.1),
        })
    }
}

struct Measured {
    name: &'static str,
    rates: Vec<f64>,
    bytes: f64,
    syncs: f64,
}

impl Measured {
    fn row(&self, tantalum: &Measured) -> Row {
        let rounds = self.rates.iter().zip(&tantalum.rates);
        Row {
            system: self.name,
            transactions_per_second: median(self.rates.clone()),
            bytes_per_transaction: self.bytes,
            syncs_per_transaction: self.syncs,
            ratios: [
                median(rounds.map(|(rate, tantalum)| rate / tantalum).collect()),
                self.bytes / tantalum.bytes,
                self.syncs / tantalum.syncs,
            ],
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn open(path: PathBuf, vfs: &str) -> anyhow::Result<Connection> {
    Connection::open_with_flags_and_vfs(&path, OpenFlags::default(), vfs)
        .with_context(|| format!("opening {}", path.display()))
}

/// A new name for a VFS: they stay registered until the process ends.
fn unused_name() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("compare-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
