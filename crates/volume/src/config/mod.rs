//! VOLUME.toml: the parts of a volume and its behaviour.
mod flash_size;
mod lines;
mod memory;

use rustix::fs::OFlags;
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tantalum_base::size::Size;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result, ResultExt, file_kind};
use tantalum_ftl::FtlOptions;
use tantalum_policy::CleaningSpec;
use tantalum_runtime::live::memory::limit_bytes;
use tantalum_runtime::live::named_file::{Named, open_named};
use tantalum_ssd::{CacheKind, SsdOptions};

use crate::home_config::HomeConfig;
pub use crate::new_config::{
    NewConfig, NewSettings, NewTiered, parse_new_tiered, template, write_new, write_new_tiered,
};
use crate::permissions::new_file_mode;
use crate::recorded::Recording;
use crate::refusals::{
    CONFIGURATION_EMPTY, CONFIGURATION_FOLDER, NO_CONFIGURATION, NOT_A_CONFIGURATION,
};
use crate::sizes;

/// The content of a VOLUME.toml. Sizes are still text: see the accessors.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct VolumeConfig {
    /// `"flash"`: flash is the home of the data; `"tiered"`: flash is a cache of a slower home.
    pub kind: Kind,
    /// The medium.
    pub media: MediaConfig,
    /// The home of a tiered volume.
    pub home: Option<HomeConfig>,
    /// Settings of the device.
    pub device: DeviceConfig,
    /// A buffer in memory above the device; without this table there is none.
    pub buffer: Option<BufferConfig>,
    /// A page trace of the volume's requests, begun each time it is opened.
    pub record: Option<PathBuf>,
    /// The group whose members may connect to a server's sockets; without it only the server's user may.
    pub socket_group: Option<String>,
    /// The path of the file; relative paths in it start from its folder.
    #[serde(skip)]
    pub path: PathBuf,
}

/// Kinds of volumes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Flash is the home of the data.
    Flash,
    /// Flash is a cache of a slower home.
    Tiered,
}

impl Kind {
    /// The word in configurations and output.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Flash => "flash",
            Kind::Tiered => "tiered",
        }
    }
}

/// The `[media]` table.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MediaConfig {
    /// File (or block device), or memory.
    #[serde(rename = "type")]
    pub media_type: MediaType,
    /// Path of the file or block device, for `type = "file"`.
    pub path: Option<PathBuf>,
    /// For a tiered volume, the number of bytes used of the file or device.
    pub size: Option<String>,
    /// Zone size; the default depends on the capacity.
    pub zone: Option<String>,
    /// Whether the file is sparse.
    #[serde(default)]
    pub sparse: bool,
    /// Whether a file is read through the system's page cache; by default the program that opens it decides.
    pub system_cache: Option<bool>,
}

/// The medium.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum MediaType {
    /// A file or a block device.
    File,
    /// Memory, which is lost with the process; for measurements and trials.
    Memory,
}

/// Default memory of a transaction: 4 MiB.
const TRANSACTION_MEMORY_PAGES: u32 = 1024;

/// The `[device]` table.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct DeviceConfig {
    /// Bytes that hosts see.
    pub capacity: String,
    /// Room for cleaning, as a share of the capacity.
    #[serde(default = "default_over_provisioning")]
    pub over_provisioning: String,
    /// Durability of plain writes, for all clients; without it see
    /// [`durability`](VolumeConfig::durability) and [`durability_over_nbd`](VolumeConfig::durability_over_nbd).
    pub durability: Option<DurabilityConfig>,
    /// Bytes of the write cache.
    #[serde(default = "default_cache")]
    pub cache: String,
    /// Limit on the bytes that one transaction may write; by default the free room.
    pub transaction_max: Option<String>,
    /// Memory of one transaction, in bytes.
    pub transaction_memory: Option<String>,
    /// Transactions that may be open at once.
    #[serde(default = "default_transactions")]
    pub transactions_max: u32,
    /// Log appends that may be in flight at once.
    #[serde(default = "default_appends")]
    pub appends_in_flight: u32,
    /// The cleaning policy, which picks the next victim zone.
    #[serde(default = "default_cleaning")]
    pub cleaning: String,
    /// Wear leveling moves cold content when zones differ by more resets than this; 0 for never.
    #[serde(default = "default_wear_spread")]
    pub wear_spread: u32,
    /// Limit on the entries of the table of pages that share their content; by default none.
    pub share_entries_max: Option<u32>,
    /// Bytes of log between two checkpoints, which opening after a crash reads; without it 32 times
    /// the size of a checkpoint.
    pub checkpoint_interval: Option<String>,
}

