//! The fields of `tantalum stat` for an open volume, whichever process has it open.
use super::serve::control::Stat;
use tantalum_base::{Limits, PAGE_BYTES, PageDevice, Result};
use tantalum_cache::TieredStatistics;
use tantalum_report::Value;
use tantalum_runtime::Live;
use tantalum_ssd::SsdStatistics;
use tantalum_volume::config::Kind;
use tantalum_volume::superblock::Superblock;
use tantalum_volume::{FlashVolume, OpenReport, TieredVolume, VolumeConfig, VolumeStore};

/// The fields of a volume of kind `flash`.
///
/// # Errors
/// If the configuration is invalid.
pub fn of_flash(
    config: &VolumeConfig,
    volume: &FlashVolume<VolumeStore>,
    report: &OpenReport,
) -> Result<Stat> {
    fields(config, volume.limits(), report, &volume.device().statistics(), None)
}

/// The fields of a volume of kind `tiered`.
///
/// # Errors
/// If the configuration is invalid.
pub fn of_tiered(
    config: &VolumeConfig,
    volume: &TieredVolume<Live, VolumeStore>,
    report: &OpenReport,
) -> Result<Stat> {
    let tiered = volume.device().device();
    let drive = tiered.drive().statistics();
    fields(config, volume.limits(), report, &drive, Some(tiered.statistics()))
}

/// The fields of a volume that another process has open, from its configuration and superblock.
///
/// # Errors
/// If the configuration is invalid.
pub fn of_closed(config: &VolumeConfig, superblock: &Superblock) -> Result<Stat> {
    let capacity_bytes = match config.kind {
        Kind::Tiered => config.size_bytes()?,
        Kind::Flash => superblock.pages * PAGE_BYTES as u64,
    };
    let mut stat = named(config, superblock, capacity_bytes)?;
    stat.push(("durability_over_nbd", config.durability_over_nbd().name().into()));
    Ok(stat)
}

/// The fields that do not change while a volume is open.
fn named(config: &VolumeConfig, superblock: &Superblock, capacity_bytes: u64) -> Result<Stat> {
    let page_bytes = PAGE_BYTES as u64;
    let policy = config.buffer.as_ref().map(|buffer| buffer.policy.clone());
    Ok(vec![
        ("identity", format!("{:032x}", superblock.volume_id).into()),
        ("durability", config.durability().name().into()),
        ("capacity_bytes", capacity_bytes.into()),
        ("store_bytes", superblock.store_bytes().into()),
        ("zone_bytes", (u64::from(superblock.slots_per_zone) * page_bytes).into()),
        ("zones", u64::from(superblock.zones).into()),
        ("buffer_bytes", (u64::from(config.buffer_pages()?) * page_bytes).into()),
        ("buffer_policy", policy.into()),
        ("kind", config.kind.name().into()),
    ])
}

fn fields(
    config: &VolumeConfig,
    limits: &Limits,
    report: &OpenReport,
    statistics: &SsdStatistics,
    tiered: Option<TieredStatistics>,
) -> Result<Stat> {
    let page_bytes = PAGE_BYTES as u64;
    let ftl = &statistics.ftl;
    let (resets_min, resets_max) = ftl.zone_resets_min_max;
    let dirty = tiered.as_ref().map(|tiered| tiered.dirty_pages * page_bytes);
    let first_unreadable = tiered.as_ref().and_then(|tiered| tiered.first_unreadable);
    let waits_for_first = first_unreadable.map(|page| page.0);
    let census = &ftl.census;
    // A home may end within its last page. A volume without a home may have grown, and its configuration not say so
    // yet.
    let capacity_bytes = match tiered {
        Some(_) => config.size_bytes()?,
        None => limits.pages * page_bytes,
    };
    let fields: [(_, Value); 27] = [
        ("mapped_bytes", (ftl.pages_mapped * page_bytes).into()),
        ("live_bytes", (census.slots_live * page_bytes).into()),
        ("dead_bytes", (census.slots_dead * page_bytes).into()),
        ("zones_free", u64::from(ftl.zones_free).into()),
        ("zones_reserve", u64::from(census.zones_reserve).into()),
        ("zones_by_fill", listed(&census.by_fill).into()),
        ("zones_by_resets", listed(&census.by_resets).into()),
        ("resets_width", u64::from(census.resets_width).into()),
        ("zones_retired", u64::from(ftl.zones_retired).into()),
        ("zone_resets_min", u64::from(resets_min).into()),
        ("zone_resets_max", u64::from(resets_max).into()),
        ("mapping_bytes", ftl.mapping_bytes.into()),
        ("shared_slots", ftl.shared_slots.into()),
        ("shared_entries", ftl.shared_entries.into()),
        ("shared_bytes", ftl.shared_bytes.into()),
        ("atomic_write_pages_max", u64::from(limits.atomic_write_pages_max).into()),
        ("share_pairs_max", u64::from(limits.share_pairs_max).into()),
        ("transaction_pages_max", u64::from(limits.transaction_pages_max).into()),
        ("clean_bytes", (ftl.pages_clean * page_bytes).into()),
        ("dirty_bytes", dirty.into()),
        ("epoch_at_home", tiered.as_ref().map(|tiered| tiered.epoch).into()),
        ("destage_waits_for_pages", tiered.as_ref().map(|tiered| tiered.unreadable_pages).into()),
        ("destage_waits_for_first", waits_for_first.into()),
        ("replayed_at_open", report.recovery.replayed.into()),
        ("dropped_at_open", report.recovery.dropped.into()),
        ("pages_lost", report.recovery.pages_lost.into()),
        ("durability_over_nbd", config.durability_over_nbd().name().into()),
    ];
    let mut stat = named(config, &report.superblock, capacity_bytes)?;
    stat.extend(fields);
    Ok(stat)
}

/// Numbers as one text, which a server can send on one line.
fn listed(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    numbers.join(" ")
}
