//! `tantalum stat VOLUME.toml`.
use crate::Verdict;
use crate::common::OutputArgs;
use std::path::PathBuf;
use tantalum_base::{PAGE_BYTES, PageDevice};
use tantalum_report::{Report, Table, config_hash, schema};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::config::Kind;
use tantalum_volume::{OpenOptions, VolumeConfig, open_tiered_volume, open_volume_with};

/// Tell what a volume is made of and how full and worn it is
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration
    volume: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER_HELP: &str =
    "Nothing is written: what is not at rest is recovered in memory alone. The volume must not be \
open to be written: stop its server first.

Examples:
  tantalum stat vol/VOLUME.toml
  tantalum stat vol/VOLUME.toml --format json";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format()?;
    let config = VolumeConfig::read(&args.volume)?;
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    let opened = config.clone();
    let (limits, report, statistics, tiered) = live.run(async move {
        let options = OpenOptions::READ_ONLY;
        let described = match opened.kind {
            Kind::Flash => {
                let (volume, report) = open_volume_with(&handle, &opened, options).await?;
                (volume.limits().clone(), report, volume.device().statistics(), None)
            }
            Kind::Tiered => {
                let (volume, report) = open_tiered_volume(&handle, &opened, options).await?;
                let tiered = volume.device().device();
                let drive = tiered.drive().statistics();
                (volume.limits().clone(), report, drive, Some(tiered.statistics()))
            }
        };
        Ok::<_, tantalum_base::Error>(described)
    })?;
    let page_bytes = PAGE_BYTES as u64;
    let mut table = Table::new(schema::VOLUME_STAT);
    let (resets_min, resets_max) = statistics.ftl.zone_resets_min_max;
    table.push_named([
        ("volume", args.volume.display().to_string().into()),
        ("identity", format!("{:032x}", report.superblock.volume_id).into()),
        ("durability", limits.durability.name().into()),
        ("capacity_bytes", (limits.pages * page_bytes).into()),
        ("mapped_bytes", (statistics.ftl.pages_mapped * page_bytes).into()),
        ("store_bytes", report.superblock.store_bytes().into()),
        ("zones", u64::from(report.superblock.zones).into()),
        ("zones_free", u64::from(statistics.ftl.zones_free).into()),
        ("zones_retired", u64::from(statistics.ftl.zones_retired).into()),
        ("zone_resets_min", u64::from(resets_min).into()),
        ("zone_resets_max", u64::from(resets_max).into()),
        ("mapping_bytes", statistics.ftl.mapping_bytes.into()),
        ("shared_slots", statistics.ftl.shared_slots.into()),
        ("shared_entries", statistics.ftl.shared_entries.into()),
        ("shared_bytes", statistics.ftl.shared_bytes.into()),
        ("atomic_write_pages_max", u64::from(limits.atomic_write_pages_max).into()),
        ("share_pairs_max", u64::from(limits.share_pairs_max).into()),
        ("transaction_pages_max", u64::from(limits.transaction_pages_max).into()),
        ("buffer_bytes", (u64::from(config.buffer_pages()?) * page_bytes).into()),
        ("buffer_policy", config.buffer.as_ref().map(|buffer| buffer.policy.clone()).into()),
        ("kind", config.kind.name().into()),
        ("clean_bytes", (statistics.ftl.pages_clean * page_bytes).into()),
        ("dirty_bytes", tiered.as_ref().map(|tiered| tiered.dirty_pages * page_bytes).into()),
        ("epoch_at_home", tiered.as_ref().map(|tiered| tiered.epoch).into()),
        ("replayed_at_open", report.recovery.replayed.into()),
        ("dropped_at_open", report.recovery.dropped.into()),
        ("pages_lost", report.recovery.pages_lost.into()),
    ]);
    let parts = [format!("{config:?}")];
    args.output.print(&Report::new(0, config_hash(parts), table), format)?;
    Ok(Verdict::Good)
}
