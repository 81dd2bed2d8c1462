//! `tantalum-demo`: the command `tantalum demo`. It runs completely on this machine, in a temporary folder.
//!
//! ```text
//! live      a real SQLite on a volume in a file; its page trace is recorded
//! crash     the process is killed, the power is cut; all acknowledged transactions survive
//! simulate  the recorded trace on simulated devices in virtual time
//! beside    the same load on plain files
//! compare   runs a load on a volume and on plain files, in turns
//! load      the SQL, and the model of its result
//! child     the process that is killed
//! ```
#![deny(clippy::print_stdout)]

mod beside;
mod child;
mod compare;
mod crash;
mod live;
mod load;
mod simulate;
#[cfg(test)]
mod tests;

use anyhow::{Context, ensure};
use clap::{CommandFactory, Parser};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tantalum_base::Result;
use tantalum_console::output::print_line;
use tantalum_console::programs::Documents;
use tantalum_console::{AFTER_HELP as EXIT_CODES, Verdict, interruption};
use tantalum_runtime::Live;
use tantalum_runtime::live::signal::terminated;
use tantalum_runtime::live::{LiveOptions, spawn_thread};
use tantalum_volume::{VolumeConfig, config, create_volume};

/// Simulated devices are many small allocations (docs/benchmarks.md has the gain of this allocator).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The demo of Tantalum.
#[derive(Parser, Debug)]
#[command(name = "tantalum", bin_name = "tantalum", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Demo(Args),
    #[command(hide = true)]
    DemoChild(child::Args),
    #[command(flatten)]
    Documents(Documents),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    tantalum_console::run(|| match cli.command {
        Command::Demo(args) => run(&args),
        Command::DemoChild(args) => child::run(&args),
        Command::Documents(documents) => documents.run(Cli::command(), "tantalum-demo"),
    })
}

/// Capacity of the demo's volumes.
const CAPACITY: &str = "64MiB";

/// Run a real SQLite on a volume, kill it, cut its power, simulate it and compare it
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
struct Args {
    /// Seed of the load and of every crash
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of transactions of the live load
    #[arg(long, default_value_t = 3000, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
    transactions: i64,
    /// Number of rounds with SIGKILL, and as many with a power cut
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Keep the volumes and the trace in this folder, which must not exist
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

const AFTER_HELP: &str = "demo works in a temporary folder, which it removes at the end, and also after Ctrl-C or SIGTERM; --keep FOLDER keeps the files.

Examples:
  tantalum demo
  tantalum demo --transactions 500 --rounds 1 --keep kept";

/// Runs the command.
fn run(args: &Args) -> anyhow::Result<Verdict> {
    let folder = Folder::make(args.keep.as_deref())?;
    end_when_interrupted(&folder)?;
    let dir = folder.path();
    print_line(&format!("Tantalum demo, seed {}, in {}\n", args.seed, dir.display()))?;
    let volume = make_volume(dir, "volume")?;
    let trace = dir.join("sqlite.trace.csv");
    live::run(&volume, &trace, args.seed, args.transactions)?;
    crash::run(&volume, args.seed, args.transactions, args.rounds)?;
    simulate::run(&trace, args.seed)?;
    beside::run(dir, CAPACITY, args.seed, args.transactions)?;

    if args.keep.is_some() {
        print_line(&format!("The volumes and the trace are in {}.", dir.display()))?;
    }
    Ok(Verdict::Good)
}

/// Ends the program when a signal requests it; removes a temporary folder first.
fn end_when_interrupted(folder: &Folder) -> anyhow::Result<()> {
    interruption::watch()?;
    let temporary = match folder {
        Folder::Temporary(folder) => Some(folder.path().to_path_buf()),
        Folder::Kept(_) => None,
    };
    let (armed, is_armed) = std::sync::mpsc::channel();
    let watch = move |live: Live| async move {
        let interrupted = terminated(&live)?;
        let _ = armed.send(());
        interrupted.await;
        if let Some(folder) = temporary {
            take_away(&folder);
        }
        std::process::exit(interruption::exit_code().into())
    };
    spawn_thread::<Result<()>, _, _>("interruption", LiveOptions::default(), watch)?;
    is_armed.recv().context("watching for signals")
}

/// Removes a folder in which files may still be created: if some are left, it tries again.
fn take_away(folder: &Path) {
    let mut tries = 100;
    while folder.exists() && tries > 0 {
        let _ = std::fs::remove_dir_all(folder);
        tries -= 1;
    }
    if folder.exists() {
        eprintln!("tantalum: {} could not be removed", folder.display());
    }
}

/// Makes a new volume NAME.toml in `dir`; returns the path of its configuration.
fn make_volume(dir: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let path = dir.join(format!("{name}.toml"));
    let text = config::template(CAPACITY).replace("data.tantalum", &format!("{name}.tantalum"));
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    let config = VolumeConfig::read(&path)?;
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    live.run(async move { create_volume(&handle, &config, false).await })?;
    Ok(path)
}

/// A temporary folder, or one to keep.
enum Folder {
    Temporary(tempfile::TempDir),
    Kept(PathBuf),
}

impl Folder {
    fn make(keep: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = keep else {
            let made = tempfile::Builder::new().prefix("tantalum-demo-").tempdir();
            return Ok(Folder::Temporary(made.context("making a temporary folder")?));
        };
        ensure!(!path.exists(), "{} exists already: name a new folder", path.display());
        std::fs::create_dir_all(path).with_context(|| format!("making {}", path.display()))?;
        Ok(Folder::Kept(path.to_path_buf()))
    }

    fn path(&self) -> &Path {
        match self {
            Folder::Temporary(folder) => folder.path(),
            Folder::Kept(path) => path,
        }
    }
}
