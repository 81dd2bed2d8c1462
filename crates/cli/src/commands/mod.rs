//! One file a command: its arguments, and `run`.
mod advise;
mod attach_plan;
mod check;
mod check_page;
mod clone;
mod completions;
mod crash;
mod create;
mod curve;
mod demo;
mod device_size;
mod device_speed;
mod holds;
mod home_stat;
mod man_pages;
mod mode;
mod remap;
mod replay;
mod repro;
mod repro_page;
mod repro_summary;
mod rescue;
mod resize;
mod room;
mod serve;
mod share;
mod sqlite;
mod standing;
mod stat;
mod stat_page;
mod stat_text;
mod tiered;
mod told_counters;
mod top;
mod trace;
mod trim;
mod unclaim;
mod volume_stat;

use crate::Verdict;

/// The commands, in the order of the help.
#[derive(clap::Subcommand, Debug)]
pub enum Command {
    Demo(demo::Args),
    #[command(hide = true)]
    DemoChild(demo::ChildArgs),
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
    Replay(replay::Args),
    Curve(curve::Args),
    Advise(advise::Args),
    Repro(repro::Args),
    Crash(crash::Args),
    #[command(subcommand)]
    Trace(trace::Command),
    Completions(completions::Args),
    ManPages(man_pages::Args),
}

impl Command {
    /// Runs the command to its end.
    pub fn run(self) -> anyhow::Result<Verdict> {
        match self {
            Command::Demo(args) => demo::run(&args),
            Command::DemoChild(args) => demo::run_child(&args),
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
            Command::Replay(args) => replay::run(&args),
            Command::Curve(args) => curve::run(&args),
            Command::Advise(args) => advise::run(&args),
            Command::Repro(args) => repro::run(&args),
            Command::Crash(args) => crash::run(&args),
            Command::Trace(command) => command.run(),
            Command::Completions(args) => completions::run(&args),
            Command::ManPages(args) => man_pages::run(&args),
        }
    }
}
