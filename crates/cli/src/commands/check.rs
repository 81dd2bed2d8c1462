//! `tantalum check VOLUME.toml`.
use super::check_advice::advice;
use super::check_page;
use anyhow::Context;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tantalum_base::PAGE_BYTES;
use tantalum_base::size::human_bytes;
use tantalum_console::Verdict;
use tantalum_console::output::{PageArgs, print_line};
use tantalum_console::progress::Progress;
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{LifeCycle, Live};
use tantalum_volume::config::Kind;
use tantalum_volume::{
    CheckReport, Ends, OpenOptions, VolumeConfig, check_volume, open_tiered_volume, open_volume,
};

/// Walk every structure of a volume, read every page, and report each problem and its place
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration
    volume: PathBuf,
    /// First open the volume for writing even if it is refused as damaged or has an unreadable block; give up whatever
    /// cannot be determined any more, and every unreadable page; report all that was given up
    #[arg(long)]
    accept_loss: bool,
    #[command(flatten)]
    page: PageArgs,
}

const AFTER_HELP: &str =
    "check writes nothing without --accept-loss: the volume may lie on a read-only or full file \
system, and others may read it meanwhile. No process may have it open for writing: stop its server \
first. The last line is the verdict, sound or damaged. The exit status is 1 if a problem was \
found.

Damage to content that is not in force (replaced contents, headers of appends, the other copy of an \
anchor) is printed and counted too, but is no problem: no content of the volume is concerned, and \
the exit status is 0. It means that the medium fails, or that something wrote to it. check does not \
look at zones without content in force, nor at the end of the log that a power cut or a kill may \
have left.

Examples:
  tantalum check vol/VOLUME.toml
  tantalum check vol/VOLUME.toml --accept-loss";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    args.page.check()?;
    let config = VolumeConfig::read(&args.volume)?;
    let given_up = match args.accept_loss {
        true => Some(give_up(&config)?),
        false => None,
    };
    let is_tiered = config.kind == Kind::Tiered;
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    let report = live.run(async move {
        let progress = Progress::steps("slots checked");
        let step = |done: u64, of: u64| progress.step(done as usize, of as usize);
        let report = check_volume(&handle, &config, step).await;
        progress.finish();
        report
    });
    let report = say_if_in_use(report)?;
    let unknown_pages = given_up.as_ref().map_or(0, |given_up| given_up.unknown_pages);
    let given_up = given_up.map(|given_up| given_up.told);
    let told = verdict(&args.volume, &report, unknown_pages);
    let mut lines: Vec<String> = given_up.clone().into_iter().collect();
    let findings =
        report.findings.iter().map(|found| format!("{}: {}", found.place, found.problem));
    lines.extend(findings);
    let not_in_force = report.not_in_force.iter();
    lines.extend(not_in_force.map(|found| {
        let (place, problem) = (&found.place, &found.problem);
        format!("{place}: {problem} (not in force: no content of the volume is concerned)")
    }));
    if !report.findings.is_empty() {
        lines.extend(advice(&report, is_tiered));
    }
    lines.push(told.clone());
    // The findings decide the exit status, even if the reader of the output has gone.
    if let Err(error) = print_line(&lines.join("\n"))
        && error.kind() != ErrorKind::BrokenPipe
    {
        return Err(error).context("printing what was found");
    }
    check_page::write(&args.page, &report, told, given_up)?;
    let is_good = report.findings.is_empty() && unknown_pages == 0;
    Ok(if is_good { Verdict::Good } else { Verdict::FoundWrong })
}

/// Adds advice to the error if another process has the volume open.
fn say_if_in_use<T>(result: tantalum_base::Result<T>) -> anyhow::Result<T> {
    match result {
        Err(error) if error.kind() == tantalum_base::ErrorKind::Locked => Err(error).context(
            "no other process may have the volume open during a check (stop its server by SIGTERM, \
             or close the programs that use it; `tantalum stat` asks a running server)",
        ),
        result => Ok(result?),
    }
}

/// The losses.
struct GivenUp {
    told: String,
    /// Pages that may have wrong content although no structure of the volume shows that.
    unknown_pages: u64,
}

