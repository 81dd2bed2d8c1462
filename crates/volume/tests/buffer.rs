//! A volume with a buffer, live and in virtual time: it returns the same content as one without a
//! buffer.
use std::path::Path;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload, Rng};
use tantalum_media::BlockStore;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::virtual_time::{Schedule, Virtual};
use tantalum_runtime::{LifeCycle, Live, Runtime};
use tantalum_volume::{OpenOptions, VolumeConfig, config, create_flash, open_flash};

const PAGES: u64 = 1024;

fn configuration(buffer: &str) -> VolumeConfig {
    let text = config::template("4MiB")
        .replace("# zone = \"8MiB\"", "zone = \"256KiB\"")
        .replace("# [buffer]", buffer);
    VolumeConfig::parse(&text, Path::new("v.toml")).unwrap()
}

fn page(number: u64) -> PageBuf {
    PageBuf::copy_from(&number.to_le_bytes().repeat(PAGE_BYTES / 8))
}

/// The expected content of the pages.
struct Model(Vec<PageBuf>);

impl Model {
    fn slice(&mut self, range: PageRange) -> &mut [PageBuf] {
        &mut self.0[range.first.index()..range.end().index()]
    }
}

/// Changes pages with every command, and compares every read with the model.
async fn exercise(device: &impl PageDevice<Page = PageBuf>, model: &mut Model, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut content = seed << 32;
    for step in 0..2000 {
        // Most commands affect few pages, so that they overlap in the buffer.
        let near = if rng.chance(0.8) { 96 } else { PAGES - 8 };
        let range = PageRange::new(PageNo(rng.below(near)), 1 + rng.below(8));
        let mut fresh = || {
            content += 1;
            page(content)
        };
        match rng.below(20) {
            0..4 => {
                let pages: Vec<PageBuf> = range.iter().map(|_| fresh()).collect();
                device.write(range.first, &pages, None).await.unwrap();
                model.slice(range).clone_from_slice(&pages);
            }
            4 => {
                device.trim(range).await.unwrap();
                model.slice(range).fill(PageBuf::zero());
            }
            5 => {
                let right = PageNo(rng.below(near));
                if right.0.abs_diff(range.first.0) > 8 && model.0[right.index()] != PageBuf::zero()
                {
                    device.share(&[(range.first, right)]).await.unwrap();
                    model.0[range.first.index()] = model.0[right.index()].clone();
                }
            }
            6 | 7 => {
                let tx = device.begin().await.unwrap();
                let pages: Vec<PageBuf> = range.iter().map(|_| fresh()).collect();
                device.write(range.first, &pages, Some(tx)).await.unwrap();
                let mut seen = vec![PageBuf::zero(); pages.len()];
                device.read(range.first, &mut seen, Some(tx)).await.unwrap();
                assert!(seen == pages, "seed {seed}, step {step}: the transaction's own");
                device.read(range.first, &mut seen, None).await.unwrap();
                assert!(seen == model.slice(range), "seed {seed}, step {step}: not committed");
                if rng.chance(0.5) {
                    device.commit(tx).await.unwrap();
                    model.slice(range).clone_from_slice(&pages);
                } else {
                    device.abort(tx).await.unwrap();
                }
            }
            8 => device.flush().await.unwrap(),
            9 => {
                let mut pages: Vec<_> = range.iter().map(|page| (page, fresh())).collect();
                pages.reverse();
                for (page, content) in &pages {
                    model.0[page.index()] = content.clone();
                }
                device.write_scattered(pages, || ()).await.unwrap();
            }
            _ => {
                let mut seen = vec![PageBuf::zero(); range.pages as usize];
                device.read(range.first, &mut seen, None).await.unwrap();
                assert!(seen == model.slice(range), "seed {seed}, step {step}: {range}");
            }
        }
    }
}

/// Opens a new volume on `store` twice.
async fn live_and_reopen<S: BlockStore + Clone>(runtime: impl Runtime, store: S, policy: &str) {
    let buffer = format!("[buffer]\nsize = \"200KiB\"\npolicy = \"{policy}\"");
    let config = configuration(&buffer);
    create_flash(store.clone(), &config, 5).await.unwrap();
    let mut model = Model(vec![PageBuf::zero(); PAGES as usize]);
    for turn in 0..2 {
        let (volume, _) =
            open_flash(&runtime, store.clone(), &config, OpenOptions::default()).await.unwrap();
        exercise(&*volume, &mut model, 7 + turn).await;
        let seen = volume.statistics().unwrap();
        assert!(seen.hits > 1000 && seen.misses > 1000, "{policy}: {seen:?}");
        assert!(
            volume.device().statistics().pages_read < seen.requests,
            "{policy}: hits read nothing"
        );
        assert_eq!(volume.capacity_pages(), 50);
        volume.validate();
        assert_eq!(volume.check(|_, _| ()).await.unwrap(), []);
        volume.close().await.unwrap();
    }
}

#[test]
fn in_virtual_time_every_read_shows_the_newest_content() {
    for policy in ["lru", "clock:bits=2", "sieve"] {
        let runtime = Virtual::new(Schedule::Shuffled(1));
        let handle = runtime.clone();
        let store = MemoryStore::new(16 << 20);
        runtime.run(async move { live_and_reopen(handle, store, policy).await }).unwrap();
        runtime.drop_tasks();
    }
}

#[test]
fn live_every_read_shows_the_newest_content() {
    let live = Live::new(LiveOptions::default()).unwrap();
    let handle = live.clone();
    let store = MemoryStore::new(16 << 20);
    live.run(async move { live_and_reopen(handle, store, "lru").await });
    live.drop_tasks();
}

#[test]
fn without_a_buffer_there_is_none() {
    let config = configuration("# [buffer]");
    let runtime = Virtual::new(Schedule::Fifo);
    let handle = runtime.clone();
    let opened = async move {
        let store = MemoryStore::new(16 << 20);
        create_flash(store.clone(), &config, 5).await.unwrap();
        let (volume, _) =
            open_flash(&handle, store, &config, OpenOptions::default()).await.unwrap();
        (volume.statistics(), volume.capacity_pages())
    };
    assert_eq!(runtime.run(opened).unwrap(), (None, 0));
    runtime.drop_tasks();
}
