//! One step of the bench, in a process of its own.
use anyhow::{Context, ensure};
use rusqlite::{Connection, OpenFlags};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tantalum::Volume;
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::config::{NewSettings, write_new};
use tantalum_volume::create_volume;

const VARIABLE: &str = "BULK_STEP";
const ENTRANCE: &str = "BULK_ENTRANCE";
/// Rows that are about a megabyte of the table and its index.
const ROWS_PER_MB: u64 = 7_500;
const VFS: &str = "bulk";

/// A statement, or a copy of all of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Insert,
    Update,
    Index,
    Alter,
    Delete,
    Vacuum,
    Import,
}

/// On what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Wal,
    Volume,
}

impl Step {
    /// In the order in which they follow each other.
    pub const ALL: [Step; 7] = [
        Step::Insert,
        Step::Update,
        Step::Index,
        Step::Alter,
        Step::Delete,
        Step::Vacuum,
        Step::Import,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Step::Insert => "insert",
            Step::Update => "update",
            Step::Index => "index",
            Step::Alter => "alter",
            Step::Delete => "delete",
            Step::Vacuum => "vacuum",
            Step::Import => "import",
        }
    }

    /// The statement; `None` if the step is a copy. Keys come in random order of the rows.
    fn statement(self, rows: u64) -> Option<String> {
        let sql = match self {
            Step::Insert => format!(
                "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
                 INSERT INTO item SELECT i, printf('SKU%08d', i * 7919999 % 100000007),
                 '{:n<40}', 'more' FROM n",
                ""
            ),
            // Each row's key of the index.
            Step::Update => {
                "UPDATE item SET sku = printf('SKU%08d', id * 48271 % 100000007)".to_owned()
            }
            Step::Index => "CREATE INDEX by_note ON item(sku, note)".to_owned(),
            Step::Alter => "ALTER TABLE item DROP COLUMN more".to_owned(),
            Step::Delete => "DELETE FROM item WHERE id % 2 = 0".to_owned(),
            Step::Vacuum => "VACUUM".to_owned(),
            Step::Import => return None,
        };
        Some(sql)
    }
}

/// What a process spent.
pub struct Spent {
    pub seconds: f64,
    /// Most memory that it had.
    memory_mb: f64,
    written_mb: f64,
}

impl Spent {
    /// What a child printed.
    pub fn parse(text: &str) -> anyhow::Result<Spent> {
        let mut numbers = text.split_whitespace().map(str::parse::<f64>);
        let mut number = || numbers.next().context("a number is missing")?.context("no number");
        Ok(Spent { seconds: number()?, memory_mb: number()?, written_mb: number()? })
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spent { seconds, memory_mb, written_mb } = self;
        write!(f, "{seconds:7.2} s {memory_mb:4.0} MB {written_mb:6.0} MB")
    }
}

/// Asks a process of this program for `step`.
pub fn ask(child: &mut Command, step: Step, side: Side, mb: u64, folder: &Path) {
    let number = Step::ALL.iter().position(|each| *each == step).unwrap_or_default();
    let side = u8::from(side == Side::Volume);
    child.env(VARIABLE, format!("{number} {side} {mb}")).arg(folder);
}

/// Has it enter a control group first.
pub fn enter(child: &mut Command, entrance: &Path) {
    child.env(ENTRANCE, entrance);
}

/// What this process was asked for, if it was.
pub fn asked_for() -> anyhow::Result<Option<Asked>> {
    let Ok(text) = std::env::var(VARIABLE) else { return Ok(None) };
    let numbers: Vec<u64> = text.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    let &[step, side, mb] = &numbers[..] else { anyhow::bail!("{VARIABLE}={text}") };
    let folder = std::env::args().nth(1).context("no folder")?.into();
    let side = if side == 1 { Side::Volume } else { Side::Wal };
    Ok(Some(Asked { step: Step::ALL[step as usize], side, mb, folder }))
}

