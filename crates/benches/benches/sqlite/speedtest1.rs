//! SQLite's own benchmark, `speedtest1`, on a volume and on a plain file with WAL and `synchronous=FULL`, with the
//! system's SQLite library and its defaults, in turns; then scans of a table, the first one and the next.
//!
//! `scripts/bench sqlite/speedtest1`. The program's source is what `SPEEDTEST1_C` names, or comes
//! from Debian's source package of SQLite; `--size` by `SPEEDTEST1_SIZE` (50), rounds by `SPEEDTEST1_ROUNDS` (5), rows of
//! half a page by `SCAN_ROWS` (100,000).
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tantalum_runtime::live::{LiveOptions, spawn_thread};
use tantalum_volume::{VolumeConfig, config, create_volume};

fn main() {
    // `cargo test` builds benches too and runs them with `--test` at most: nothing to do then.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    match build(folder.path()) {
        Ok(program) => compare(&program, folder.path()),
        Err(problem) => eprintln!("skipped: no speedtest1: {problem}"),
    }
    scans(folder.path());
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs a command line of the shell in `folder`; what it said where it failed.
fn shell(folder: &Path, line: &str) -> Result<String, String> {
    let run = Command::new("sh").args(["-c", line]).current_dir(folder).output();
    let run = run.map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if run.status.success() { Ok(text(&run.stdout)) } else { Err(text(&run.stderr)) }
}

/// The source package, without a change to what apt knows of the system.
const FETCH: &str = "set -e
sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources > src.sources
apt=\"-o Dir::Etc::sourcelist=$PWD/src.sources -o Dir::Etc::sourceparts=$PWD/none -o Dir::State::lists=$PWD/lists\"
mkdir -p lists/partial
apt-get -q $apt update
apt-get -q $apt --download-only source sqlite3
tar xf sqlite3_*.orig.tar.*
find . -name speedtest1.c";

/// Builds the program with the system's SQLite.
fn build(folder: &Path) -> Result<PathBuf, String> {
    let source = match std::env::var("SPEEDTEST1_C") {
        Ok(path) => path,
        Err(_) => shell(folder, FETCH)?.lines().last().unwrap_or_default().to_owned(),
    };
    let shim = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/sqlite/speedtest1/shim.c");
    let line = format!(
        "cc -O2 -Dunlink=keep_file -o speedtest1 '{source}' '{}' -lsqlite3",
        shim.display()
    );
    shell(folder, &line)?;
    Ok(folder.join("speedtest1"))
}

/// The extension, which lies beside the bench.
fn extension() -> PathBuf {
    std::env::current_exe().expect("a name").with_file_name("libtantalum_sqlite.so")
}

/// A new volume in a folder of its own.
fn volume(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name).join("VOLUME.toml");
    let config = config::write_new(&path, "1GiB", &Default::default()).expect("written");
    let thread = spawn_thread("create", LiveOptions::default(), move |live| async move {
        create_volume(&live, &VolumeConfig::read(&config.path)?, false).await
    });
    thread.expect("a thread").join().expect("no panic").expect("created");
    path
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Seconds of a whole run.
fn speedtest(program: &Path, arguments: &[&str]) -> f64 {
    let size = setting("SPEEDTEST1_SIZE", 50).to_string();
    let mut run = Command::new(program);
    run.args(["--size", &size]).args(arguments).env("TANTALUM_EXTENSION", extension());
    let run = run.output().expect("speedtest1 starts");
    let told = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
    // "TOTAL......    1.156s"
    let total = told.lines().find_map(|line| line.trim_start().strip_prefix("TOTAL"));
    let seconds = total.map(|rest| rest.trim_start_matches('.').trim().trim_end_matches('s'));
    let seconds = seconds.and_then(|text| text.parse().ok());
    seconds.unwrap_or_else(|| panic!("speedtest1 said {told}"))
}

fn compare(program: &Path, folder: &Path) {
    let (mut ours, mut wal) = (Vec::new(), Vec::new());
    for round in 0..setting("SPEEDTEST1_ROUNDS", 5) {
        let volume = volume(folder, &format!("volume{round}"));
        let file = folder.join(format!("file{round}.db"));
        ours.push(speedtest(program, &["--vfs", "tantalum", &volume.to_string_lossy()]));
        wal.push(speedtest(program, &["--journal", "wal", &file.to_string_lossy()]));
        println!("round {round}: volume {:.3} s, WAL {:.3} s", ours[round], wal[round]);
        std::fs::remove_dir_all(volume.parent().expect("a folder")).expect("removed");
    }
    let (ours, wal) = (median(ours), median(wal));
    println!("speedtest1: {ours:.3} s, {:.2} of WAL's {wal:.3} s (asked: at most 1.0)", ours / wal);
}

/// What the stock shell says of `commands`.
fn sqlite3(database: &str, commands: &str) -> String {
    let mut shell = Command::new("sqlite3");
    shell.args(["-batch", database]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.spawn().expect("sqlite3 starts");
    let input = shell.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut &input, commands.as_bytes()).expect("written");
    drop(input);
    let told = shell.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&told.stdout).into_owned()
}

/// Seconds of the first and of the second scan.
fn scan(database: &str, open: &str) -> (f64, f64) {
    // As far as the system's cache goes; what is below it is not in our hands.
    let _ = shell(Path::new("/"), "sync; echo 3 > /proc/sys/vm/drop_caches");
    let query = "SELECT sum(length(x)) FROM t WHERE substr(x, 1500, 1) IS NOT NULL;\n";
    let told = sqlite3(database, &format!("{open}.timer on\n{query}{query}"));
    let seconds: Vec<f64> = told
        .lines()
        .filter_map(|line| line.strip_prefix("Run Time: real ")?.split(' ').next()?.parse().ok())
        .collect();
    assert_eq!(seconds.len(), 2, "{told}");
    (seconds[0], seconds[1])
}

fn scans(folder: &Path) {
    let rows = setting("SCAN_ROWS", 100_000);
    let fill = format!(
        "CREATE TABLE t(x BLOB); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {rows})
         INSERT INTO t SELECT randomblob(2000) FROM n;\n"
    );
    let volume = volume(folder, "scanned");
    let file = folder.join("scanned.db").to_string_lossy().into_owned();
    let open = format!(
        ".load {}\n.open 'file:{}?vfs=tantalum'\n",
        extension().display(),
        volume.display()
    );
    sqlite3(":memory:", &format!("{open}{fill}"));
    sqlite3(&file, &format!("PRAGMA journal_mode=WAL;\n{fill}"));
    for round in 0..3 {
        let ((plain, plain_again), (ours, again)) = (scan(&file, ""), scan(":memory:", &open));
        println!(
            "scan of {rows} rows, round {round}: volume {ours:.3} s, again {again:.3}; file {plain:.3} s, again \
             {plain_again:.3}; {:.2} and {:.2}",
            ours / plain,
            again / plain_again
        );
    }
}
