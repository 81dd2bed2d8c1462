//! `tantalum check VOLUME.toml`.
use crate::Verdict;
use crate::progress::Progress;
use std::path::PathBuf;
use tantalum_base::PAGE_BYTES;
use tantalum_base::size::human_bytes;
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::{VolumeConfig, open_volume};

/// Walk every structure of a volume, read every page, and say what is wrong, where
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The volume's configuration
    volume: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let config = VolumeConfig::read(&args.volume)?;
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    let (report, findings) = live.run(async move {
        let (volume, report) = open_volume(&handle, &config).await?;
        let progress = Progress::steps("pages checked");
        let findings = volume.check(|done, of| progress.step(done as usize, of as usize)).await;
        progress.finish();
        volume.close().await?;
        findings.map(|findings| (report, findings))
    })?;
    for finding in &findings {
        println!("{}: {}", finding.place, finding.problem);
    }
    println!(
        "{}: {} of {} in {} zones checked, {} changes replayed at opening, {} problems",
        args.volume.display(),
        human_bytes(report.superblock.pages * PAGE_BYTES as u64),
        human_bytes(report.superblock.store_bytes()),
        report.superblock.zones,
        report.recovery.replayed,
        findings.len()
    );
    Ok(if findings.is_empty() { Verdict::Good } else { Verdict::FoundWrong })
}
