//! Bulk statements on a volume and on a plain file in WAL mode, `synchronous=FULL` and SQLite's own cache, at several
//! sizes: time, memory and bytes of each, their ratio, and how they grow. Both sides run one after the other in
//! processes of their own, in one control group of limited memory where there can be one.
//!
//! `scripts/bench sqlite/bulk [-- FOLDER]`, by default in the build's folder. `BULK_MB` are the sizes of the database
//! (6,24,96,384), `BULK_MEMORY` the limit (1GiB), `BULK_STEPS` those steps alone, of which `insert` is always the first.
#[path = "bulk/control_group.rs"]
mod control_group;
#[path = "bulk/step.rs"]
mod step;

use anyhow::{Context, ensure};
use control_group::ControlGroup;
use std::path::{Path, PathBuf};
use std::process::Command;
use step::{Side, Spent, Step};
use tantalum_base::size::Size;

/// Falling further behind from the smallest to the largest size than this is a finding.
const DRIFT_MAX: f64 = 1.5;

fn main() -> anyhow::Result<()> {
    if let Some(child) = step::asked_for()? {
        return child.run();
    }
    // `cargo test` builds benches too and runs them with `--test` at most: nothing to do then.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let sizes = std::env::var("BULK_MB").unwrap_or("6,24,96,384".into());
    let sizes: Vec<u64> = sizes.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let wanted = std::env::var("BULK_STEPS").unwrap_or_default();
    let is_wanted =
        |step: &Step| wanted.is_empty() || wanted.split(',').any(|it| it == step.name());
    let steps: Vec<Step> = Step::ALL.into_iter().filter(is_wanted).collect();
    let memory = std::env::var("BULK_MEMORY").unwrap_or("1GiB".into());
    let group = ControlGroup::of(Size::parse_bytes(&memory)?);
    match &group {
        Some(_) => println!("memory of each process: {memory}"),
        None => println!("memory of each process: without a limit (no control group can be made)"),
    }
    // Not in memory, as the folder for temporary files may be.
    let parent = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let parent = PathBuf::from(parent.as_deref().unwrap_or(env!("CARGO_TARGET_TMPDIR")));
    println!("{:8} {:>6}  {:>28}  {:>28}  ratio", "", "MB", "file, WAL", "volume");
    let mut rows: Vec<Row> = Vec::new();
    for mb in sizes {
        let folder = tempfile::tempdir_in(&parent)?;
        for step in steps.iter().copied() {
            let row = Row::measure(step, mb, folder.path(), group.as_ref())?;
            row.print();
            rows.push(row);
        }
    }
    println!("\n{:8} time grows as size to the power of  WAL, volume; ratio, last to first", "");
    steps.into_iter().for_each(|step| print_growth(step, &rows));
    Ok(())
}

/// One step at one size.
struct Row {
    step: Step,
    mb: u64,
    wal: Spent,
    volume: Spent,
}

impl Row {
    fn measure(
        step: Step,
        mb: u64,
        folder: &Path,
        group: Option<&ControlGroup>,
    ) -> anyhow::Result<Row> {
        let spent = |side: Side| -> anyhow::Result<Spent> {
            // One side's unwritten data must not become the other's waits.
            rustix::fs::sync();
            let mut child = Command::new(std::env::current_exe()?);
            step::ask(&mut child, step, side, mb, folder);
            group.iter().for_each(|group| step::enter(&mut child, &group.entrance()));
            let output = child.output().context("starting the step")?;
            let told = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{} on {side:?}: {told}", step.name());
            Spent::parse(&String::from_utf8_lossy(&output.stdout))
        };
        Ok(Row { step, mb, wal: spent(Side::Wal)?, volume: spent(Side::Volume)? })
    }

    fn ratio(&self) -> f64 {
        self.volume.seconds / self.wal.seconds
    }

    fn print(&self) {
        let Row { step, mb, wal, volume } = self;
        println!("{:8} {mb:6}  {wal}  {volume}  {:.2}", step.name(), self.ratio());
    }
}

/// How the time of `step` grows from the first size to the last.
fn print_growth(step: Step, rows: &[Row]) {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.step == step).collect();
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return };
    if first.mb == last.mb {
        return;
    }
    let larger = (last.mb as f64 / first.mb as f64).ln();
    let power = |seconds: fn(&Row) -> f64| (seconds(last) / seconds(first)).ln() / larger;
    let drift = last.ratio() / first.ratio();
    println!(
        "{:8} {:.2}, {:.2}; {drift:.2}{}",
        step.name(),
        power(|row| row.wal.seconds),
        power(|row| row.volume.seconds),
        if drift > DRIFT_MAX { "  falls behind" } else { "" }
    );
}
