//! Several processes on one served volume: stock `sqlite3` shells, applications and NBD clients. They are killed, and
//! so is their server.
mod support;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Once;
use std::time::Duration;
use support::nbd::{Client as NbdClient, PAGE_BYTES};
use support::server::Server;
use support::{good, refused, tantalum, text};
use tantalum::Volume;
use tantalum::front_end::{FrontEnd, leave_open};
use tantalum_base::{ErrorKind, PageBuf, PageNo};
use tantalum_testing::installed;
use tempfile::TempDir;

/// The extension is beside the test.
fn extension() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libtantalum_sqlite.so")
}

/// A folder with the volume `v.toml`.
fn volume(capacity: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    good(&["create", text(&config), "--capacity", capacity]);
    (folder, config)
}

/// The application's connection: this process has the VFS linked in.
fn application(config: &Path) -> Connection {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        tantalum_sqlite::register("local", |path: &Path| Volume::open(path), Default::default())
            .unwrap();
    });
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let connection = Connection::open_with_flags_and_vfs(config, flags, "local").unwrap();
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    connection
}

fn one<T: rusqlite::types::FromSql>(connection: &Connection, question: &str) -> T {
    connection.query_row(question, [], |row| row.get(0)).unwrap()
}

/// The distribution's `sqlite3` with the extension loaded, in a separate process.
struct Shell {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn open(config: &Path) -> Shell {
        Shell::start(Command::new("sqlite3"), &extension(), config)
    }

    fn start(mut program: Command, extension: &Path, config: &Path) -> Shell {
        let mut child = program
            .args(["-batch", ":memory:"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let mut shell = Shell { child, input, output: BufReader::new(output) };
        shell.tell(&format!(
            ".bail on\n.log stderr\n.load {}\n.open 'file:{}?vfs=tantalum'\n.timeout 60000",
            extension.display(),
            config.display()
        ));
        shell
    }

    /// Sends it commands, if it still runs.
    fn tell(&mut self, commands: &str) {
        let _ = self.input.as_mut().unwrap().write_all(format!("{commands}\n").as_bytes());
    }

    /// The next line of its output; `None` if it has ended.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let bytes = self.output.read_line(&mut line).unwrap();
        (bytes > 0).then(|| line.trim_end().to_owned())
    }

    fn ask(&mut self, question: &str) -> String {
        self.tell(question);
        self.line().unwrap_or_else(|| panic!("no answer: {}", self.errors()))
    }

    fn errors(&mut self) -> String {
        let mut told = String::new();
        let errors = self.child.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut BufReader::new(errors), &mut told).unwrap();
        told
    }

