//! `tantalum replay TRACE`: what a trace would have met elsewhere.
mod buffer;
mod cache;
mod device;
pub(super) mod plots;

use crate::Verdict;
use crate::common::{OutputArgs, TraceArgs};

/// Replay a trace through cache policies and sizes, on simulated devices, or through a buffer of
/// each policy and size above each device
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    cache: cache::CacheArgs,
    #[command(flatten)]
    device: device::DeviceArgs,
    /// Time that a client computes for each request, beside waiting; with --policy and --device
    #[arg(long, default_value_t = 0, value_name = "NS")]
    cpu_ns: u64,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format()?;
    let report = match (args.cache.policy.is_empty(), args.device.device.is_empty()) {
        (_, true) => cache::run(&args.trace, &args.cache)?,
        (true, false) => device::run(&args.trace, &args.device)?,
        (false, false) => buffer::run(&args.trace, &args.cache, &args.device, args.cpu_ns)?,
    };
    let page = plots::page(&args.trace.name(), !args.device.device.is_empty());
    args.output.print_page(&report, format, &page)?;
    Ok(Verdict::Good)
}
