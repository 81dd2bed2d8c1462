//! The process that is killed: it continues the load and reports the acknowledged transactions.
//!
//! It prints `i N` before transaction N, and `a N` when the commit of N was acknowledged.
use crate::live::open;
use crate::load::Transaction;
use anyhow::Context;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;
use tantalum::Volume;
use tantalum::front_end::{channel, serve};
use tantalum_base::{Limits, PageDevice, Result, Rng};
use tantalum_console::Verdict;
use tantalum_media::block_store::{
    CrashOptions, CrashStore, CutStyle, FileStore, FileStoreOptions,
};
use tantalum_media::{CutPlan, Fate};
use tantalum_runtime::live::{LiveOptions, spawn_thread};
use tantalum_runtime::{Live, Runtime};
use tantalum_volume::{FlashVolume, OpenOptions, VolumeConfig, open_flash};

/// Time limit for settling a power cut.
const SETTLE_MAX: Duration = Duration::from_secs(20);

/// Continue the demo's load until killed (used by the demo itself)
#[derive(clap::Args, Debug)]
pub struct Args {
    volume: PathBuf,
    #[arg(long)]
    seed: u64,
    /// Cut the power at this media operation instead of waiting to be killed
    #[arg(long)]
    cut_at: Option<u64>,
}

/// Runs the command: ends by being killed, or by the power cut.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    match args.cut_at {
        None => {
            tantalum_sqlite::register("demo", |path: &Path| Volume::open(path), Default::default())
        }
        Some(cut_at) => {
            let seed = args.seed;
            let opener = move |path: &Path| open_cut(path, cut_at, seed);
            tantalum_sqlite::register("demo", opener, Default::default())
        }
    }?;
    let result = load(args);
    if args.cut_at.is_some() {
        // The load fails when the power is cut; then the volume's thread ends the process.
        #[expect(clippy::disallowed_methods, reason = "waits for the other thread, in bounds")]
        std::thread::sleep(SETTLE_MAX);
    }
    result?;
    anyhow::bail!("the load ended by itself")
}

fn load(args: &Args) -> anyhow::Result<()> {
    let connection = open(&args.volume, "demo")?;
    let last: i64 = connection
        .query_row("SELECT coalesce(max(number), 0) FROM ledger", [], |row| row.get(0))
        .context("reading the last transaction")?;
    let mut out = std::io::stdout().lock();
    for number in last + 1.. {
        writeln!(out, "i {number}")?;
        if Transaction::new(args.seed, number).run(&connection)? {
            writeln!(out, "a {number}")?;
        }
    }
    Ok(())
}

/// Opens the volume over a store that keeps writes apart until they are durable. The power is cut at media operation
/// `cut_at`: each unsynced write is kept, lost or torn in the real file, and the process ends.
fn open_cut(path: &Path, cut_at: u64, seed: u64) -> Result<Volume> {
    let config = VolumeConfig::read(path)?;
    let (connector, requests) = channel();
    let (opened, open) = mpsc::channel::<Result<Limits>>();
    let body = move |live: Live| async move {
        let volume = match open_volume(&live, &config, cut_at, seed).await {
            Ok(volume) => volume,
            Err(error) => {
                let _ = opened.send(Err(error));
                return until_ended(&live).await;
            }
        };
        let _ = opened.send(Ok(volume.limits().clone()));
        serve(&live, Rc::clone(&volume), requests).await;
        until_ended(&live).await;
    };
    let thread = spawn_thread("demo-volume", LiveOptions::default(), body)?;
    let limits = open.recv().unwrap_or_else(|_| {
        let context = "the volume's thread ended";
        Err(tantalum_base::Error::new(tantalum_base::ErrorKind::Closed, context))
    })?;
    Ok(connector.connect(limits, std::sync::Mutex::new(thread)))
}

/// Keeps the executor running for the task that completes the cut and ends the process.
async fn until_ended(live: &Live) {
    live.sleep(SETTLE_MAX.as_nanos() as u64).await;
}

async fn open_volume(
    live: &Live,
    config: &VolumeConfig,
    cut_at: u64,
    seed: u64,
) -> Result<Rc<FlashVolume<CrashStore<FileStore, Live>>>> {
    let file = FileStore::open(live, &config.data_path()?, FileStoreOptions::default())?;
    let store = CrashStore::new(live.clone(), file, CrashOptions::default());
    let mut rng = Rng::split(seed ^ cut_at, "power cut");
    let fate = Fate::ALL[rng.below(3) as usize];
    store.plan_cut(CutPlan { after_operations: cut_at, fate });
    let cut = store.clone();
    live.spawn("power cut", async move {
        cut.until_cut().await;
        // A write to the file that fails now is one that a power cut may lose.
        let _ = cut.cut(&mut rng, CutStyle::Random).await;
        std::process::exit(0);
    });
    let (volume, _) = open_flash(live, store, config, OpenOptions::default()).await?;
    Ok(volume)
}
