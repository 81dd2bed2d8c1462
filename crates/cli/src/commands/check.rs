//! `tantalum check VOLUME.toml`.
use crate::Verdict;
use crate::common::print_line;
use crate::progress::Progress;
use anyhow::Context;
use std::io::ErrorKind;
use std::path::PathBuf;
use tantalum_base::PAGE_BYTES;
use tantalum_base::size::human_bytes;
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::{VolumeConfig, open_volume};

/// Walk every structure of a volume, read every page, and say what is wrong, where
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration
    volume: PathBuf,
}

const AFTER_HELP: &str =
    "The volume must not be open elsewhere: stop its server first. Exit status 1 where a \
problem was found.

Examples:
  tantalum check vol/VOLUME.toml";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let config = VolumeConfig::read(&args.volume)?;
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    let (report, findings, closed) = live.run(async move {
        let (volume, report) = open_volume(&handle, &config).await?;
        let progress = Progress::steps("pages checked");
        let findings = volume.check(|done, of| progress.step(done as usize, of as usize)).await;
        progress.finish();
        let closed = volume.close().await;
        findings.map(|findings| (report, findings, closed))
    })?;
    let mut lines: Vec<String> =
        findings.iter().map(|finding| format!("{}: {}", finding.place, finding.problem)).collect();
    lines.push(format!(
        "{}: {} of {} in {} zones checked, {} changes replayed at opening, {} problems",
        args.volume.display(),
        human_bytes(report.superblock.pages * PAGE_BYTES as u64),
        human_bytes(report.superblock.store_bytes()),
        report.superblock.zones,
        report.recovery.replayed,
        findings.len()
    ));
    // What was found decides the exit status, also where nobody reads on.
    if let Err(error) = print_line(&lines.join("\n"))
        && error.kind() != ErrorKind::BrokenPipe
    {
        return Err(error).context("printing what was found");
    }
    closed.context("closing the volume")?;
    Ok(if findings.is_empty() { Verdict::Good } else { Verdict::FoundWrong })
}