/// The `[buffer]` table.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct BufferConfig {
    /// Bytes of pages in the buffer.
    pub size: String,
    /// The replacement policy.
    #[serde(default = "default_policy")]
    pub policy: String,
}

/// Durability of plain writes at a power cut.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum DurabilityConfig {
    /// All acknowledged writes survive.
    OnAck,
    /// All writes before the last completed flush survive, and a prefix of the later ones.
    OnFlush,
}

impl DurabilityConfig {
    /// The durability with this name in configurations.
    pub fn named(name: &str) -> Option<Self> {
        [DurabilityConfig::OnAck, DurabilityConfig::OnFlush]
            .into_iter()
            .find(|it| it.name() == name)
    }

    /// The word in configurations.
    pub fn name(self) -> &'static str {
        match self {
            DurabilityConfig::OnAck => "on_ack",
            DurabilityConfig::OnFlush => "on_flush",
        }
    }
}

fn default_over_provisioning() -> String {
    "12%".into()
}

fn default_cache() -> String {
    "8MiB".into()
}

pub(crate) fn default_transactions() -> u32 {
    128
}

fn default_appends() -> u32 {
    4
}

fn default_cleaning() -> String {
    CleaningSpec::default().to_string()
}

fn default_wear_spread() -> u32 {
    FtlOptions::new(1).wear_spread_max
}

fn default_policy() -> String {
    "lru".into()
}

/// Larger files are not read. No configuration is that long; but a volume's data, named by mistake, may be larger than the memory.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Pages of the largest write cache.
const CACHE_PAGES_MAX: u64 = 1 << 20;

fn invalid(context: String) -> Error {
    Error::new(ErrorKind::InvalidInput, context)
}

/// The error for a configuration at `path` that could not be read.
fn unread(path: &Path, error: std::io::Error) -> Error {
    use std::io::ErrorKind::{IsADirectory, NotFound};
    let at = path.display();
    match error.kind() {
        NotFound => {
            let context = format!(
                "{at} {NO_CONFIGURATION} (`tantalum create` makes one, or `tantalum attach` over an existing home)"
            );
            NO_CONFIGURATION.error(ErrorKind::Io, context)
        }
        IsADirectory => {
            let context = format!("{at} {CONFIGURATION_FOLDER}, such as {at}/VOLUME.toml");
            CONFIGURATION_FOLDER.error(ErrorKind::Io, context)
        }
        _ => Error::io(format!("reading {at}"), error),
    }
}

/// Opens the file at `path`, which should be a configuration.
fn open_text(path: &Path) -> Result<File> {
    let kind = match open_named(path, File::options().read(true), OFlags::empty()) {
        Ok(Named::Usable(file)) if file.metadata().is_ok_and(|about| about.is_file()) => {
            return Ok(file);
        }
        Ok(Named::Usable(_)) => "a block device",
        Ok(Named::Other(file_kind::FOLDER)) => {
            return Err(unread(path, std::io::ErrorKind::IsADirectory.into()));
        }
        Ok(Named::Other(kind)) => kind,
        Err(error) => return Err(unread(path, error)),
    };
    let context = format!("{}, {kind}, {NOT_A_CONFIGURATION} of the volume", path.display());
    Err(NOT_A_CONFIGURATION.error(ErrorKind::InvalidInput, context))
}

impl VolumeConfig {
    /// Reads `path`.
    ///
    /// # Errors
    /// `Io` if it cannot be read; `InvalidInput` with line and reason if it is invalid.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |error| unread(path, error);
        let mut bytes = Vec::new();
        let file = open_text(path)?;
        file.take(TEXT_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.is_empty() {
            let context = format!(
                "{} {CONFIGURATION_EMPTY}, and `tantalum create` or `tantalum attach` writes one",
                path.display()
            );
            return Err(CONFIGURATION_EMPTY.error(ErrorKind::InvalidInput, context));
        }
        let whole = !bytes.is_empty() && (bytes.len() as u64) < TEXT_BYTES_MAX;
        match String::from_utf8(bytes) {
            Ok(text) if whole => Self::parse(&text, path),
            _ => {
                let context = format!("{} {NOT_A_CONFIGURATION} of the volume", path.display());
                Err(NOT_A_CONFIGURATION.error(ErrorKind::InvalidInput, context))
            }
        }
    }

