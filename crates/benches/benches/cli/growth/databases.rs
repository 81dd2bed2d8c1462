//! A SQLite database brought to a volume, checked there, and brought back.
use crate::measured::{command, copy, forget, run, tantalum};
use crate::table::Row;
use rusqlite::Connection;
use std::path::Path;
use tantalum_testing::rig::MIB;

const BASE_MIB: u64 = 8;

/// `import`, `export` and `check`.
pub fn measure(folder: &Path, factor: u64) -> anyhow::Result<Vec<Row>> {
    let mib = BASE_MIB * factor;
    let (database, volume) = (folder.join("app.db"), folder.join("app/VOLUME.toml"));
    std::fs::create_dir(folder.join("app"))?;
    create(&database, mib)?;
    let (database_text, volume_text) = (database.to_string_lossy(), volume.to_string_lossy());
    let out = folder.join("out.db");
    forget(&database)?;
    let import = tantalum(&["sqlite", "import", &database_text, &volume_text])?;
    let copied = copy(&database, &folder.join("copy.db"))?;
    let export = tantalum(&["sqlite", "export", &volume_text, &out.to_string_lossy()])?;
    let copied_back = copy(&folder.join("copy.db"), &folder.join("back.db"))?;
    let check = tantalum(&["check", &volume_text])?;
    forget(&database)?;
    let summed = run(&mut command("sha256sum", [&database]))?;
    let row = |operation, ours, peer, peer_name| {
        let (size, unit) = (mib, "MiB");
        Row { operation, size, unit, ours, peer, peer_name }
    };
    Ok(vec![
        row("import", import, copied, "dd, fsync"),
        row("export", export, copied_back, "dd, fsync"),
        row("check", check, summed, "sha256sum of the database"),
    ])
}

/// A database of so many MiB.
fn create(path: &Path, mib: u64) -> anyhow::Result<()> {
    // A row is a bit larger than its content, and a page has room for four of these.
    const ROW_BYTES: u64 = 980;
    let rows = mib * MIB / 1024;
    let connection = Connection::open(path)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         CREATE TABLE item(id INTEGER PRIMARY KEY, content BLOB);
         WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO item SELECT i, randomblob({ROW_BYTES}) FROM n"
    ))?;
    Ok(())
}
