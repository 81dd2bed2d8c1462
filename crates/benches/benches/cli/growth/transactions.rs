//! Commits of transactions of which many are open at once, by a program that has the volume to itself.
use crate::measured::{Spent, command, run, tantalum};
use crate::table::Row;
use anyhow::Context;
use std::path::{Path, PathBuf};
use tantalum::Volume;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo, Rng};
use tantalum_testing::programs::fio;

const VARIABLE: &str = "GROWTH_OPEN_TRANSACTIONS";
/// How often as many transactions are begun as are open at once, and all committed.
const ROUNDS: u64 = 100;
/// Pages that each writes.
const PAGES: u64 = 4;
const DEVICE_MIB: u64 = 256;

/// `commits`, by the number of open transactions.
pub fn measure(folder: &Path, open: u64) -> anyhow::Result<Vec<Row>> {
    let volume = folder.join("VOLUME.toml");
    let capacity = format!("{DEVICE_MIB}MiB");
    tantalum(&["create", &volume.to_string_lossy(), "--capacity", &capacity])?;
    let own = std::env::current_exe()?.to_string_lossy().into_owned();
    let ours = run(command(&own, [&volume]).env(VARIABLE, open.to_string()))?;
    rustix::fs::sync();
    let job = fio(&[
        &format!("--filename={}", folder.join("file").display()),
        &format!("--size={DEVICE_MIB}m"),
        "--ioengine=psync",
        "--rw=randwrite",
        "--fdatasync=1",
        &format!("--bs={}", PAGES * PAGE_BYTES as u64),
        &format!("--io_size={}", open * ROUNDS * PAGES * PAGE_BYTES as u64),
    ]);
    let seconds = job.seconds("write");
    let peer = Spent { seconds, ..Spent::default() };
    let (size, peer_name) = (open, "fio, fdatasync after each write");
    Ok(vec![Row { operation: "commits", size, unit: "transactions", ours, peer, peer_name }])
}

/// Whether this process is the program that commits.
pub fn asked_for() -> anyhow::Result<Option<Commits>> {
    let Ok(open) = std::env::var(VARIABLE) else { return Ok(None) };
    let volume = std::env::args().nth(1).context("no volume")?.into();
    Ok(Some(Commits { volume, open: open.parse()? }))
}

/// That program.
pub struct Commits {
    volume: PathBuf,
    open: u64,
}

impl Commits {
    /// Begins as many transactions as are to be open, writes in each, and commits one after the other.
    pub fn run(self) -> anyhow::Result<()> {
        let client = Volume::open(&self.volume)?;
        let mut rng = Rng::new(1);
        let mut content = vec![0; PAGE_BYTES];
        rng.fill(&mut content);
        // Each has a part of the volume to itself: two must not have one page.
        let part = client.limits().pages / self.open;
        for _ in 0..ROUNDS {
            let begin = |number| Ok((number, client.begin()?));
            let mut open: Vec<_> = (0..self.open).map(begin).collect::<anyhow::Result<_>>()?;
            for (number, tx) in &mut open {
                for _ in 0..PAGES {
                    let page = PageNo(*number * part + rng.below(part));
                    tx.write(page, vec![PageBuf::copy_from(&content)])?;
                }
            }
            open.into_iter().try_for_each(|(_, tx)| tx.commit())?;
        }
        Ok(())
    }
}
