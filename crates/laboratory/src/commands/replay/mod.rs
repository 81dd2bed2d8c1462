//! `tantalum replay TRACE`: runs a trace through caches, buffers, devices and tiers.
mod buffer;
mod cache;
mod device;
pub(super) mod pages;
mod tier;

use crate::common::TraceArgs;
use tantalum_console::Verdict;
use tantalum_console::interruption;
use tantalum_console::output::OutputArgs;

/// Replay a trace through cache policies and sizes, on simulated devices, or through a buffer of
/// each policy and size above each device or each flash cache
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    cache: cache::CacheArgs,
    #[command(flatten)]
    device: device::DeviceArgs,
    /// Nanoseconds that a client computes for each request, besides waiting; with --policy and --device
    #[arg(long, default_value_t = 0, value_name = "NS", requires_all = ["policy", "device"])]
    cpu_ns: u64,
    #[command(flatten)]
    tier: tier::TierArgs,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER_HELP: &str = "--policy help, --device help and --tier help print all names, \
--device durassd:help the parameters of one; no trace is needed. Case and hyphens in names do not matter. After Ctrl-C or SIGTERM \
replay prints the complete rows and the number of missing ones, and exits with 130 or 143; a \
second signal ends it at once.

Examples:
  tantalum replay tpcc.csv.zst --policy lru,clock:bits=2,opt --size 1%,10%
  tantalum replay 'zipf:pages=20k,requests=100k,writes=0.5,commit=8' --device durassd:capacity=256MiB
  tantalum replay tpcc.csv.zst --policy lru,cflru --size 64MiB --device ssd-a:capacity=1GiB
  tantalum replay tpcc.csv.zst --policy lru --size 2% --tier bl,nfa,lazy:keep=0.8 --tier-size 13%";

#[cfg(test)]
impl Args {
    /// Checks that all names are known; files are not checked.
    pub fn check(&self) -> anyhow::Result<()> {
        self.trace.seed()?;
        self.device.devices()?;
        if !self.cache.policy.is_empty() {
            self.cache.policies()?;
            self.cache.sizes()?;
        }
        if self.tier.is_given() {
            self.tier.tiers()?;
        }
        Ok(())
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format_beside(&args.trace.files()?)?;
    args.trace.check_fits()?;
    interruption::watch()?;
    let name = args.trace.name();
    let (mut report, page) = if args.tier.is_given() {
        let report = tier::run(&args.trace, &args.cache, &args.tier)?;
        let page = pages::tier_page(&name, &report);
        (report, page)
    } else if args.device.device.is_empty() {
        let report = cache::run(&args.trace, &args.cache)?;
        let page = pages::cache_page(&name, &report);
        (report, page)
    } else if args.cache.policy.is_empty() {
        let report = device::run(&args.trace, &args.device)?;
        let page = pages::device_page(&name, &report);
        (report, page)
    } else {
        let report = buffer::run(&args.trace, &args.cache, &args.device, args.cpu_ns)?;
        let page = pages::buffer_page(&name, &report);
        (report, page)
    };
    args.trace.tell(&mut report);
    args.output.print_page(&report, format, &page)?;
    Ok(interruption::verdict(&report))
}
