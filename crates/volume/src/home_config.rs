//! The `[home]` table of a tiered volume.
use serde::Deserialize;
use std::path::{Path, PathBuf};
use tantalum_base::size::Size;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result, ResultExt};
use tantalum_cache::{Destage, Mode};
use tantalum_ftl::{CacheOptions, kept_pages_max};
use tantalum_media::ZoneGeometry;

/// Of what the flash can keep, so much is kept: the rest makes cleaning cheap.
const KEPT: f64 = 0.85;

/// What a volume's pages have as their home.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct HomeConfig {
    /// The slow file or block device; relative to the configuration file.
    pub path: PathBuf,
    /// What the cache is for when it is opened.
    #[serde(default = "default_mode")]
    pub mode: String,
    /// The order in which pages go home.
    #[serde(default = "default_destage")]
    pub destage: DestageConfig,
    /// The journal beside it; without it the home's path with `.journal` behind.
    pub journal: Option<PathBuf>,
    /// Most that is newer in the flash, as a share of what the flash can keep.
    #[serde(default = "default_dirty_max")]
    pub dirty_max: String,
    /// So long a change stays in the flash alone, about.
    #[serde(default = "default_destage_after_ms")]
    pub destage_after_ms: u64,
    /// What comes into the flash.
    #[serde(default = "default_admit")]
    pub admit: AdmitConfig,
}

/// The order in which pages go home.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum DestageConfig {
    /// In epochs.
    Ordered,
    /// The fullest tracks first.
    Dense,
}

/// What comes into the flash.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum AdmitConfig {
    /// What is read and what is written.
    Read,
    /// What is written.
    Write,
}

fn default_destage() -> DestageConfig {
    DestageConfig::Ordered
}

fn default_mode() -> String {
    Mode::default().name().into()
}

fn default_dirty_max() -> String {
    "75%".into()
}

fn default_destage_after_ms() -> u64 {
    5000
}

fn default_admit() -> AdmitConfig {
    AdmitConfig::Read
}

impl HomeConfig {
    /// The order in which pages go home.
    pub fn destage(&self) -> Destage {
        match self.destage {
            DestageConfig::Ordered => Destage::Ordered,
            DestageConfig::Dense => Destage::Dense,
        }
    }

    /// What the cache is for when it is opened.
    ///
    /// # Errors
    /// `InvalidInput` where there is no such mode.
    pub fn mode(&self) -> Result<Mode> {
        Mode::parse(&self.mode).context(|| "home.mode")
    }

    /// The path of the home, relative to that of the configuration at `config`.
    pub fn home_path(&self, config: &Path) -> PathBuf {
        config.parent().unwrap_or(Path::new("")).join(&self.path)
    }

    /// The path of the journal, likewise.
    pub fn journal_path(&self, config: &Path) -> PathBuf {
        let journal = self.journal.clone().unwrap_or_else(|| {
            let mut name = self.path.clone().into_os_string();
            name.push(".journal");
            name.into()
        });
        config.parent().unwrap_or(Path::new("")).join(journal)
    }

    /// How much the flash of this shape keeps.
    ///
    /// # Errors
    /// `InvalidInput` where `dirty_max` is no share.
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
        Ok(CacheOptions { dirty_pages_max, kept_pages_max: kept })
    }

    /// Bytes of a journal for that much.
    pub fn journal_bytes(&self, options: &CacheOptions) -> u64 {
        // A quarter more for clean pages that fill gaps. An index entry a page, and as much room for ranges
        // that were trimmed.
        let contents = options.dirty_pages_max + options.dirty_pages_max / 4;
        let index_pages = 2 * contents.div_ceil(250) + 2;
        (1 << 20) + (contents + index_pages) * PAGE_BYTES as u64
    }
}
