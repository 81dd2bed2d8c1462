//! Volumes of kind flash: killed after writes, trims, shares and cleanings; one of them also after large transactions.
use std::path::Path;
use std::rc::Rc;
use std::sync::OnceLock;
use tantalum_base::Result;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_volume::{FlashVolume, OpenOptions, VolumeConfig, create_flash, open_flash};

use super::Subject;
use super::history::use_device;
use crate::structures::{Limits, Scene};

pub(crate) const FLASH: &str = "kind = \"flash\"\n[media]\ntype = \"file\"\npath = \"volume.data\"\nzone = \"64KiB\"\n[device]\n\
                     capacity = \"1MiB\"\ncheckpoint_interval = \"2MiB\"\n";
const STAGED: &str = "transaction_memory = \"64KiB\"\ncache = \"256KiB\"\n";

/// A volume without large transactions.
pub(crate) struct Flash;

/// A volume with large transactions.
pub(crate) struct Staged;

/// The configuration with the settings `more`.
pub(crate) fn config(more: &str) -> VolumeConfig {
    VolumeConfig::parse(&format!("{FLASH}{more}"), Path::new("/v/VOLUME.toml"))
        .expect("a sound configuration")
}

fn made(config: VolumeConfig, is_staged: bool) -> Scene {
    let runtime = Virtual::new(Schedule::Fifo);
    let live = runtime.clone();
    let made = runtime.run(async move {
        let store = MemoryStore::new(64 << 20);
        let created = create_flash(store.clone(), &config, 7).await.expect("a new volume");
        let opened = open_flash(&live, store.clone(), &config, OpenOptions::default()).await;
        let (volume, _) = opened.expect("it opens");
        use_device(&*volume, 250, 600, 1, is_staged).await;
        (created, store.image()[..created.store_bytes() as usize].to_vec())
    });
    runtime.drop_tasks();
    let (superblock, image) = made.expect("it comes to an end");
    Scene::new(vec![image], Limits::of_volume(&superblock, is_staged))
}

macro_rules! subject {
    ($name:ident, $more:expr, $is_staged:expr) => {
        impl Subject for $name {
            type Device = FlashVolume<MemoryStore>;
            type Stores = MemoryStore;
            const READ_STEP: usize = 1;
            const HAS_HOME: bool = false;
            const LIFE_NS: u64 = 0;

            fn scene() -> &'static Scene {
                static SCENE: OnceLock<Scene> = OnceLock::new();
                SCENE.get_or_init(|| made(config($more), $is_staged))
            }

            fn stores(images: &[Vec<u8>]) -> MemoryStore {
                MemoryStore::with_image(&images[0])
            }

            async fn open(
                runtime: &Virtual,
                store: MemoryStore,
                options: OpenOptions,
            ) -> Result<Rc<Self::Device>> {
                Ok(open_flash(runtime, store, &config($more), options).await?.0)
            }
        }
    };
}

subject!(Flash, "", false);
subject!(Staged, STAGED, true);
