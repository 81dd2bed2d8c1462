//! A new volume.
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::config::{NewConfig, NewSettings, write_new};
use tantalum_volume::create_volume;

use crate::volume::{Volume, config_path};

/// A volume to be made, by [`Volume::create`]. What is not said has its default, which the VOLUME.toml that is written names.
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

    /// Bytes that it holds, rounded up to pages; 1 GiB if this is not said.
    pub fn capacity_bytes(mut self, bytes: u64) -> Create {
        self.capacity_bytes = bytes;
        self
    }

    /// Bytes of its write cache.
    pub fn cache_bytes(mut self, bytes: u64) -> Create {
        self.cache_bytes = Some(bytes);
        self
    }

    /// Bytes of memory for a read cache in front of it; there is none otherwise.
    pub fn buffer_bytes(mut self, bytes: u64) -> Create {
        self.buffer_bytes = Some(bytes);
        self
    }

    /// Plain writes are durable with the next [`flush`](Volume::flush), and not when they return. Commits stay so.
    pub fn durable_on_flush(mut self) -> Create {
        self.durable_on_flush = true;
        self
    }

    /// Its file takes room as it is written, and not from the beginning.
    pub fn sparse(mut self) -> Create {
        self.sparse = true;
        self
    }

    /// Opens the volume if there is one, whatever is said here, and makes it otherwise.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`Volume::open`].
    pub fn open_or_create(self) -> Result<Volume> {
        match self.path.exists() {
            true => Volume::open(&self.path),
            false => self.open(),
        }
    }

    /// Makes the volume and opens it.
    ///
    /// # Errors
    /// `InvalidInput` where there is a volume already, or where a size makes no sense; `OutOfSpace` where there is no room;
    /// `Io`. Nothing is left behind.
    pub fn open(self) -> Result<Volume> {
        let path = &self.path;
        if path.exists() {
            let context =
                format!("{} is there already: open it, or name another place", path.display());
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
