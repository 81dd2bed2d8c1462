//! `tantalum replay TRACE`: what a trace would have met elsewhere.
mod cache;
mod device;
pub(super) mod plots;

use crate::Verdict;
use crate::common::{OutputArgs, TraceArgs};

/// Replay a trace through cache policies and sizes, or on simulated devices
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    cache: cache::CacheArgs,
    #[command(flatten)]
    device: device::DeviceArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format()?;
    let report = if args.device.device.is_empty() {
        cache::run(&args.trace, &args.cache)?
    } else {
        device::run(&args.trace, &args.device)?
    };
    let page = plots::page(&args.trace.name(), !args.device.device.is_empty());
    args.output.print_page(&report, format, &page)?;
    Ok(Verdict::Good)
}
