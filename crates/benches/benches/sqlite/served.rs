//! A volume that another process serves beside the same one opened by this process, in turns: transactions of four row
//! updates, read transactions of one row, and the same while a second client commits, in turns and without a pause;
//! ratios between them.
//!
//! `scripts/bench sqlite/served [-- FOLDER]`, by default in the build's folder; rounds and
//! transactions of one by `SQLITE_ROUNDS` (5) and `SQLITE_TRANSACTIONS` (1000).
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tantalum::Volume;
use tantalum_base::Rng;
use tantalum_local::{Place, Server, ServerOptions, socket_path};
use tantalum_runtime::LifeCycle;
use tantalum_runtime::Live;
use tantalum_runtime::live::{LiveOptions, signal::terminated};
use tantalum_volume::config::{NewSettings, write_new};
use tantalum_volume::{OpenOptions, VolumeConfig, create_volume, open_volume};

const ROWS: u64 = 5000;
/// Each has connections and memory of its own, as two processes do.
const VFS: [&str; 2] = ["one", "other"];
/// Read transactions for each that writes.
const READS: u64 = 10;

fn main() -> anyhow::Result<()> {
    if let Some(volume) = std::env::var_os("SERVED_VOLUME") {
        return serve(Path::new(&volume));
    }
    // `cargo test` builds benches too and runs them with `--test` at most: nothing to do then.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (rounds, count) = (number("SQLITE_ROUNDS", 5), number("SQLITE_TRANSACTIONS", 1000));
    // Not in memory, as the folder for temporary files may be.
    let parent = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let parent = PathBuf::from(parent.as_deref().unwrap_or(env!("CARGO_TARGET_TMPDIR")));
    let folder = tempfile::tempdir_in(parent)?;
    let volume = folder.path().join("VOLUME.toml");
    create(&volume)?;
    for vfs in VFS {
        tantalum_sqlite::register(vfs, |path: &Path| Volume::open(path), Default::default())?;
    }
    let connection = open(&volume, VFS[0])?;
    connection.execute_batch(&format!(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT);
         WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
         INSERT INTO t SELECT i, 0, hex(randomblob(100)) FROM n"
    ))?;
    drop(connection);
    let mut writes = [Vec::new(), Vec::new()];
    let mut reads = [Vec::new(), Vec::new()];
    let mut both = Vec::new();
    let mut rivals = Rivals::default();
    for round in 0..rounds {
        for served in [0, 1] {
            let server = (served == 1).then(|| Served::start(&volume)).transpose()?;
            let connection = open(&volume, VFS[0])?;
            writes[served].push(per_second(count, || update(&connection, round, count))?);
            reads[served]
                .push(per_second(count * READS, || read(&connection, round, count * READS))?);
            if server.is_some() {
                let other = open(&volume, VFS[1])?;
                both.push(per_second(count, || {
                    for part in 0..count / 10 {
                        update(&other, round * count + part, 1)?;
                        read(&connection, round * count + part, 1)?;
                        update(&connection, round * count + part, 9)?;
                    }
                    Ok(())
                })?);
                rivals.add(&volume)?;
            }
            drop(connection);
            drop(server);
        }
    }
    println!("{rounds} rounds, medians; opened by this process, served by another, ratio");
    let show = |what: &str, [opened, served]: [f64; 2]| {
        println!("{what:34} {opened:9.0}/s {served:9.0}/s {:5.2}", served / opened);
    };
    show("four row updates a transaction", writes.map(median));
    show("reads of one row, each a transaction", reads.map(median));
    println!("updates of two clients, in turns: {:.0}/s", median(both));
    println!(
        "two clients that commit without a pause: {:.0}/s, the slower one {:.2} of the quicker; longest wait {:.0} ms",
        median(rivals.per_second),
        median(rivals.slower),
        rivals.longest.as_secs_f64() * 1e3
    );
    Ok(())
}

fn create(volume: &Path) -> anyhow::Result<()> {
    let config = write_new(volume, "64MiB", &NewSettings::default())?;
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    live.run(async move { create_volume(&handle, &config, false).await })?;
    Ok(())
}

/// Two clients of a served volume, in threads, that commit without a pause.
#[derive(Default)]
struct Rivals {
    per_second: Vec<f64>,
    /// Commits of the slower one for each of the quicker.
    slower: Vec<f64>,
    longest: Duration,
}

impl Rivals {
    #[expect(clippy::disallowed_methods, reason = "a benchmark")]
    fn add(&mut self, volume: &Path) -> anyhow::Result<()> {
        let time = Duration::from_secs(2);
        let clients = VFS.map(|vfs| {
            let volume = volume.to_owned();
            std::thread::spawn(move || {
                let connection = open(&volume, vfs)?;
                let (begin, mut commits, mut longest) = (Instant::now(), 0, Duration::ZERO);
                while begin.elapsed() < time {
                    let at = Instant::now();
                    update(&connection, commits, 1)?;
                    longest = longest.max(at.elapsed());
                    commits += 1;
                }
                anyhow::Ok((commits as f64, longest))
            })
        });
        let [one, other] = clients.map(|client| client.join().expect("does not panic"));
        let ((one, waited), (other, other_waited)) = (one?, other?);
        self.per_second.push((one + other) / time.as_secs_f64());
        self.slower.push(one.min(other) / one.max(other));
        self.longest = self.longest.max(waited).max(other_waited);
        Ok(())
    }
}

/// Serves until SIGTERM.
fn serve(volume: &Path) -> anyhow::Result<()> {
    let config = VolumeConfig::read(volume)?;
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    live.run(async move {
        let (volume, _) = open_volume(&handle, &config, OpenOptions::default()).await?;
        let (_place, listener) = Place::claim(&handle, &config.path, None)?;
        let changes = Rc::clone(volume.changes());
        let server = Server::new(Rc::clone(&volume), changes, ServerOptions::default());
        server.serve(&handle, listener, terminated(&handle)?).await?;
        volume.close().await
    })?;
    Ok(())
}

/// A server in a process of its own.
struct Served(Child);

impl Served {
    #[expect(clippy::disallowed_methods, reason = "waits for another process")]
    fn start(volume: &Path) -> anyhow::Result<Served> {
        let mut command = Command::new(std::env::current_exe()?);
        let child = command.env("SERVED_VOLUME", volume).stdout(Stdio::null()).spawn()?;
        while !socket_path(volume).exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Served(child))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

fn open(volume: &Path, vfs: &str) -> anyhow::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let connection = Connection::open_with_flags_and_vfs(volume, flags, vfs)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    Ok(connection)
}

fn update(connection: &Connection, seed: u64, count: u64) -> anyhow::Result<()> {
    let mut rng = Rng::split(seed, "updates");
    let mut update = connection.prepare_cached("UPDATE t SET a = a + 1 WHERE id = ?1")?;
    for _ in 0..count {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for _ in 0..4 {
            update.execute([1 + rng.below(ROWS) as i64])?;
        }
        connection.execute_batch("COMMIT")?;
    }
    Ok(())
}

fn read(connection: &Connection, seed: u64, count: u64) -> anyhow::Result<()> {
    let mut rng = Rng::split(seed, "reads");
    let mut read = connection.prepare_cached("SELECT b FROM t WHERE id = ?1")?;
    for _ in 0..count {
        read.query_row([1 + rng.below(ROWS) as i64], |row| row.get::<_, String>(0))?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a benchmark")]
fn per_second(count: u64, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let begin = Instant::now();
    work()?;
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
