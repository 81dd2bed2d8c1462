//! What a volume's configuration says its bytes live on.
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_media::block_store::{FileStore, FileStoreOptions, MemoryStore};
use tantalum_media::{BlockStore, IoBuf};
use tantalum_runtime::Live;

use crate::config::{MediaType, VolumeConfig};
use crate::flash::{FlashVolume, plan};

/// A file, a block device, or memory.
#[derive(Clone)]
pub enum VolumeStore {
    /// A file or a block device.
    File(FileStore),
    /// Memory.
    Memory(MemoryStore),
}

impl VolumeStore {
    /// Opens the store of `config`, locked. Memory starts as a new, empty volume.
    pub async fn open(live: &Live, config: &VolumeConfig) -> Result<Self> {
        match config.media.media_type {
            MediaType::File => {
                let path = config.data_path()?;
                if !path.exists() {
                    let (data, config) = (path.display(), config.path.display());
                    return Err(Error::new(
                        ErrorKind::Io,
                        format!("{data} does not exist; `tantalum create {config}` makes it"),
                    ));
                }
                let store = FileStore::open(live, &path, FileStoreOptions::default())?;
                Ok(VolumeStore::File(store))
            }
            MediaType::Memory => {
                let store = VolumeStore::Memory(MemoryStore::new(plan(config, 0)?.store_bytes()));
                FlashVolume::create(store.clone(), config, 0).await?;
                Ok(store)
            }
        }
    }
}

impl BlockStore for VolumeStore {
    fn bytes(&self) -> u64 {
        match self {
            VolumeStore::File(store) => store.bytes(),
            VolumeStore::Memory(store) => store.bytes(),
        }
    }

    fn buffer(&self, bytes: usize) -> IoBuf {
        match self {
            VolumeStore::File(store) => store.buffer(bytes),
            VolumeStore::Memory(store) => store.buffer(bytes),
        }
    }

    fn recycle(&self, buf: IoBuf) {
        match self {
            VolumeStore::File(store) => store.recycle(buf),
            VolumeStore::Memory(store) => store.recycle(buf),
        }
    }

    async fn read(&self, offset: u64, buf: IoBuf) -> Result<IoBuf> {
        match self {
            VolumeStore::File(store) => store.read(offset, buf).await,
            VolumeStore::Memory(store) => store.read(offset, buf).await,
        }
    }

    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf> {
        match self {
            VolumeStore::File(store) => store.write(offset, buf, durable).await,
            VolumeStore::Memory(store) => store.write(offset, buf, durable).await,
        }
    }

    async fn sync(&self) -> Result<()> {
        match self {
            VolumeStore::File(store) => store.sync().await,
            VolumeStore::Memory(store) => store.sync().await,
        }
    }
    async fn prepare(&self, offset: u64, bytes: u64) -> Result<()> {
        match self {
            VolumeStore::File(store) => store.prepare(offset, bytes).await,
            VolumeStore::Memory(store) => store.prepare(offset, bytes).await,
        }
    }
}