    /// SIGKILL.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets it end by itself, and returns the rest of its output.
    fn finish(mut self) -> Vec<String> {
        drop(self.input.take());
        let lines: Vec<String> = std::iter::from_fn(|| self.line()).collect();
        let errors = self.errors();
        assert!(self.child.wait().unwrap().success(), "{errors}");
        lines
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The test may have ended it already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn two_shells_and_an_application_write_one_database() {
    const COMMITS: usize = 60;
    if !installed(&["sqlite3"]) {
        return;
    }
    let (folder, config) = volume("64MiB");
    let server = Server::start_as(&config, &["--socket"]);
    let application = application(&config);
    application
        .execute_batch("CREATE TABLE t(who TEXT, n INTEGER, body BLOB, UNIQUE(who, n))")
        .unwrap();
    let shells = ["one", "two"].map(|who| {
        let mut shell = Shell::open(&config);
        for n in 0..COMMITS {
            let insert = format!("INSERT INTO t VALUES ('{who}', {n}, randomblob(3000))");
            // The last line is printed after the commit was acknowledged.
            shell.tell(&format!("BEGIN IMMEDIATE; {insert}; COMMIT; SELECT {n};"));
        }
        shell
    });
    let mut seen = 0;
    for n in 0..COMMITS {
        let insert = "INSERT INTO t VALUES ('application', ?1, randomblob(3000))";
        application.execute(insert, [n as i64]).unwrap();
        let there: i64 = one(&application, "SELECT count(*) FROM t");
        assert!(there > seen, "what was there stays, and a commit comes to it");
        seen = there;
    }
    for shell in shells {
        let acknowledged = shell.finish();
        assert_eq!(acknowledged, (0..COMMITS).map(|n| n.to_string()).collect::<Vec<_>>());
    }
    assert_eq!(one::<String>(&application, "PRAGMA integrity_check"), "ok");
    let question = "SELECT group_concat(who || ' ' || c, ', ') FROM
        (SELECT who, count(DISTINCT n) AS c FROM t GROUP BY who ORDER BY who)";
    let counts = format!("application {COMMITS}, one {COMMITS}, two {COMMITS}");
    assert_eq!(one::<String>(&application, question), counts);
    // Commands that open a database connect in the same way.
    let copy = folder.path().join("copy.db");
    good(&["sqlite", "export", text(&config), text(&copy)]);
    assert_eq!(one::<String>(&Connection::open(&copy).unwrap(), question), counts);
    drop(application);
    server.terminate();
    assert!(!folder.path().join("v.toml.socket").exists());
    good(&["check", text(&config)]);
    assert_eq!(Shell::open(&config).ask(&format!("{question};")), counts, "now from the file");
}

#[test]
fn what_one_process_commits_the_other_sees_at_once() {
    if !installed(&["sqlite3"]) {
        return;
    }
    let (_folder, config) = volume("64MiB");
    let _server = Server::start_as(&config, &["--socket"]);
    let (application, mut shell) = (application(&config), Shell::open(&config));
    // No client waits for a lock: each has released its locks when it reports success.
    application.busy_timeout(Duration::ZERO).unwrap();
    shell.tell(".timeout 0");
    let blob = "randomblob(2000)";
    shell.ask(&format!(
        "CREATE TABLE t(n INTEGER PRIMARY KEY, x, body); INSERT INTO t SELECT value, 0, {blob}
        FROM generate_series(1, 500); SELECT 1;"
    ));
    let sum = "SELECT sum(x) || ' ' || count(*) || ' ' || sum(length(body)) FROM t";
    for round in 1..30 {
        let change = format!("UPDATE t SET x = {round} WHERE n % 50 = {round}");
        let grow = format!("INSERT INTO t SELECT max(n) + 1, {round}, {blob} FROM t");
        if round % 2 == 0 {
            application.execute_batch(&format!("BEGIN; {change}; {grow}; COMMIT")).unwrap();
        } else {
            shell.ask(&format!("BEGIN; {change}; {grow}; COMMIT; SELECT 1;"));
        }
        if round == 20 {
            // The database becomes shorter, and the other process makes it longer again.
            shell.ask("DELETE FROM t WHERE n % 3 <> 0; VACUUM; SELECT 1;");
        }
        let here: String = one(&application, sum);
        assert_eq!(shell.ask(&format!("{sum};")), here, "round {round}");
    }
    assert_eq!(one::<String>(&application, "PRAGMA integrity_check"), "ok");
    drop(application);
    assert_eq!(
        shell.ask("PRAGMA integrity_check;"),
        "ok",
        "what one trims at its end is not the other's"
    );
}

#[test]
fn a_killed_clients_locks_are_free_and_its_transaction_is_gone() {
    if !installed(&["sqlite3"]) {
        return;
    }
    let (_folder, config) = volume("64MiB");
    let _server = Server::start_as(&config, &["--socket"]);
    let application = application(&config);
    application.execute_batch("CREATE TABLE t(who TEXT, body BLOB)").unwrap();
    for round in 0..3 {
        let mut shell = Shell::open(&config);
        // More than a client keeps in memory: it is on the volume, but uncommitted.
        let large =
            "INSERT INTO t SELECT 'killed', randomblob(100000) FROM generate_series(1, 150)";
        let told = shell.ask(&format!("BEGIN IMMEDIATE; {large}; SELECT count(*) FROM t;"));
        assert_eq!(told, (150 + round).to_string());
        application.busy_timeout(Duration::ZERO).unwrap();
        let busy = application.execute_batch("INSERT INTO t VALUES ('waits', 1)").unwrap_err();
        assert_eq!(busy.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
        shell.kill();
        application.busy_timeout(Duration::from_secs(60)).unwrap();
        application.execute_batch("INSERT INTO t VALUES ('lives', zeroblob(90000))").unwrap();
        let killed = "SELECT count(*) FROM t WHERE who = 'killed'";
        assert_eq!(one::<i64>(&application, killed), 0, "nothing of it is seen");
        assert_eq!(one::<i64>(&application, "SELECT count(*) FROM t"), round + 1);
        assert_eq!(one::<String>(&application, "PRAGMA integrity_check"), "ok");
    }
}

/// Milliseconds until a `BEGIN IMMEDIATE` is refused.
#[expect(clippy::disallowed_methods, reason = "a busy timeout is one of the real clock")]
fn refused_after_ms(connection: &Connection, timeout_ms: u64) -> u128 {
    connection.busy_timeout(Duration::from_millis(timeout_ms)).unwrap();
    let begin = std::time::Instant::now();
    let busy = connection.execute_batch("BEGIN IMMEDIATE").unwrap_err();
    assert_eq!(busy.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    begin.elapsed().as_millis()
}

#[test]
fn a_busy_timeout_takes_as_long_as_was_asked_for() {
    let (_folder, config) = volume("16MiB");
    let server = Server::start_as(&config, &["--socket"]);
    let (holder, waiter) = (application(&config), application(&config));
    holder.execute_batch("CREATE TABLE t(n); BEGIN IMMEDIATE").unwrap();
    for timeout_ms in [100, 400, 1000] {
        // On a busy machine, sleeps take longer than requested.
        let took = (0..5).map(|_| refused_after_ms(&waiter, timeout_ms)).min().unwrap();
        let asked = u128::from(timeout_ms);
        assert!((asked * 95 / 100..=asked * 12 / 10 + 5).contains(&took), "{asked} ms: {took} ms");
    }
    holder.execute_batch("COMMIT").unwrap();
    waiter.execute_batch("BEGIN IMMEDIATE; COMMIT").unwrap();
    server.terminate();
}

/// Two shells commit the numbers from `first` on, each in two rows, until the server is killed. Returns the
/// acknowledged numbers.
fn commit_until_killed(config: &Path, first: usize, server: Server) -> BTreeSet<usize> {
    let mut shells = [0, 1].map(|shell| {
        let mut process = Shell::open(config);
        let mut input = process.input.take().unwrap();
        let feeder = std::thread::Builder::new().spawn(move || {
            for n in (first + shell..).step_by(2) {
                let rows = format!("({n}, zeroblob(300)), ({n}, randomblob(50))");
                let commit =
                    format!("BEGIN IMMEDIATE; INSERT INTO t VALUES {rows}; COMMIT; SELECT {n};\n");
                if input.write_all(commit.as_bytes()).is_err() {
                    return;
                }
            }
        });
        drop(feeder.unwrap());
        process
    });
    let mut acknowledged = BTreeSet::new();
    for _ in 0..5 {
        for shell in &mut shells {
            let line = shell.line().unwrap_or_else(|| panic!("{}", shell.errors()));
            acknowledged.insert(line.parse().unwrap());
        }
    }
    server.kill();
    for mut shell in shells {
        acknowledged
            .extend(std::iter::from_fn(|| shell.line()).map(|line| line.parse::<usize>().unwrap()));
        let errors = shell.errors();
        assert!(errors.contains("has gone"), "it is told why: {errors}");
    }
    acknowledged
}

#[test]
fn a_killed_server_loses_nothing_and_its_clients_may_go_on_anew() {
    if !installed(&["sqlite3"]) {
        return;
    }
    let (folder, config) = volume("256MiB");
    let mut expected = BTreeSet::new();
    for _ in 0..3 {
        // From the second time on, the socket of the killed server still exists.
        let server = Server::start_as(&config, &["--socket"]);
        let held = application(&config);
        held.execute_batch("CREATE TABLE IF NOT EXISTS t(n INTEGER, body BLOB)").unwrap();
        let first = expected.last().map_or(0, |last| last + 1);
        expected.extend(commit_until_killed(&config, first, server));
        let failed = held.execute_batch("INSERT INTO t VALUES (1, 1)").unwrap_err();
        assert_eq!(failed.sqlite_error_code(), Some(ErrorCode::SystemIoFailure), "{failed}");
        assert!(folder.path().join("v.toml.socket").exists());
        // Opens its file again in the same process, while the old connection still exists.
        let anew = application(&config);
        assert_eq!(one::<String>(&anew, "PRAGMA integrity_check"), "ok");
        let mut found = anew.prepare("SELECT n, count(*) FROM t GROUP BY n").unwrap();
        let rows = found.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
        let rows: Vec<_> = rows.unwrap().map(Result::unwrap).collect();
        let odd: Vec<_> = rows.iter().filter(|(_, count)| *count != 2).collect();
        assert!(odd.is_empty(), "not each commit is there whole and once: {odd:?}");
        let there: BTreeSet<usize> = rows.into_iter().map(|(n, _)| n as usize).collect();
        assert!(expected.is_subset(&there), "{:?} are lost", expected.difference(&there));
        expected = there;
    }
}

#[test]
fn nbd_clients_and_local_ones_use_the_volume_at_once() {
    let (_folder, config) = volume("16MiB");
    let server = Server::start_as(&config, &["--socket"]);
    let local = Volume::open(&config).unwrap();
    let mut nbd = NbdClient::connect(&server.socket).unwrap();
    let page = |number: u8| PageBuf::copy_from(&[number; PAGE_BYTES]);
    local.write_scattered(vec![(PageNo(9), page(1)), (PageNo(700), page(1))]).unwrap();
    assert!(nbd.read(700, 1).unwrap() == page(1)[..]);
    nbd.write(9, &page(2)[..]);
    assert!(local.read(PageNo(9), 1).unwrap() == [page(2)]);
    // More than fits into a frame, in both directions.
    let all: Vec<_> = (0..2500).map(|number| (PageNo(number), page(number as u8))).collect();
    local.write_scattered(all.clone()).unwrap();
    assert!(
        local.read(PageNo(0), 2500).unwrap().into_iter().eq(all.into_iter().map(|(_, page)| page))
    );
    assert!(nbd.read(2400, 1).unwrap() == page((2400 % 256) as u8)[..]);
    // Only its own client sees the content of a transaction.
    let mut tx = local.begin().unwrap();
    tx.write(PageNo(3), vec![page(77)]).unwrap();
    let tx = leave_open(tx);
    let other = Volume::open(&config).unwrap();
    assert!(other.read(PageNo(3), 1).unwrap() == [page(3)]);
    assert_eq!(other.transaction(tx).commit().unwrap_err().kind(), ErrorKind::UnknownTransaction);
    drop(local);
    other.write(PageNo(3), vec![page(5)]).unwrap();
    assert!(nbd.read(3, 1).unwrap() == page(5)[..]);
    let told = server.terminate();
    assert!(told.contains("local clients at unix:"), "{told}");
    let gone = other.read(PageNo(3), 1).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::Closed, "{gone}");
    assert!(gone.to_string().contains("v.toml.socket has gone"), "{gone}");
    assert!(Volume::open(&config).unwrap().read(PageNo(3), 1).unwrap() == [page(5)]);
}

/// Scattered pages are read in one request, over every kind of connection: each read returns its own content, a read in
/// a transaction the transaction's content, and a missing page makes all fail.
#[test]
fn pages_that_lie_apart_are_read_side_by_side() {
    let (_folder, config) = volume("16MiB");
    let page_of = |number: u8| PageBuf::copy_from(&[number; PAGE_BYTES]);
    let read = |client: &Volume| {
        let pages: Vec<PageNo> = (0..500).map(|at| PageNo(at * 7 % 3500 + at % 2)).collect();
        let pages: Vec<PageNo> = BTreeSet::from_iter(pages).into_iter().collect();
        let content = |page: &PageNo| page_of(page.0 as u8);
        let put = pages.iter().map(|page| (*page, content(page))).collect();
        client.write_scattered(put).unwrap();
        let all: Vec<PageBuf> = pages.iter().map(content).collect();
        assert!(client.read_each(pages.clone(), None).unwrap() == all);
        let mut tx = client.begin().unwrap();
        tx.write(pages[3], vec![page_of(99)]).unwrap();
        let own = client.read_each(pages.clone(), Some(&tx)).unwrap();
        assert!(own[3] == page_of(99) && own[4..] == all[4..]);
        assert!(client.read_each(pages.clone(), None).unwrap() == all);
        let ended = client.transaction(tx.number());
        tx.abort().unwrap();
        assert!(client.read_each(vec![PageNo(1), PageNo(1 << 40)], None).is_err());
        assert!(client.read_each(vec![PageNo(1)], Some(&ended)).is_err(), "it has ended");
        assert!(client.read_each(Vec::new(), None).unwrap().is_empty());
    };
    read(&Volume::open(&config).unwrap());
    let _server = Server::start_as(&config, &["--socket"]);
    read(&Volume::open(&config).unwrap());
}

#[test]
fn a_read_only_server_and_read_only_clients_change_nothing() {
    let (folder, config) = volume("16MiB");
    application(&config).execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (7)").unwrap();
    let before = std::fs::read(folder.path().join("data.tantalum")).unwrap();
    let server = Server::start_as(&config, &["--socket", "--read-only"]);
    let reader = application(&config);
    assert_eq!(one::<i64>(&reader, "SELECT x FROM t"), 7);
    let refused = reader.execute_batch("INSERT INTO t VALUES (8)").unwrap_err();
    assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::ReadOnly));
    drop(reader);
    server.terminate();
    assert!(std::fs::read(folder.path().join("data.tantalum")).unwrap() == before);
    let _server = Server::start_as(&config, &["--socket"]);
    let client = Volume::open_read_only(&config).unwrap();
    let page = client.read(PageNo(5), 1).unwrap();
    assert_eq!(client.write(PageNo(5), page).unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn the_socket_is_found_wherever_it_is() {
    let (folder, config) = volume("16MiB");
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let socket = elsewhere.join("s");
    let server = Server::start_as(&config, &["--socket", text(&socket)]);
    application(&config).execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (7)").unwrap();
    // By the socket's own path, and by another path of the configuration.
    assert!(Volume::open(&socket).unwrap().read(PageNo(0), 1).unwrap()[0].starts_with(b"TANTSQLT"));
    let link = elsewhere.join("link.toml");
    std::os::unix::fs::symlink(&config, &link).unwrap();
    assert_eq!(one::<i64>(&application(&link), "SELECT x FROM t"), 7);
    // Commands that must open the files themselves are refused as before.
    assert!(refused(&["resize", text(&config), "32MiB"]).contains("pid"));
    server.kill();
    let stale = folder.path().join("v.toml.socket");
    assert!(stale.is_symlink(), "the link of the killed one");
    assert_eq!(one::<i64>(&application(&config), "SELECT x FROM t"), 7, "from the file");
    let server = Server::start_as(&config, &["--socket", text(&socket)]);
    assert_eq!(one::<i64>(&application(&config), "SELECT x FROM t"), 7);
    server.terminate();
    assert!(!stale.is_symlink() && !socket.exists());
    let neither = tantalum(&["serve", text(&config)]);
    assert!(neither.code == 2 && neither.err.contains("--nbd"), "{}", neither.err);
}

/// A process that may not write to the socket's file cannot reach the volume, and the error says why.
#[test]
fn the_sockets_permissions_say_who_may_connect() {
    if !installed(&["sqlite3", "setpriv"]) || !tantalum_testing::is_root() {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let (folder, config) = volume("16MiB");
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(folder.path(), 0o755);
    mode(&config, 0o644);
    let library = folder.path().join("tantalum.so");
    std::fs::copy(extension(), &library).unwrap();
    mode(&library, 0o755);
    let socket = folder.path().join("v.toml.socket");
    let _server = Server::start_as(&config, &["--socket"]);
    application(&config).execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (7)").unwrap();
    for (allowed, permissions) in [(false, 0o755), (true, 0o777)] {
        mode(&socket, permissions);
        let mut somebody = Command::new("setpriv");
        somebody.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sqlite3"]);
        let entry = format!("{} sqlite3_tantalumsqlite_init", library.display());
        let mut shell = Shell::start(somebody, Path::new(&entry), &config);
        shell.tell("SELECT x FROM t;");
        if allowed {
            assert_eq!(shell.finish(), ["7"]);
        } else {
            assert_eq!(shell.line(), None);
            let errors = shell.errors();
            assert!(
                errors.contains("v.toml.socket") && errors.contains("ermission denied"),
                "{errors}"
            );
        }
    }
}
