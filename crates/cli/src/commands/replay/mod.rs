//! `tantalum replay TRACE`: what a trace would have met elsewhere.
mod cache;

use crate::Verdict;
use crate::common::{OutputArgs, TraceArgs};

/// Replay a trace through cache policies and sizes
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    cache: cache::CacheArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format()?;
    let report = cache::run(&args.trace, &args.cache)?;
    args.output.print(&report, format)?;
    Ok(Verdict::Good)
}
