//! The growth of costs: each operation of `tantalum` runs at 1, 4, 16 and 64 times its size, beside a program that a user would
//! take instead. The table has time, peak memory, bytes read and written, the peer's time and the ratio of both times. Then it has
//! the powers of the size by which time and memory grow, and the drift of the ratio. Nothing is subtracted from a time: sizes are such that
//! the start of a program is a small part of it.
//!
//! `scripts/bench cli/growth`; `GROWTH_OPERATIONS=import,check` are those operations alone, `GROWTH_FACTORS=1,4,16,64` the factors,
//! and `GROWTH_ROUNDS` (3) the rounds of factors up to 4, of which the fastest counts; larger ones run once.
#[path = "growth/clients.rs"]
mod clients;
#[path = "growth/databases.rs"]
mod databases;
#[path = "growth/homes.rs"]
mod homes;
#[path = "growth/measured.rs"]
mod measured;
#[path = "growth/opening.rs"]
mod opening;
#[path = "growth/ranges.rs"]
mod ranges;
#[path = "growth/served.rs"]
mod served;
#[path = "growth/table.rs"]
mod table;
#[path = "growth/traces.rs"]
mod traces;
#[path = "growth/transactions.rs"]
mod transactions;

use std::path::Path;
use table::Row;
use tantalum_testing::built::disk_folder;
use tantalum_testing::installed;
use tantalum_testing::programs::setting;

/// Operations that share their preparation.
struct Group {
    names: &'static [&'static str],
    /// Measures each in an empty folder, at this factor.
    measure: fn(&Path, u64) -> anyhow::Result<Vec<Row>>,
}

const GROUPS: [Group; 9] = [
    Group { names: &["import", "export", "check"], measure: databases::measure },
    Group { names: &["resize"], measure: ranges::resize },
    Group { names: &["clone", "trim"], measure: ranges::clone_and_trim },
    Group { names: &["attach", "detach"], measure: homes::attach_and_detach },
    Group { names: &["destage"], measure: homes::destage },
    Group { names: &["open"], measure: opening::measure },
    Group { names: &["reads", "writes"], measure: clients::measure },
    Group { names: &["commits"], measure: transactions::measure },
    Group { names: &["replay", "curve", "convert"], measure: traces::measure },
];

fn main() -> anyhow::Result<()> {
    if let Some(commits) = transactions::asked_for()? {
        return commits.run();
    }
    // `cargo test` builds benches too and starts them without `--bench`.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    if !installed(&["fio", "nbdkit", "dd", "awk", "fallocate", "sha256sum"]) {
        return Ok(());
    }
    let factors = std::env::var("GROWTH_FACTORS").unwrap_or("1,4,16,64".into());
    let factors: Vec<u64> = factors.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let operations = std::env::var("GROWTH_OPERATIONS").unwrap_or_default();
    let is_wanted =
        |name: &str| operations.is_empty() || operations.split(',').any(|each| each == name);
    tell_load()?;
    table::print_head();
    let mut rows: Vec<Row> = Vec::new();
    for group in GROUPS.iter().filter(|group| group.names.iter().any(|name| is_wanted(name))) {
        for factor in &factors {
            let fastest = measure(group, *factor)?;
            let wanted = fastest.into_iter().filter(|row| is_wanted(row.operation));
            rows.extend(wanted.inspect(Row::print));
        }
    }
    table::print_growth(&rows);
    tell_load()
}

/// One row an operation. A small one is the fastest of a few rounds: other processes disturb it the most.
fn measure(group: &Group, factor: u64) -> anyhow::Result<Vec<Row>> {
    let rounds = if factor <= 4 { setting("GROWTH_ROUNDS", 3) } else { 1 };
    let mut fastest: Vec<Row> = Vec::new();
    for _ in 0..rounds {
        let folder = disk_folder();
        let rows = (group.measure)(folder.path(), factor)?;
        if fastest.is_empty() {
            fastest = rows;
        } else {
            fastest.iter_mut().zip(rows).for_each(|(known, row)| known.take_faster(row));
        }
    }
    Ok(fastest)
}

/// Prints the load of the machine: other work makes times longer.
fn tell_load() -> anyhow::Result<()> {
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!("load averages: {}", load.split(' ').take(3).collect::<Vec<_>>().join(" "));
    Ok(())
}
