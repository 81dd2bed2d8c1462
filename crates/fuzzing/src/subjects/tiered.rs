//! Volumes with a home, killed while an epoch is committed in the journal.
use std::path::Path;
use std::rc::Rc;
use std::sync::OnceLock;
use tantalum_base::{PAGE_BYTES, Payload, Result};
use tantalum_media::BlockStore;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};
use tantalum_volume::superblock::{COPIES, SUPERBLOCK_BYTES, Superblock};
use tantalum_volume::{
    OpenOptions, TieredStores, TieredVolume, VolumeConfig, format_tiered, open_tiered,
};

use super::Subject;
use super::history::{content, rest, use_device};
use super::observed::{IsDue, Moment, Stores};
use crate::structures::{Limits, Scene};

const TIERED: &str = "kind = \"tiered\"\n[media]\ntype = \"file\"\npath = \"f\"\nsize = \"7MiB\"\nzone = \"128KiB\"\n\
                      [device]\ncapacity = \"8MiB\"\ncache = \"128KiB\"\ntransaction_memory = \"64KiB\"\n\
                      checkpoint_interval = \"2MiB\"\n[home]\npath = \"h\"\ndestage_after_ms = 50\n";

/// Pages in epochs, over a home with a claim.
pub(crate) struct Ordered;

/// Pages one by one.
pub(crate) struct Dense;

/// Pages in epochs, over a home without a claim, whose state marks tell.
pub(crate) struct Unclaimed;

/// A home of which half of the claim's change is done.
pub(crate) struct Claiming;

/// The configuration with the settings `more`.
pub(crate) fn config(more: &str) -> VolumeConfig {
    VolumeConfig::parse(&format!("{TIERED}{more}"), Path::new("/v/VOLUME.toml"))
        .expect("a sound configuration")
}

fn of((flash, journal, home): Stores) -> TieredStores<MemoryStore> {
    TieredStores { flash, home, journal: Some(journal) }
}

/// A home with content on every other page; its ends show a claim on the others.
fn home(pages: u64) -> MemoryStore {
    let mut bytes = vec![0; pages as usize * PAGE_BYTES];
    for (page, to) in (0..).zip(bytes.chunks_exact_mut(PAGE_BYTES)).step_by(2) {
        content(page, 0).write_to(to);
    }
    MemoryStore::with_image(&bytes)
}

/// The stores of a new volume, and its superblock.
async fn new_volume(config: &VolumeConfig) -> (Stores, Superblock) {
    let sound = "a sound configuration";
    let superblock = Superblock {
        volume_id: 7,
        zones: config.flash_zones().expect(sound),
        slots_per_zone: config.zone_slots().expect(sound),
        pages: config.capacity_pages().expect(sound),
        is_cache: true,
        is_staged: true,
        growths: 0,
        pages_before: 0,
    };
    let home_config = config.home.as_ref().expect("a home");
    let cache = home_config.cache_options(&superblock.geometry()).expect(sound);
    let journal_bytes = home_config.journal_bytes(&cache).next_multiple_of(PAGE_BYTES as u64);
    let stores = (
        MemoryStore::new(superblock.store_bytes()),
        MemoryStore::new(journal_bytes),
        home(superblock.pages),
    );
    let made = of(stores.clone());
    format_tiered(&made, config, &superblock).await.expect("a new volume");
    let mut copies = made.flash.buffer(COPIES * SUPERBLOCK_BYTES);
    let each = copies.chunks_mut(SUPERBLOCK_BYTES);
    each.for_each(|copy| copy.copy_from_slice(&superblock.encode()));
    made.flash.write(0, copies, true).await.expect("written");
    (stores, superblock)
}

/// A volume with the setting `more`, used; then as it was when `is_due` was first true while it was used with the setting `then`.
fn made(more: &str, then: &str, is_due: IsDue) -> Scene {
    let runtime = Virtual::new(Schedule::Fifo);
    let (live, first, second) = (runtime.clone(), config(more), config(then));
    let life = async move {
        let (stores, superblock) = new_volume(&first).await;
        let moment = Moment::new(stores);
        let opened =
            open_tiered(&live, moment.stores(), &first, OpenOptions::default(), || 1).await;
        let (volume, _) = opened.expect("it opens");
        for (seed, pages) in [(1, superblock.pages), (2, superblock.pages), (3, 300)] {
            use_device(&*volume, pages, 500, seed, true).await;
            rest(&live).await;
        }
        volume.close().await.expect("closed");
        drop(volume);
        moment.wait_for(is_due);
        let opened =
            open_tiered(&live, moment.stores(), &second, OpenOptions::default(), || 1).await;
        let (volume, _) = opened.expect("it opens");
        for seed in 4..9 {
            use_device(&*volume, 300, 60, seed, true).await;
            rest(&live).await;
        }
        (moment, superblock)
    };
    let (moment, superblock) = runtime.run(life).expect("it comes to an end");
    runtime.drop_tasks();
    Scene::new(moment.images(), Limits::of_volume(&superblock, true))
}

macro_rules! subject {
    ($name:ident, $more:expr, $then:expr, $is_due:expr) => {
        impl Subject for $name {
            type Device = TieredVolume<Virtual, MemoryStore>;
            type Stores = Stores;
            const READ_STEP: usize = 8;
            const HAS_HOME: bool = true;
            const LIFE_NS: u64 = 500_000_000;

            fn scene() -> &'static Scene {
                static SCENE: OnceLock<Scene> = OnceLock::new();
                SCENE.get_or_init(|| made($more, $then, $is_due))
            }

            fn stores(images: &[Vec<u8>]) -> Stores {
                let store = |at: usize| MemoryStore::with_image(&images[at]);
                (store(0), store(1), store(2))
            }

            async fn open(
                runtime: &Virtual,
                stores: Stores,
                options: OpenOptions,
            ) -> Result<Rc<Self::Device>> {
                let config = config($then);
                Ok(open_tiered(runtime, of(stores), &config, options, || 2).await?.0)
            }
        }
    };
}

const IS_COMMITTED: IsDue = |state, _| state == 1;
const NO_CLAIM: &str = "claim = \"none\"\n";
const DENSE: &str = "destage = \"dense\"\n";

subject!(Ordered, "", "", IS_COMMITTED);
subject!(Dense, DENSE, DENSE, |_, _| false);
subject!(Unclaimed, NO_CLAIM, NO_CLAIM, IS_COMMITTED);
subject!(Claiming, NO_CLAIM, "", |_, claim| claim == 1 || claim == 2);