/// A step in this process.
pub struct Asked {
    step: Step,
    side: Side,
    mb: u64,
    folder: PathBuf,
}

impl Asked {
    /// Does it, and prints what it spent.
    pub fn run(self) -> anyhow::Result<()> {
        if let Some(entrance) = std::env::var_os(ENTRANCE) {
            std::fs::write(entrance, "0").context("entering the control group")?;
        }
        tantalum_sqlite::register(VFS, |path: &Path| Volume::open(path), Default::default())?;
        let seconds = match self.step.statement(self.mb * ROWS_PER_MB) {
            Some(statement) => self.execute(&statement)?,
            None => self.copy()?,
        };
        let io = field("/proc/self/io", "write_bytes:")? as f64 / 1e6;
        let memory = field("/proc/self/status", "VmHWM:")? as f64 * 1024.0 / 1e6;
        println!("{} {memory} {io}", seconds.as_secs_f64());
        Ok(())
    }

    fn execute(&self, statement: &str) -> anyhow::Result<Duration> {
        let connection = self.open("database", self.step == Step::Insert)?;
        if self.step == Step::Insert {
            connection.execute_batch(
                "CREATE TABLE item(id INTEGER PRIMARY KEY, sku TEXT, note TEXT, more TEXT);
                 CREATE INDEX by_sku ON item(sku)",
            )?;
        }
        timed(|| Ok(connection.execute_batch(statement)?))
    }

    /// Copies all of the plain database to a new one, as `tantalum sqlite import` and `.backup` do.
    fn copy(&self) -> anyhow::Result<Duration> {
        let from = self.folder.join("database.db");
        match self.side {
            Side::Volume => {
                let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../dist/tantalum");
                ensure!(program.is_file(), "the program is not built: scripts/bench does it");
                let mut import = Command::new(program);
                import
                    .args(["sqlite", "import"])
                    .arg(from)
                    .arg(self.folder.join("copy/VOLUME.toml"));
                std::fs::create_dir(self.folder.join("copy"))?;
                timed(|| {
                    let output = import.output().context("starting tantalum")?;
                    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                    Ok(())
                })
            }
            Side::Wal => {
                let from = Connection::open(from)?;
                let mut to = self.open("copy", true)?;
                timed(|| {
                    let backup = rusqlite::backup::Backup::new(&from, &mut to)?;
                    backup.run_to_completion(i32::MAX, Duration::ZERO, None)?;
                    Ok(())
                })
            }
        }
    }

    fn open(&self, name: &str, is_new: bool) -> anyhow::Result<Connection> {
        let connection = match self.side {
            Side::Wal => Connection::open(self.folder.join(format!("{name}.db")))?,
            Side::Volume => {
                let volume = self.folder.join(name).join("VOLUME.toml");
                if is_new {
                    create(&volume, self.mb)?;
                }
                let flags = OpenFlags::default();
                Connection::open_with_flags_and_vfs(volume, flags, VFS)?
            }
        };
        if self.side == Side::Wal {
            connection.execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")?;
        }
        Ok(connection)
    }
}

/// A volume with room for the database, its second index, and another one of all that, as `VACUUM` needs it.
fn create(volume: &Path, mb: u64) -> anyhow::Result<()> {
    std::fs::create_dir_all(volume.parent().context("a folder")?)?;
    let config = write_new(volume, &format!("{}MiB", 6 * mb + 64), &NewSettings::default())?;
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    live.run(async move { create_volume(&handle, &config, false).await })?;
    Ok(())
}

fn timed(body: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    #[expect(clippy::disallowed_methods, reason = "measures real time")]
    let start = Instant::now();
    body()?;
    Ok(start.elapsed())
}

/// The number behind `name` in a file of `/proc`.
fn field(file: &str, name: &str) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(file)?;
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let value = value.and_then(|rest| rest.split_whitespace().next());
    Ok(value.with_context(|| format!("{name} in {file}"))?.parse()?)
}
