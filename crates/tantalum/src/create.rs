//! Creates a volume.
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::config::{NewConfig, NewSettings, write_new};
use tantalum_volume::create_volume;

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

    /// Opens the volume if it exists, whatever the settings are here, and creates it otherwise.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`Volume::open`].
    pub fn open_or_create(self) -> Result<Volume> {
        match self.path.exists() {
            true => Volume::open(&self.path),
            false => self.open(),
        }
    }

    /// Creates the volume and opens it.
    ///
    /// # Errors
    /// `InvalidInput` if the volume exists already, or if a size is invalid; `OutOfSpace` if there is no room; `Io`. Nothing
    /// is left behind after an error.
    pub fn open(self) -> Result<Volume> {
        let path = &self.path;
        if path.exists() {
            let context =
                format!("{} already exists: open it, or name another place", path.display());
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let text = |bytes: u64| format!("{bytes}B");
        let (cache, buffer) = (self.cache_bytes.map(text), self.buffer_bytes.map(text));
        let settings = NewSettings {
            durability: self.durable_on_flush.then_some("on_flush"),
            cache: cache.as_deref(),
            buffer: buffer.as_deref(),
            sparse: self.sparse,
            ..NewSettings::default()
        };
        let new = NewConfig::at(path);
        let config = write_new(path, &text(self.capacity_bytes), &settings)?;
        let live = Live::new(LiveOptions::default())?;
        let handle = live.clone();
        let created = live.run(async move { create_volume(&handle, &config, false).await });
        created.inspect_err(|_| new.discard())?;
        Volume::open(path)
    }
}
