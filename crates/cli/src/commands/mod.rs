//! One file per command: its arguments, and `run`.
mod attach_plan;
mod check;
mod check_advice;
mod check_page;
mod clone;
mod completions;
mod create;
mod device_speed;
mod home_stat;
mod man_pages;
mod mode;
mod remap;
mod rescue;
mod resize;
mod room;
mod serve;
mod share;
mod sqlite;
mod stat;
mod stat_page;
mod stat_text;
mod tiered;
mod told_counters;
mod top;
mod trim;
mod unclaim;

use tantalum_console::Verdict;
use tantalum_console::programs::Elsewhere;

/// The commands, in the order of the help.
#[derive(clap::Subcommand, Debug)]
pub enum Command {
    /// Run a real SQLite on a volume, kill it, cut its power, simulate it and compare it
    Demo(Elsewhere),
    Create(create::Args),
    Attach(tiered::AttachArgs),
    Detach(tiered::DetachArgs),
    Rescue(rescue::Args),
    Unclaim(unclaim::Args),
    Serve(serve::Args),
    Mode(mode::Args),
    Check(check::Args),
    Stat(stat::Args),
    Top(top::Args),
    Resize(resize::Args),
    Share(share::Args),
    Clone(clone::Args),
    Trim(trim::Args),
    #[command(subcommand)]
    Sqlite(sqlite::Command),
    /// Replay a trace through cache policies and sizes, on simulated devices, or through a buffer of
    /// each policy and size above each device or each flash cache
    Replay(Elsewhere),
    /// Miss-ratio curve of LRU: all cache sizes in one pass over a trace, exact or sampled
    Curve(Elsewhere),
    /// Recommend a cache policy and a memory size for a trace on a device, with the evidence
    Advise(Elsewhere),
    /// Measure a paper's figures again, beside the paper's own numbers
    Repro(Elsewhere),
    /// Cut the power of simulated devices, in their recoveries too, and check every promise
    Crash(Elsewhere),
    /// Inspect, convert and generate traces (formats: docs/traces.md)
    Trace(Elsewhere),
    Completions(completions::Args),
    ManPages(man_pages::Args),
}

impl Command {
    /// Runs the command to its end.
    pub fn run(self) -> anyhow::Result<Verdict> {
        match self {
            Command::Demo(words) => Err(words.run("demo")),
            Command::Create(args) => create::run(&args),
            Command::Attach(args) => tiered::attach(&args),
            Command::Detach(args) => tiered::detach(&args),
            Command::Rescue(args) => rescue::run(&args),
            Command::Unclaim(args) => unclaim::run(&args),
            Command::Serve(args) => serve::run(&args),
            Command::Mode(args) => mode::run(&args),
            Command::Check(args) => check::run(&args),
            Command::Stat(args) => stat::run(&args),
            Command::Top(args) => top::run(&args),
            Command::Resize(args) => resize::run(&args),
            Command::Share(args) => share::run(&args),
            Command::Clone(args) => clone::run(&args),
            Command::Trim(args) => trim::run(&args),
            Command::Sqlite(command) => command.run(),
            Command::Replay(words) => Err(words.run("replay")),
            Command::Curve(words) => Err(words.run("curve")),
            Command::Advise(words) => Err(words.run("advise")),
            Command::Repro(words) => Err(words.run("repro")),
            Command::Crash(words) => Err(words.run("crash")),
            Command::Trace(words) => Err(words.run("trace")),
            Command::Completions(args) => completions::run(&args),
            Command::ManPages(args) => man_pages::run(&args),
        }
    }
}
