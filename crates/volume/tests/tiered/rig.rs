//! A tiered volume over stores in memory, in virtual time.
use super::failing::Failing;
use std::path::Path;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload, Result};
use tantalum_cache::TieredStatistics;
use tantalum_cache::claim::{Claim, Extent, claim_in};
use tantalum_media::BlockStore;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};
use tantalum_volume::superblock::{COPIES, SUPERBLOCK_BYTES, Superblock};
use tantalum_volume::{
    OpenOptions, TieredStores, TieredVolume, VolumeConfig, format_tiered, open_tiered, rescue,
};

/// Pages of the home, which is more than twice as large as the flash.
pub const PAGES: u64 = 4096;

/// A second, in nanoseconds.
pub const SECOND_NS: u64 = 1_000_000_000;

pub type Volume = Rc<TieredVolume<Virtual, Failing>>;

const CONFIG: &str = r#"kind = "tiered"
[media]
type = "file"
path = "flash"
size = "7MiB"
zone = "128KiB"
[home]
path = "home"
destage = "DESTAGE"
destage_after_ms = 50
[device]
capacity = "16MiB"
cache = "128KiB"
transaction_max = "64KiB"
checkpoint_interval = "16MiB"
"#;

/// The claim on these bytes of a home: below the claim, its sectors hold zeros or the filler of [`page`].
fn claim_under(bytes: &[u8]) -> Option<Claim> {
    (0..=u8::MAX).find_map(|fill| {
        let filled: Vec<u8> = bytes.iter().map(|byte| byte ^ fill).collect();
        claim_in(&filled).claim
    })
}

/// The content of a page after write `count`; zeros for 0.
pub fn page(number: u64, count: u64) -> PageBuf {
    let mut content = PageBuf::zero();
    if count > 0 {
        content.make_mut().fill(count as u8);
        content.make_mut()[..8].copy_from_slice(&(number + 1).to_le_bytes());
        content.make_mut()[8..16].copy_from_slice(&count.to_le_bytes());
    }
    content
}

/// The media of a volume, which remain when it is closed. Clones share the media.
#[derive(Clone)]
pub struct Rig {
    pub flash: MemoryStore,
    pub home: MemoryStore,
    pub journal: MemoryStore,
    pub config: VolumeConfig,
    pub superblock: Superblock,
}

impl Rig {
    /// A new volume over an empty home.
    pub fn new(destage: &str) -> Rig {
        Rig::over(destage, 77, MemoryStore::new(PAGES * PAGE_BYTES as u64))
    }

    /// A new volume over an empty home whose last page lacks a sector.
    pub fn odd(destage: &str) -> Rig {
        let bytes = PAGES * PAGE_BYTES as u64 - 512;
        let text = CONFIG
            .replace("DESTAGE", destage)
            .replace("16MiB\"\ncache", &format!("{bytes}B\"\ncache"));
        let text = text.replace("[home]\n", &format!("[home]\nsize = \"{bytes}B\"\n"));
        Rig::configured(&text, 79, MemoryStore::new(bytes))
    }

    /// A new volume over an empty home of this many pages.
    pub fn large(destage: &str, pages: u64) -> Rig {
        let bytes = pages * PAGE_BYTES as u64;
        let text = CONFIG
            .replace("DESTAGE", destage)
            .replace("16MiB\"\ncache", &format!("{bytes}B\"\ncache"));
        Rig::configured(&text, 80, MemoryStore::new(bytes))
    }

    /// A new volume with this identity over `home`.
    pub fn over(destage: &str, volume_id: u128, home: MemoryStore) -> Rig {
        Rig::configured(&CONFIG.replace("DESTAGE", destage), volume_id, home)
    }

    /// A new volume over an empty home, with this limit on dirty pages.
    pub fn with_dirty_max(destage: &str, dirty_max: &str) -> Rig {
        let text =
            CONFIG.replace("DESTAGE\"", &format!("{destage}\"\ndirty_max = \"{dirty_max}\""));
        Rig::configured(&text, 78, MemoryStore::new(PAGES * PAGE_BYTES as u64))
    }

    fn configured(text: &str, volume_id: u128, home: MemoryStore) -> Rig {
        let config = VolumeConfig::parse(text, Path::new("VOLUME.toml")).unwrap();
        let superblock = Superblock {
            volume_id,
            zones: config.flash_zones().unwrap(),
            slots_per_zone: config.zone_slots().unwrap(),
            pages: config.capacity_pages().unwrap(),
            is_cache: true,
            is_staged: true,
            growths: 0,
            pages_before: 0,
        };
        let flash = MemoryStore::new(superblock.store_bytes());
        let journal = {
            let home = config.home.as_ref().unwrap();
            let cache = home.cache_options(&superblock.geometry()).unwrap();
            MemoryStore::new(home.journal_bytes(&cache).next_multiple_of(PAGE_BYTES as u64))
        };
        let rig = Rig { flash, home, journal, config, superblock };
        rig.format();
        rig
    }