/// Opens the volume, gives up all content that prevents this, and closes the volume again.
fn give_up(config: &VolumeConfig) -> anyhow::Result<GivenUp> {
    let live = Live::new(LiveOptions::default())?;
    let (handle, config) = (live.clone(), config.without_buffer());
    let opened = live.run(async move {
        let options = OpenOptions { accept_loss: true, ..OpenOptions::default() };
        let report = match config.kind {
            Kind::Flash => {
                let (volume, report) = open_volume(&handle, &config, options).await?;
                volume.close().await?;
                report
            }
            Kind::Tiered => {
                let (volume, report) = open_tiered_volume(&handle, &config, options).await?;
                volume.close().await?;
                report
            }
        };
        Ok::<_, tantalum_base::Error>((report.recovery, report.ends))
    });
    let (recovery, ends) = say_if_in_use(opened)?;
    // The volume's tasks hold its files until they are dropped.
    live.drop_tasks();
    let told = format!(
        "given up: {} changes of unknown pages, which now have their earlier content; {} pages of \
         which the map is damaged, and {} that could not be read, which are errors until they are \
         written again; {} pages return errors in total{}",
        recovery.changes_given_up,
        recovery.pages_given_up,
        recovery.pages_unreadable,
        recovery.pages_lost,
        told_ends(&ends),
    );
    Ok(GivenUp { told, unknown_pages: ends.unknown })
}

/// The result for the ends of a home whose claim was not intact.
fn told_ends(ends: &Ends) -> String {
    let mut told = String::new();
    if ends.written > 0 {
        told += &format!(
            "; {} pages at the ends of the home differed from the flash, and were written there once more",
            ends.written
        );
    }
    if ends.unknown > 0 {
        told += &format!(
            "; {} pages at the ends of the home MAY BE WRONG: the flash does not have them, and \
             nothing tells whether they were stored with the claim or without it: restore them \
             from a backup, or check the file system",
            ends.unknown
        );
    }
    told
}

/// The last line: the verdict on the volume, and how much of it was checked.
fn verdict(volume: &Path, report: &CheckReport, unknown_pages: u64) -> String {
    let volume = volume.display();
    let unanswered = report.findings.iter().filter(|found| found.unanswered).count();
    let word = match report.findings.len() - unanswered {
        0 if unknown_pages > 0 => "some pages may be wrong",
        0 if unanswered == 0 => "sound",
        0 => "not all of it can be read now",
        _ => "damaged",
    };
    let mut problems = match report.findings.len() {
        1 => "1 problem".to_owned(),
        many => format!("{many} problems"),
    };
    if unanswered > 0 {
        let these = ", including errors of the medium that may be temporary: ";
        problems = format!("{problems}{these}{unanswered}");
    }
    let looked_at = match (&report.superblock, &report.recovery) {
        (Some(superblock), Some(recovery)) if superblock.is_cache => format!(
            "a cache of {} over a home of {}, {} zones checked, {} changes replayed in memory",
            human_bytes(superblock.store_bytes()),
            human_bytes(superblock.pages * PAGE_BYTES as u64),
            superblock.zones,
            recovery.replayed,
        ),
        (Some(superblock), Some(recovery)) => format!(
            "{} of {} in {} zones checked, {} changes replayed in memory",
            human_bytes(superblock.pages * PAGE_BYTES as u64),
            human_bytes(superblock.store_bytes()),
            superblock.zones,
            recovery.replayed,
        ),
        (Some(_), None) => "only the superblock could be checked, no page was read".to_owned(),
        (None, _) => "nothing behind the superblock could be checked".to_owned(),
    };
    let unread = report.not_in_force.iter().filter(|found| found.unanswered).count();
    let places = |count: usize| match count {
        1 => "1 place that is".to_owned(),
        many => format!("{many} places that are"),
    };
    let besides = match (report.not_in_force.len() - unread, unread) {
        (0, 0) => String::new(),
        (damaged, 0) => format!(", with damage to {} not in force", places(damaged)),
        (0, unread) => format!(", without {} not in force and cannot be read now", places(unread)),
        (damaged, unread) => format!(
            ", with damage to {} not in force, and without {unread} that cannot be read now",
            places(damaged)
        ),
    };
    format!("{volume}: {word}{besides}: {looked_at}, {problems}")
}
