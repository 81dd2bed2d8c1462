//! The `[home]` table of a tiered volume.
use serde::Deserialize;
use std::path::{Path, PathBuf};
use tantalum_base::size::Size;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result, ResultExt};
use tantalum_cache::claim::Claim;
use tantalum_cache::{Destage, Mode, TieredOptions};
use tantalum_ftl::{CacheOptions, kept_pages_max};
use tantalum_media::ZoneGeometry;
use tantalum_ssd::SsdOptions;

/// The share of the flash's pages that are kept; the rest makes cleaning cheap.
const KEPT: f64 = 0.85;

/// The home of a volume's pages.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct HomeConfig {
    /// The slow file or block device; relative to the configuration file.
    pub path: PathBuf,
    /// Its size in bytes, if it ends within a page; by default, the whole pages of the capacity.
    pub size: Option<String>,
    /// The mode of the cache when it is opened.
    #[serde(default = "default_mode")]
    pub mode: String,
    /// The order in which pages are destaged.
    #[serde(default = "default_destage")]
    pub destage: DestageConfig,
    /// Whether it carries a claim while it has a cache.
    #[serde(default = "default_claim")]
    pub claim: ClaimConfig,
    /// The journal beside it; by default, the home's path with `.journal` appended.
    pub journal: Option<PathBuf>,
    /// Limit on dirty pages, as a share of the pages that the flash can hold.
    #[serde(default = "default_dirty_max")]
    pub dirty_max: String,
    /// Target age at which a dirty page is destaged even if there is space.
    #[serde(default = "default_destage_after_ms")]
    pub destage_after_ms: u64,
    /// Streams of sequential requests longer than this do not stay in the flash.
    pub stream_max: Option<String>,
    /// Whether clean pages are read from the home if that is faster.
    #[serde(default)]
    pub balance_reads: bool,
    /// Limit on all bytes written to the flash per day. Above it only the writes of hosts enter the flash.
    pub wear_per_day: Option<String>,
    /// Admission to the flash.
    #[serde(default = "default_admit")]
    pub admit: AdmitConfig,
}

/// The order in which pages are destaged.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum DestageConfig {
    /// In epochs.
    Ordered,
    /// The fullest tracks first.
    Dense,
}

/// The mark on the home while it has a cache.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ClaimConfig {
    /// A claim: the ends of the home are XORed with it, so that nothing mounts the home by mistake.
    Xor,
    /// None: the home is a plain image at all times.
    None,
}

impl ClaimConfig {
    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            ClaimConfig::Xor => "xor",
            ClaimConfig::None => "none",
        }
    }
}

/// Admission to the flash.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum AdmitConfig {
    /// Pages that are read, and pages that are written.
    Read,
    /// Pages that are written.
    Write,
}

fn default_claim() -> ClaimConfig {
    ClaimConfig::Xor
}

fn default_destage() -> DestageConfig {
    DestageConfig::Ordered
}

fn default_mode() -> String {
    Mode::default().name().into()
}

pub(crate) fn default_dirty_max() -> String {
    "75%".into()
}

fn default_destage_after_ms() -> u64 {
    5000
}

fn default_admit() -> AdmitConfig {
    AdmitConfig::Read
}

impl HomeConfig {
    /// The order in which pages are destaged.
    pub fn destage(&self) -> Destage {
        match self.destage {
            DestageConfig::Ordered => Destage::Ordered,
            DestageConfig::Dense => Destage::Dense,
        }
    }

    /// The settings of the cache over `ssd`, if up to `dirty_pages_max` pages in both may be dirty.
    ///
    /// # Errors
    /// `InvalidInput` if a setting is invalid.
    pub fn tiered_options(&self, dirty_pages_max: u64, ssd: &SsdOptions) -> Result<TieredOptions> {
        let dirty_pages_max = dirty_pages_max.saturating_sub(ssd.cache_pages.into());
        let write_pages_max = ssd.transaction_pages_max.max(ssd.atomic_write_pages_max());
        let bytes = |key: &'static str, text: &Option<String>| -> Result<u64> {
            let bytes = text.as_deref().map(Size::parse_bytes).transpose().context(|| key)?;
            Ok(bytes.unwrap_or(0))
        };
        let stream_pages = bytes("home.stream_max", &self.stream_max)? / PAGE_BYTES as u64;
        Ok(TieredOptions {
            mode: Mode::parse(&self.mode).context(|| "home.mode")?,
            admit_reads: self.admit == AdmitConfig::Read,
            destage_after_ns: self.destage_after_ms.saturating_mul(1_000_000),
            stream_pages_max: u32::try_from(stream_pages).unwrap_or(u32::MAX),
            balance_reads: self.balance_reads,
            wear_bytes_per_day: bytes("home.wear_per_day", &self.wear_per_day)?,
            ..TieredOptions::new(self.destage(), dirty_pages_max).staged(write_pages_max)
        })
    }

    /// The path of the home, relative to that of the configuration at `config`.
    pub fn home_path(&self, config: &Path) -> PathBuf {
        config.parent().unwrap_or(Path::new("")).join(&self.path)
    }

    /// The path of the journal, relative to that of the configuration at `config`.
    pub fn journal_path(&self, config: &Path) -> PathBuf {
        let journal = self.journal.clone().unwrap_or_else(|| {
            let mut name = self.path.clone().into_os_string();
            name.push(".journal");
            name.into()
        });
        config.parent().unwrap_or(Path::new("")).join(journal)
    }

    /// The claim of the volume with this identity on a home of `home_bytes`, if the configuration asks for
    /// a claim.
    pub fn wanted_claim(&self, config: &Path, volume_id: u128, home_bytes: u64) -> Option<Claim> {
        let (journal, home) = (self.journal_path(config), self.home_path(config));
        let claim = || Claim::new(volume_id, home_bytes, &journal, &home);
        (self.claim == ClaimConfig::Xor).then(claim)
    }

    /// The numbers of pages that a flash of this shape keeps.
    ///
    /// # Errors
    /// `InvalidInput` if `dirty_max` is not a share.
    pub fn cache_options(&self, geometry: &ZoneGeometry) -> Result<CacheOptions> {
        let share = match Size::parse(&self.dirty_max) {
            Ok(Size::Share(share)) if (0.05..=0.95).contains(&share) => share,
            _ => {
                let context = format!(
                    "home.dirty_max = {:?} is not a share from \"5%\" to \"95%\"",
                    self.dirty_max
                );
                return Err(Error::new(ErrorKind::InvalidInput, context));
            }
        };
        let kept = (kept_pages_max(geometry, 0) as f64 * KEPT) as u64;
        let dirty_pages_max = (kept as f64 * share) as u64;
        Ok(CacheOptions { dirty_pages_max, kept_pages_max: kept, staging_pages: 0 })
    }

    /// The size of a journal for this number of dirty pages.
    pub fn journal_bytes(&self, options: &CacheOptions) -> u64 {
        // Clean pages that fill gaps get a quarter more. The index has one entry per page, and the same room again
        // for trimmed ranges.
        let contents = options.dirty_pages_max + options.dirty_pages_max / 4;
        let index_pages = 2 * contents.div_ceil(250) + 2;
        (1 << 20) + (contents + index_pages) * PAGE_BYTES as u64
    }
}
