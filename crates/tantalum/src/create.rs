//! Creates a volume.
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::config::{NewConfig, NewSettings, write_new};
use tantalum_volume::{VolumeConfig, create_volume, is_creation_unfinished};

use crate::opening::config_path;
use crate::volume::Volume;

/// A builder of a new volume, from [`Volume::create`]. A setting that is not chosen has its default, which is listed in the
/// VOLUME.toml that is written.
#[derive(Clone, Debug)]
#[must_use = "nothing is made before `open`"]
pub struct Create {
    path: PathBuf,
    capacity_bytes: u64,
    cache_bytes: Option<u64>,
    buffer_bytes: Option<u64>,
    durable_on_flush: bool,
    sparse: bool,
}

impl Create {
    pub(crate) fn at(path: &Path) -> Create {
        Create {
            path: config_path(path),
            capacity_bytes: 1 << 30,
            cache_bytes: None,
            buffer_bytes: None,
            durable_on_flush: false,
            sparse: false,
        }
    }

    /// Capacity in bytes, rounded up to pages; 1 GiB by default.
    pub fn capacity_bytes(mut self, bytes: u64) -> Create {
        self.capacity_bytes = bytes;
        self
    }

    /// Size of the write cache in bytes.
    pub fn cache_bytes(mut self, bytes: u64) -> Create {
        self.cache_bytes = Some(bytes);
        self
    }

    /// Memory for a read cache in front of the volume, in bytes; no read cache by default.
    pub fn buffer_bytes(mut self, bytes: u64) -> Create {
        self.buffer_bytes = Some(bytes);
        self
    }

    /// Makes plain writes durable with the next [`flush`](Volume::flush) instead of when they return. Commits are durable
    /// when they return, as always.
    pub fn durable_on_flush(mut self) -> Create {
        self.durable_on_flush = true;
        self
    }

    /// Allocates the file's space as it is written, instead of at creation.
    pub fn sparse(mut self) -> Create {
        self.sparse = true;
        self
    }

    /// Opens the volume if it exists, regardless of the settings here, and creates it otherwise. Of several callers one creates it.
    /// The others open it, or get `Locked` while it is being created or is open elsewhere.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`Volume::open`].
    pub fn open_or_create(self) -> Result<Volume> {
        if !self.is_made()
            && let Err(error) = self.make()
            && !self.is_made()
        {
            return Err(error);
        }
        // It existed, or another caller has just created it.
        Volume::open(&self.path)
    }

    /// Creates the volume and opens it. A creation of it that was cut short is finished, with the settings of that time.
    ///
    /// # Errors
    /// `InvalidInput` if the volume exists already, or if a size is invalid; `OutOfSpace` if there is no room; `Locked` if another
    /// process or thread is creating it; `Io`. Nothing is left behind after an error.
    pub fn open(self) -> Result<Volume> {
        if self.is_made() {
            let path = self.path.display();
            let context = format!("{path} already exists: open it, or name another place");
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        self.make()?;
        Volume::open(&self.path)
    }

    /// Whether anything exists at the path, other than a volume whose creation was cut short.
    fn is_made(&self) -> bool {
        let is_unfinished = |config| is_creation_unfinished(&config).is_ok_and(|is| is);
        self.path.exists() && !VolumeConfig::read(&self.path).is_ok_and(is_unfinished)
    }

    fn make(&self) -> Result<()> {
        let path = &self.path;
        let text = |bytes: u64| format!("{bytes}B");
        let (cache, buffer) = (self.cache_bytes.map(text), self.buffer_bytes.map(text));
        let settings = NewSettings {
            durability: self.durable_on_flush.then_some("on_flush"),
            cache: cache.as_deref(),
            buffer: buffer.as_deref(),
            sparse: self.sparse,
            ..NewSettings::default()
        };
        let new = (!path.exists()).then(|| NewConfig::at(path));
        let config = match &new {
            Some(_) => write_new(path, &text(self.capacity_bytes), &settings)?,
            // The creation of this volume was cut short.
            None => VolumeConfig::read(path)?,
        };
        let live = Live::new(LiveOptions::default())?;
        let handle = live.clone();
        let created = live.run(async move { create_volume(&handle, &config, false).await });
        created.map(drop).inspect_err(|error| new.iter().for_each(|new| new.discard_after(error)))
    }
}
