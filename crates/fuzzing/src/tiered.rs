//! The input of a volume with a home: its flash and its journal.
use std::path::Path;
use std::sync::OnceLock;
use tantalum_base::PAGE_BYTES;
use tantalum_media::BlockStore;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};
use tantalum_volume::superblock::{COPIES, SUPERBLOCK_BYTES, Superblock};
use tantalum_volume::{OpenOptions, TieredStores, VolumeConfig, format_tiered, open_tiered};

use crate::pages::Image;
use crate::volumes::{changes_of, read_and_change, use_volume};

const CONFIG: &str = "kind = \"tiered\"\n[media]\ntype = \"file\"\npath = \"f\"\nsize = \"7MiB\"\nzone = \"128KiB\"\n\
                      [home]\npath = \"h\"\ndestage_after_ms = 50\n\
                      [device]\ncapacity = \"8MiB\"\ncache = \"128KiB\"\ntransaction_max = \"64KiB\"\ncheckpoint_interval = \"16MiB\"\n";
/// Time for which a volume is open, so that its tasks run.
const LIFE_NS: u64 = 500_000_000;
/// One in this many pages is read, which brings it into the cache.
const READ_STEP: usize = 32;
/// Number of pages of each store whose fields are seeds.
const SEED_PAGES: usize = 8;

/// The images of a volume's stores.
struct Images {
    flash: Image,
    journal: Image,
    home: Vec<u8>,
}

/// Changes pages with a checksum: of the flash, and also of the journal if the third bit of the first byte is set; otherwise like
/// `log_headers`.
pub(crate) fn run(input: &[u8]) {
    let Some((first, changes)) = input.split_first() else { return };
    let Images { flash, journal, home } = images();
    let is_repaired = first & 1 == 1;
    let (of_flash, of_journal) =
        if first & 4 == 4 { (&[][..], changes) } else { (changes, &[][..]) };
    let store = |bytes: &[u8]| MemoryStore::with_image(bytes);
    let stores = TieredStores {
        flash: store(&flash.changed(of_flash, is_repaired)),
        home: store(home),
        journal: Some(store(&journal.changed(of_journal, is_repaired))),
    };
    let options = OpenOptions { accept_loss: first & 2 == 2, ..OpenOptions::default() };
    let runtime = Virtual::new(Schedule::Fifo);
    let live = runtime.clone();
    let finished = runtime.run(async move {
        let Ok((volume, _)) = open_tiered(&live, stores, &config(), options, || 0).await else {
            return;
        };
        read_and_change(&*volume, READ_STEP).await;
        live.sleep(LIFE_NS).await;
        let _ = volume.close().await;
    });
    // The tasks hold the volume, and with it the stores.
    runtime.drop_tasks();
    finished.unwrap_or_else(|deadlock| panic!("{deadlock}"));
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let Images { flash, journal, .. } = images();
    let mut of_journal = changes_of(journal.len(), SEED_PAGES);
    of_journal.iter_mut().for_each(|seed| seed[0] |= 4);
    [changes_of(flash.len(), SEED_PAGES), of_journal].concat()
}

fn config() -> VolumeConfig {
    VolumeConfig::parse(CONFIG, Path::new("/v/VOLUME.toml")).expect("a sound configuration")
}

/// A volume that was written, trimmed and cleaned, and whose pages were written home and evicted; it was not closed.
fn images() -> &'static Images {
    static IMAGES: OnceLock<Images> = OnceLock::new();
    IMAGES.get_or_init(|| {
        let config = config();
        let runtime = Virtual::new(Schedule::Fifo);
        let live = runtime.clone();
        let life = async move {
            let zeros = |pages| MemoryStore::new(pages * PAGE_BYTES as u64);
            let (made, superblock) = new_volume(&config, zeros).await;
            let pages = superblock.pages;
            let [flash, home] = [&made.flash, &made.home].map(Clone::clone);
            let used = TieredStores { flash, home, journal: made.journal.clone() };
            let opened = open_tiered(&live, used, &config, OpenOptions::default(), || 0).await;
            let (volume, _) = opened.expect("it opens");
            for _ in 0..3 {
                use_volume(&*volume, pages).await;
                live.sleep(200_000_000).await;
            }
            use_volume(&*volume, 300).await;
            made
        };
        let TieredStores { flash, home, journal } = runtime.run(life).expect("it comes to an end");
        runtime.drop_tasks();
        let image = |store: &MemoryStore| Image::new(store.image());
        let journal = journal.as_ref().map(image).expect("a journal");
        Images { flash: image(&flash), journal, home: home.image() }
    })
}

/// The stores of a new volume over the `home` of so many pages, and its superblock.
pub(crate) async fn new_volume(
    config: &VolumeConfig,
    home: impl FnOnce(u64) -> MemoryStore,
) -> (TieredStores<MemoryStore>, Superblock) {
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
    let stores = TieredStores {
        flash: MemoryStore::new(superblock.store_bytes()),
        home: home(superblock.pages),
        journal: Some(MemoryStore::new(journal_bytes)),
    };
    format_tiered(&stores, config, &superblock).await.expect("a new volume");
    let mut copies = stores.flash.buffer(COPIES * SUPERBLOCK_BYTES);
    let each = copies.chunks_mut(SUPERBLOCK_BYTES);
    each.for_each(|copy| copy.copy_from_slice(&superblock.encode()));
    stores.flash.write(0, copies, true).await.expect("written");
    (stores, superblock)
}
