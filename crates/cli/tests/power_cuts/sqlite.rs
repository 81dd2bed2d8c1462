//! SQLite in this process, whose thread does the volume's I/O itself: power cuts between and during its commits.
use crate::cuts::{Cuts, image_folder, place};
use crate::disk::{Disk, Honesty};
use crate::history::Durability;
use crate::rig::{Engine, Rig, config_text};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use tantalum::Volume;
use tantalum_base::Rng;

const CELLS: u32 = 64;
const VFS: &str = "power-cuts";

/// A committed transaction: the cells that it set to its number, which counts from 1.
struct Transaction {
    cells: Vec<u32>,
    issued: usize,
    committed: usize,
}

fn connect(config: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    Connection::open_with_flags_and_vfs(config, flags, VFS)
}

fn fill(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "BEGIN; CREATE TABLE done (number INTEGER PRIMARY KEY, body BLOB);
         CREATE TABLE cells (cell INTEGER PRIMARY KEY, number INTEGER, body BLOB); COMMIT",
    )
}

/// Runs transaction `number`: records the number, and sets cells to it.
fn transact(connection: &mut Connection, number: u32, cells: &[u32]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute("INSERT INTO done VALUES (?1, zeroblob(300))", [number])?;
    for cell in cells {
        let set = "INSERT OR REPLACE INTO cells VALUES (?1, ?2, randomblob(900))";
        transaction.execute(set, [cell, &number])?;
    }
    transaction.commit()
}

/// The number of transactions in a database; all up to the last must be complete.
fn held(config: &Path, transactions: &[Transaction]) -> Result<usize, String> {
    let text = |error: rusqlite::Error| error.to_string();
    let connection = connect(config).map_err(text)?;
    let one = |question: &str| connection.query_row(question, [], |row| row.get::<_, u32>(0));
    let sound = connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    let sound = sound.map_err(text)?;
    if sound != "ok" {
        return Err(format!("integrity_check: {sound}"));
    }
    let last = one("SELECT coalesce(max(number), 0) FROM done").map_err(text)?;
    if one("SELECT count(*) FROM done").map_err(text)? != last || last as usize > transactions.len()
    {
        return Err(format!("not every transaction to the last, {last}, is there"));
    }
    let mut expected = vec![0; CELLS as usize];
    for (number, transaction) in (1..=last).zip(transactions) {
        transaction.cells.iter().for_each(|cell| expected[*cell as usize] = number);
    }
    for (cell, expected) in (0..CELLS).zip(expected) {
        let question = "SELECT coalesce(max(number), 0) FROM cells WHERE cell = ?1";
        let found: u32 = connection.query_row(question, [cell], |row| row.get(0)).map_err(text)?;
        if found != expected {
            return Err(format!("cell {cell} is from {found}, not {expected}; the last is {last}"));
        }
    }
    Ok(last as usize)
}

/// Runs transactions one after the other, and notes the position of the journal before and after each.
fn load(rig: &Rig, seed: u64, count: u32) -> Vec<Transaction> {
    let mut connection = connect(rig.config()).unwrap();
    fill(&connection).unwrap();
    let mut rng = Rng::new(seed);
    let mut transactions = Vec::new();
    for number in 1..=count {
        let cells: Vec<u32> =
            (0..1 + rng.below(6)).map(|_| rng.below(u64::from(CELLS)) as u32).collect();
        let issued = rig.recorder().position();
        transact(&mut connection, number, &cells).unwrap();
        let committed = rig.recorder().position();
        transactions.push(Transaction { cells, issued, committed });
    }
    transactions
}

fn cut(
    rig: &Rig,
    transactions: &[Transaction],
    honesty: Honesty,
    images: usize,
    seed: u64,
) -> Vec<String> {
    let folder = image_folder();
    let (image, config) = (folder.path().join("image"), folder.path().join("v.toml"));
    std::fs::write(&config, config_text(Durability::OnAck, &image)).unwrap();
    let journal = rig.recorder().journal();
    let cuts = Cuts { seed, images, from: transactions[0].issued, honesty };
    let mut rng = Rng::split(seed, "cuts");
    let mut disk = Disk::new(&journal, honesty);
    let mut violations = Vec::new();
    for position in cuts.positions(&journal, &mut rng) {
        disk.advance(position);
        place(&image, &disk.image(&mut rng));
        let least = transactions.iter().filter(|done| done.committed <= position).count();
        let most = transactions.iter().filter(|done| done.issued <= position).count();
        match held(&config, transactions) {
            Ok(last) if (least..=most).contains(&last) => {}
            Ok(last) => violations.push(format!(
                "cut at {position}: transaction {last} is the last, of {least} to {most}"
            )),
            Err(error) => violations.push(format!("cut at {position}: {error}")),
        }
    }
    violations
}

#[test]
fn commits_survive_whole() {
    let seed = 7;
    let Some(rig) = Rig::new(Engine::Ring, Durability::OnAck) else { return };
    tantalum_sqlite::register(VFS, |path: &Path| Volume::open(path), Default::default()).unwrap();
    let transactions = load(&rig, seed, 300);
    let violations = cut(&rig, &transactions, Honesty::Honest, crate::images(), seed);
    assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
    let lies = Honesty::LiesOnceIn(4, seed);
    let found_out = cut(&rig, &transactions, lies, 30, seed);
    assert!(!found_out.is_empty(), "seed {seed}: lies are not seen");
}
