//! The figures of a volume that is open here, or in another process.
use std::collections::BTreeMap;
use tantalum_base::{Limits, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Result};
use tantalum_cache::TieredStatistics;
use tantalum_runtime::Live;
use tantalum_ssd::SsdStatistics;

use crate::config::{Kind, VolumeConfig};
use crate::flash::{FlashVolume, OpenReport};
use crate::holds::content_name;
use crate::open_options::OpenOptions;
use crate::store::VolumeStore;
use crate::superblock::Superblock;
use crate::tiered::TieredVolume;

/// The figures of a volume, by the names of `tantalum stat` (`docs/output.md` describes each): its properties, its use of space,
/// and its wear. Figures that do not apply to the volume are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat(BTreeMap<String, String>);

impl Stat {
    /// The figure called `name`, as text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The figure called `name`, if it is a whole number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// All figures with their names, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, figure)| (name.as_str(), figure.as_str()))
    }

    /// Adds a figure, or replaces the one of this name.
    pub fn put(&mut self, name: &str, figure: impl ToString) {
        self.0.insert(name.to_owned(), figure.to_string());
    }

    /// Adds a figure if there is one.
    fn put_some(&mut self, name: &str, figure: Option<impl ToString>) {
        if let Some(figure) = figure {
            self.put(name, figure);
        }
    }

    /// Adds the kind of the content of `device`, which these figures describe. It stays absent if the first pages cannot be
    /// read.
    pub async fn put_content(&mut self, device: &impl PageDevice<Page = PageBuf>) {
        let is_unmapped = self.number("mapped_bytes") == Some(0);
        self.put_some("holds", content_name(device, is_unmapped).await);
    }

    /// The figures of `volume`, of kind `flash`, which was opened with `options`.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn of_flash(
        config: &VolumeConfig,
        volume: &FlashVolume<VolumeStore>,
        report: &OpenReport,
        options: OpenOptions,
    ) -> Result<Stat> {
        let mut stat = open(config, volume.limits(), report, &volume.device().statistics(), None)?;
        // A killed writer may have left pages of an open transaction, which the next writer discards.
        if options.read_only && report.superblock.is_staged {
            stat.put("mapped_bytes", written_pages(volume) * PAGE_BYTES as u64);
        }
        Ok(stat)
    }

    /// The figures of `volume`, of kind `tiered`.
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
        open(config, volume.limits(), report, &drive, Some(tiered.statistics()))
    }

    /// The figures of a volume that another process has open, from its configuration and superblock.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn of_closed(config: &VolumeConfig, superblock: &Superblock) -> Result<Stat> {
        let capacity_bytes = match config.kind {
            Kind::Tiered => config.size_bytes()?,
            Kind::Flash => superblock.pages * PAGE_BYTES as u64,
        };
        named(config, superblock, capacity_bytes)
    }
}

impl FromIterator<(String, String)> for Stat {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(figures: I) -> Stat {
        Stat(figures.into_iter().collect())
    }
}

/// The figures that do not change while a volume is open.
fn named(config: &VolumeConfig, superblock: &Superblock, capacity_bytes: u64) -> Result<Stat> {
    let page_bytes = PAGE_BYTES as u64;
    let mut stat = Stat::default();
    stat.put("identity", format!("{:032x}", superblock.volume_id));
    stat.put("durability", config.durability().name());
    stat.put("durability_over_nbd", config.durability_over_nbd().name());
    stat.put("capacity_bytes", capacity_bytes);
    stat.put("store_bytes", superblock.store_bytes());
    stat.put("zone_bytes", u64::from(superblock.slots_per_zone) * page_bytes);
    stat.put("zones", superblock.zones);
    stat.put("buffer_bytes", u64::from(config.buffer_pages()?) * page_bytes);
    stat.put_some("buffer_policy", config.buffer.as_ref().map(|buffer| &buffer.policy));
    stat.put("kind", config.kind.name());
    Ok(stat)
}

fn open(
    config: &VolumeConfig,
    limits: &Limits,
    report: &OpenReport,
    statistics: &SsdStatistics,
    tiered: Option<TieredStatistics>,
) -> Result<Stat> {
    // A home may end within its last page. A volume without a home may have grown without an update of its configuration.
    let capacity_bytes = match tiered {
        Some(_) => config.size_bytes()?,
        None => limits.pages * PAGE_BYTES as u64,
    };
    let mut stat = named(config, &report.superblock, capacity_bytes)?;
    put_space(&mut stat, statistics);
    stat.put("atomic_write_pages_max", limits.atomic_write_pages_max);
    stat.put("share_pairs_max", limits.share_pairs_max);
    stat.put("transaction_pages_max", limits.transaction_pages_max);
    if let Some(tiered) = tiered {
        stat.put("dirty_bytes", tiered.dirty_pages * PAGE_BYTES as u64);
        stat.put("epoch_at_home", tiered.epoch);
        stat.put("destage_waits_for_pages", tiered.unreadable_pages);
        stat.put_some("destage_waits_for_first", tiered.first_unreadable.map(|page| page.0));
    }
    stat.put("replayed_at_open", report.recovery.replayed);
    stat.put("dropped_at_open", report.recovery.dropped);
    stat.put("pages_lost", report.recovery.pages_lost);
    Ok(stat)
}

/// Adds the use of space and the wear of the zones, and the size of the mapping.
fn put_space(stat: &mut Stat, statistics: &SsdStatistics) {
    let page_bytes = PAGE_BYTES as u64;
    let ftl = &statistics.ftl;
    let (census, (resets_min, resets_max)) = (&ftl.census, ftl.zone_resets_min_max);
    stat.put("mapped_bytes", ftl.pages_mapped * page_bytes);
    stat.put("clean_bytes", ftl.pages_clean * page_bytes);
    stat.put("live_bytes", census.slots_live * page_bytes);
    stat.put("dead_bytes", census.slots_dead * page_bytes);
    stat.put("zones_free", ftl.zones_free);
    stat.put("zones_reserve", census.zones_reserve);
    stat.put("zones_retired", ftl.zones_retired);
    stat.put("zones_by_fill", listed(&census.by_fill));
    stat.put("zones_by_resets", listed(&census.by_resets));
    stat.put("resets_width", census.resets_width);
    stat.put("zone_resets_min", resets_min);
    stat.put("zone_resets_max", resets_max);
    stat.put("mapping_bytes", ftl.mapping_bytes);
    stat.put("shared_slots", ftl.shared_slots);
    stat.put("shared_entries", ftl.shared_entries);
    stat.put("shared_bytes", ftl.shared_bytes);
}

/// Pages of `device` that have content.
fn written_pages(device: &impl PageDevice) -> u64 {
    let (mut at, mut written) = (0, 0);
    let pages = device.limits().pages;
    while at < pages {
        let extent = device.extent(PageRange::new(PageNo(at), pages - at));
        at += extent.pages;
        written += if extent.is_hole { 0 } else { extent.pages };
    }
    written
}

/// Numbers as one text, which a server can send on one line.
fn listed(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    numbers.join(" ")
}