    /// Makes flash and journal anew.
    pub fn format(&self) {
        let runtime = Virtual::new(Schedule::Fifo);
        let (stores, config, superblock) =
            (self.stores(&runtime), self.config.clone(), self.superblock);
        let format = async move {
            format_tiered(&stores, &config, &superblock).await?;
            let mut copies = stores.flash.buffer(COPIES * SUPERBLOCK_BYTES);
            copies
                .chunks_mut(SUPERBLOCK_BYTES)
                .for_each(|copy| copy.copy_from_slice(&superblock.encode()));
            stores.flash.write(0, copies, true).await.map(|_| ())
        };
        runtime.run(format).unwrap().unwrap();
        runtime.drop_tasks();
    }

    /// The media with the power on, without failures at first.
    pub fn stores(&self, runtime: &Virtual) -> TieredStores<Failing> {
        let store = |memory: &MemoryStore| Failing::new(runtime, memory.clone());
        TieredStores {
            flash: store(&self.flash),
            home: store(&self.home),
            journal: Some(store(&self.journal)),
        }
    }

    /// Opens the volume, runs `life` with it, and drops all tasks where they stand, as a kill does. A life that
    /// cannot continue, or takes more than an hour, has failed.
    pub fn live<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        life: impl FnOnce(Life) -> F + 'static,
    ) -> T {
        self.live_as(OpenOptions::default(), |opened| life(opened.unwrap()))
    }

    /// The same with `options`; `life` gets the result of opening.
    pub fn live_as<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        options: OpenOptions,
        life: impl FnOnce(Result<Life>) -> F + 'static,
    ) -> T {
        self.live_over(options, |_| (), life)
    }

    /// The same over stores in which `fail` has set up failures.
    pub fn live_over<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        options: OpenOptions,
        fail: impl FnOnce(&TieredStores<Failing>),
        life: impl FnOnce(Result<Life>) -> F + 'static,
    ) -> T {
        let runtime = Virtual::new(Schedule::Shuffled(5));
        let (stores, config) = (self.stores(&runtime), self.config.clone());
        fail(&stores);
        let handle = runtime.clone();
        let main = async move {
            let [flash, home] = [&stores.flash, &stores.home].map(Clone::clone);
            let journal = stores.journal.clone();
            let opened = open_tiered(&handle, stores, &config, options, || 0).await;
            let opened = opened.map(|(volume, _)| Life {
                runtime: handle.clone(),
                volume,
                flash,
                home,
                journal,
            });
            life(opened).await
        };
        let hour = runtime.clone();
        let ended = runtime.run(async move {
            let (mut main, mut hour) = (Box::pin(main), Box::pin(hour.sleep(3600 * SECOND_NS)));
            std::future::poll_fn(|context| match main.as_mut().poll(context) {
                std::task::Poll::Pending => hour.as_mut().poll(context).map(|()| None),
                ready => ready.map(Some),
            })
            .await
        });
        runtime.drop_tasks();
        ended.unwrap().expect("it hangs")
    }

    /// Home and journal as they are now: the remains after the loss of the flash.
    pub fn left(&self) -> [MemoryStore; 2] {
        [&self.home, &self.journal].map(|store| MemoryStore::with_image(&store.image()))
    }

    /// The content of home after a rescue from these remains.
    pub fn rescued([home, journal]: [MemoryStore; 2]) -> Vec<u8> {
        let rescued = home.clone();
        Virtual::alone("rescue", |_| rescue(journal, home)).unwrap();
        rescued.image()
    }

    /// The content of a home, without its claim, if it has one.
    pub fn under_the_claim(home: &MemoryStore) -> Vec<u8> {
        let mut image = home.image();
        let extent = Extent::of(image.len() as u64);
        for range in extent.ranges().map(|range| range.start as usize..range.end as usize) {
            if let Some(claim) = claim_under(&image[range.clone()]) {
                claim.toggle(&mut image[range]);
            }
        }
        image
    }

    /// The byte offsets, in a store, of the blocks that hold this page after write `count`.
    pub fn places(store: &MemoryStore, number: u64, count: u64) -> Vec<u64> {
        let wanted = page(number, count);
        let image = store.image();
        let blocks = (0..).step_by(PAGE_BYTES).zip(image.chunks(PAGE_BYTES));
        blocks.filter(|(_, block)| **block == wanted[..]).map(|(byte, _)| byte).collect()
    }
}

/// An open volume, and its stores.
#[derive(Clone)]
pub struct Life {
    pub runtime: Virtual,
    pub volume: Volume,
    pub flash: Failing,
    pub home: Failing,
    pub journal: Option<Failing>,
}

impl Life {
    pub fn statistics(&self) -> TieredStatistics {
        self.volume.device().device().statistics()
    }

    pub async fn write_home(&self) -> Result<()> {
        self.volume.device().device().write_home().await
    }

    pub async fn sleep_s(&self, seconds: u64) {
        self.runtime.sleep(seconds * SECOND_NS).await;
    }

    pub async fn write(&self, number: u64, count: u64) -> Result<()> {
        self.volume.write(PageNo(number), &[page(number, count)], None).await
    }

    pub async fn read(&self, number: u64) -> Result<PageBuf> {
        let mut out = [PageBuf::zero()];
        self.volume.read(PageNo(number), &mut out, None).await.map(|()| out[0].clone())
    }
}