    /// Parses `text` as the content of the file at `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let config = Self::of_toml(text, path)?;
        config.check().map_err(|error| lines::invalid_setting(text, path, error))?;
        Ok(config)
    }

    /// As [`parse`](Self::parse), for a text that is not a user's file: errors name no line.
    pub(crate) fn parse_new(text: &str, path: &Path) -> Result<Self> {
        let config = Self::of_toml(text, path)?;
        config.check().map_err(|error| error.wrap(path.display().to_string()))?;
        Ok(config)
    }

    fn of_toml(text: &str, path: &Path) -> Result<Self> {
        let parsed = toml::from_str(text).map_err(|error| lines::no_toml(text, path, &error));
        parsed.map(|config| VolumeConfig { path: path.to_path_buf(), ..config })
    }

    fn check(&self) -> Result<()> {
        if self.media.media_type == MediaType::File && self.media.path.is_none() {
            return Err(invalid("media.path is needed for media.type = \"file\"".into()));
        }
        if (self.kind == Kind::Tiered) != self.home.is_some() {
            return Err(invalid("a [home] table and kind = \"tiered\" go together".into()));
        }
        if (self.kind == Kind::Tiered) != self.media.size.is_some() {
            return Err(invalid("media.size and kind = \"tiered\" go together".into()));
        }
        if self.kind == Kind::Tiered {
            self.check_flash()?;
        }
        self.check_durability()?;
        self.size_bytes()?;
        self.over_provisioning()?;
        self.zone_slots()?;
        self.check_buffer()?;
        self.ftl_options(1)?;
        let ssd = self.ssd_options()?;
        self.check_transactions(&ssd)?;
        ssd.check()
    }

    /// Durability for a program that opens the volume itself (SQLite, C, Rust). By default all acknowledged writes survive,
    /// because such a program may never flush.
    pub fn durability(&self) -> DurabilityConfig {
        self.device.durability.unwrap_or(DurabilityConfig::OnAck)
    }

    /// Durability for NBD clients. By default flushed writes survive, as on a disk with a volatile cache. The NBD device
    /// describes itself as such a disk: file systems and QEMU rely on no more, and do not wait for each page. A tiered
    /// volume makes every write durable before it acknowledges it.
    pub fn durability_over_nbd(&self) -> DurabilityConfig {
        self.device.durability.unwrap_or(match self.kind {
            Kind::Flash => DurabilityConfig::OnFlush,
            Kind::Tiered => DurabilityConfig::OnAck,
        })
    }

    /// Refuses a durability that the volume cannot provide.
    ///
    /// # Errors
    /// `InvalidInput` for a tiered volume with durability on flush.
    pub fn check_durability(&self) -> Result<()> {
        if self.kind == Kind::Tiered && self.device.durability == Some(DurabilityConfig::OnFlush) {
            return Err(invalid(
                "a tiered volume keeps all that it acknowledges: device.durability = \"on_flush\" is not \
                 offered"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Begins the configured recording; its path is relative to the configuration file.
    ///
    /// # Errors
    /// `Io` if the file cannot be created.
    pub(crate) fn begin_recording(&self) -> Result<Option<Recording>> {
        let beside = self.path.parent().unwrap_or(Path::new(""));
        let mode = new_file_mode(self);
        let begin = |record: &PathBuf| Recording::begin(&beside.join(record), mode);
        let record = self.record.as_ref().map(begin);
        record.transpose().context(|| "recording")
    }

    /// The path of the data, relative to the configuration file.
    pub fn data_path(&self) -> Result<PathBuf> {
        let path = self.media.path.as_ref();
        let path = path.ok_or_else(|| invalid("media.path is not set".into()))?;
        Ok(self.path.parent().unwrap_or(Path::new("")).join(path))
    }

    /// Logical pages.
    pub fn capacity_pages(&self) -> Result<u64> {
        let pages = sizes::pages(sizes::CAPACITY, &self.device.capacity)?;
        if pages > 1 << 31 {
            return Err(invalid("device.capacity is over the limit of 8 TiB".into()));
        }
        Ok(pages)
    }

    /// Over-provisioning, as a fraction of the capacity.
    pub fn over_provisioning(&self) -> Result<f64> {
        match Size::parse(&self.device.over_provisioning) {
            Ok(Size::Share(share)) if share >= 0.02 => Ok(share),
            _ => Err(invalid(format!(
                "device.over_provisioning = {:?} is not a share from \"2%\" to \"100%\"",
                self.device.over_provisioning
            ))),
        }
    }

    /// Refuses a limit on transactions that could not take effect.
    fn check_transactions(&self, ssd: &SsdOptions) -> Result<()> {
        let Some(most) = &self.device.transaction_max else { return Ok(()) };
        let (least, why) = match &self.home {
            Some(home) => {
                let dirty = home.cache_options(&self.flash_geometry()?)?.dirty_pages_max;
                let options = home.tiered_options(dirty, ssd)?;
                let least = options.staged_pages_max.max(ssd.transaction_pages_max.into());
                (least, "the limit for open transactions (a part of home.dirty_max of media.size)")
            }
            None => (self.capacity_pages()?, "the capacity"),
        };
        if u64::from(ssd.staged_pages_max) <= least {
            return Ok(());
        }
        let least = (least * PAGE_BYTES as u64) >> 20;
        Err(invalid(format!("device.transaction_max = {most:?} is over {least} MiB, {why}")))
    }

    /// Slots in a zone.
    pub fn zone_slots(&self) -> Result<u32> {
        let slots = match &self.media.zone {
            Some(zone) => sizes::pages("media.zone", zone)?,
            // About 128 zones of 1 to 64 MiB, so that cleaning has a choice.
            None if self.media.size.is_some() => {
                (self.flash_pages()? / 256).next_power_of_two().clamp(256, 16384)
            }
            None => (self.capacity_pages()? / 128).next_power_of_two().clamp(256, 16384),
        };
        if !(16..=262_144).contains(&slots) {
            return Err(invalid("media.zone must be from 64KiB to 1GiB".into()));
        }
        Ok(slots as u32)
    }

    /// The settings of the translation layer, for `pages` logical pages.
    ///
    /// # Errors
    /// `TooLarge` if their map exceeds the memory; `InvalidInput`.
    pub fn ftl_options(&self, pages: u64) -> Result<FtlOptions> {
        memory::refuse_map(&self.device.capacity, pages, limit_bytes())?;
        let cleaning = CleaningSpec::parse(&self.device.cleaning);
        let cleaning = cleaning.map_err(|error| error.wrap("device.cleaning"))?;
        let wear_spread_max = match self.device.wear_spread {
            0 => u32::MAX,
            resets => resets,
        };
        let share_entries_max = self.device.share_entries_max;
        let checkpoint_interval_slots = match &self.device.checkpoint_interval {
            Some(interval) => sizes::pages("device.checkpoint_interval", interval)?,
            None => 0,
        };
        Ok(FtlOptions {
            cleaning,
            wear_spread_max,
            share_entries_max,
            checkpoint_interval_slots,
            paces_cleaning: self.kind == Kind::Flash,
            // The flash of a tiered volume is a cache, which uses all its space.
            gives_room_back: self.kind == Kind::Flash
                && self.media.media_type == MediaType::File
                && self.media.sparse,
            ..FtlOptions::new(pages)
        })
    }

    fn cache_pages(&self) -> Result<u32> {
        match sizes::pages("device.cache", &self.device.cache)? {
            pages @ ..=CACHE_PAGES_MAX => Ok(pages as u32),
            _ => Err(invalid("device.cache is over the limit of 4 GiB".into())),
        }
    }

    /// The settings of the device.
    pub fn ssd_options(&self) -> Result<SsdOptions> {
        let cache = self.cache_pages()?;
        let kind = match self.durability() {
            DurabilityConfig::OnAck => CacheKind::WriteThrough,
            DurabilityConfig::OnFlush => CacheKind::Ordered,
        };
        let pages = |key: &'static str, text: &Option<String>| {
            let pages = text.as_ref().map(|text| sizes::pages(key, text)).transpose()?;
            Ok::<_, Error>(pages.map(|pages| u32::try_from(pages).unwrap_or(u32::MAX)))
        };
        let most = pages("device.transaction_max", &self.device.transaction_max)?;
        let memory = pages("device.transaction_memory", &self.device.transaction_memory)?;
        // With a limit no larger than the write cache, transactions stay in memory.
        let in_memory_alone = most.filter(|most| self.kind == Kind::Tiered && *most <= cache);
        Ok(SsdOptions {
            transaction_pages_max: memory
                .or(in_memory_alone)
                .unwrap_or(cache.min(TRANSACTION_MEMORY_PAGES)),
            staged_pages_max: most.unwrap_or(u32::MAX),
            transactions_max: self.device.transactions_max,
            write_backs_in_flight: self.device.appends_in_flight,
            ..SsdOptions::new(kind, cache)
        })
    }
}

#[cfg(test)]
mod tests;
