//! A flash volume in virtual time over a store in memory.
use std::path::Path;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload, Rng};
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::LifeCycle;
use tantalum_runtime::virtual_time::{Schedule, Virtual};
use tantalum_volume::{
    OpenOptions, VolumeConfig, config, create_flash, open_flash, read_superblock,
};

const PAGES: u64 = 256;

fn configuration(durability: &str) -> VolumeConfig {
    let text = config::template("1MiB")
        .replace("# zone = \"8MiB\"", "zone = \"128KiB\"")
        .replace("# durability = \"on_ack\"", &format!("durability = \"{durability}\""));
    VolumeConfig::parse(&text, Path::new("v.toml")).unwrap()
}

/// A new volume in a store that is larger than it needs.
fn create(config: &VolumeConfig) -> MemoryStore {
    let store = MemoryStore::new(16 << 20);
    let made = {
        let (store, config) = (store.clone(), config.clone());
        Virtual::new(Schedule::Fifo)
            .run(async move { create_flash(store, &config, 77).await })
            .unwrap()
            .unwrap()
    };
    assert_eq!((made.volume_id, made.pages), (77, PAGES));
    store
}

fn page(number: u64) -> PageBuf {
    PageBuf::copy_from(&number.to_le_bytes().repeat(PAGE_BYTES / 8))
}

#[test]
fn what_was_written_is_there_after_every_closing() {
    for (seed, durability) in [(1, "on_ack"), (2, "on_flush")] {
        let config = configuration(durability);
        let store = create(&config);
        let mut expected = vec![PageBuf::zero(); PAGES as usize];
        for turn in 0..6u64 {
            let runtime = Virtual::new(Schedule::Shuffled(seed + turn));
            let (handle, store, config) = (runtime.clone(), store.clone(), config.clone());
            let mut model = expected.clone();
            expected = runtime
                .run(async move {
                    let (volume, report) =
                        open_flash(&handle, store, &config, OpenOptions::default()).await.unwrap();
                    assert_eq!(report.recovery.replayed, 0, "turn {turn}: it was closed");
                    let device = &volume;
                    let mut found = vec![PageBuf::zero(); PAGES as usize];
                    device.read(PageNo(0), &mut found, None).await.unwrap();
                    assert!(found == model, "seed {seed}, turn {turn}");
                    let mut rng = Rng::new(seed * 100 + turn);
                    for step in 0..400 {
                        let first = rng.below(PAGES - 8);
                        let pages = 1 + rng.below(8);
                        let range = first as usize..(first + pages) as usize;
                        if rng.chance(0.1) {
                            device.trim(PageRange::new(PageNo(first), pages)).await.unwrap();
                            model[range].fill(PageBuf::zero());
                        } else {
                            let content = page(turn * 1000 + step + 1);
                            model[range.clone()].fill(content);
                            device.write(PageNo(first), &model[range], None).await.unwrap();
                        }
                    }
                    assert_eq!(volume.check(|_, _| ()).await.unwrap(), []);
                    volume.close().await.unwrap();
                    model
                })
                .unwrap();
            runtime.drop_tasks();
        }
    }
}

#[test]
fn creating_again_leaves_nothing_of_the_old_volume() {
    let config = configuration("on_ack");
    let store = create(&config);
    let runtime = Virtual::new(Schedule::Fifo);
    let handle = runtime.clone();
    runtime
        .run(async move {
            let (volume, _) =
                open_flash(&handle, store.clone(), &config, OpenOptions::default()).await.unwrap();
            volume.write(PageNo(3), &[page(9)], None).await.unwrap();
            volume.close().await.unwrap();
            create_flash(store.clone(), &config, 78).await.unwrap();
            let (volume, report) =
                open_flash(&handle, store.clone(), &config, OpenOptions::default()).await.unwrap();
            assert_eq!((report.superblock.volume_id, report.recovery.replayed), (78, 0));
            let mut found = [page(1)];
            volume.read(PageNo(3), &mut found, None).await.unwrap();
            assert!(found[0] == PageBuf::zero());
        })
        .unwrap();
    runtime.drop_tasks();
}

#[test]
fn a_store_that_is_too_small_is_out_of_space_and_no_volume() {
    let config = configuration("on_ack");
    let store = MemoryStore::new(1 << 20);
    Virtual::new(Schedule::Fifo)
        .run(async move {
            let error = create_flash(store.clone(), &config, 1).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfSpace);
            let error = read_superblock(&store).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Format);
        })
        .unwrap();
}

/// Pages moved and zones levelled by cleaning, with `setting` in VOLUME.toml.
fn moved_and_levelled(setting: &str) -> (u64, u64) {
    let text = config::template("1MiB")
        .replace("# zone = \"8MiB\"", "zone = \"64KiB\"")
        .replace("# cleaning = \"greedy\"", setting);
    let config = VolumeConfig::parse(&text, Path::new("v.toml")).unwrap();
    let store = create(&config);
    let runtime = Virtual::new(Schedule::Fifo);
    let handle = runtime.clone();
    let run = async move {
        let (volume, _) =
            open_flash(&handle, store, &config, OpenOptions::default()).await.unwrap();
        let (device, mut rng) = (&volume, Rng::new(1));
        for step in 0..8000 {
            // A tenth of the pages get most writes.
            let at = if step < PAGES { step } else { rng.below(PAGES / 10) };
            let content = page(step + 1);
            device.write(PageNo(at), std::slice::from_ref(&content), None).await.unwrap();
        }
        let ftl = volume.device().statistics().ftl;
        volume.close().await.unwrap();
        (ftl.pages_moved, ftl.zones_levelled)
    };
    let counted = runtime.run(run).unwrap();
    runtime.drop_tasks();
    counted
}

#[test]
fn cleaning_and_wear_levelling_are_as_the_configuration_says() {
    let (greedy, none) = moved_and_levelled("wear_spread = 0");
    let (fifo, _) = moved_and_levelled("cleaning = \"fifo\"\nwear_spread = 0");
    assert!(fifo > 2 * greedy, "{fifo} {greedy}");
    let (_, levelled) = moved_and_levelled("wear_spread = 8");
    assert!(none == 0 && levelled > 0, "{none} {levelled}");
}

#[test]
fn the_table_of_shared_pages_is_as_large_as_the_configuration_says() {
    for (entries, shared) in [("", 8), ("share_entries_max = 3", 3), ("share_entries_max = 0", 0)] {
        let text = config::template("1MiB")
            .replace("# zone = \"8MiB\"", "zone = \"128KiB\"")
            .replace("# share_entries_max = 500", entries);
        let config = VolumeConfig::parse(&text, Path::new("v.toml")).unwrap();
        let store = create(&config);
        let runtime = Virtual::new(Schedule::Fifo);
        let handle = runtime.clone();
        let counted = runtime.run(async move {
            let (volume, _) =
                open_flash(&handle, store, &config, OpenOptions::default()).await.unwrap();
            let device = &volume;
            let pages: Vec<PageBuf> = (0..8).map(page).collect();
            device.write(PageNo(0), &pages, None).await.unwrap();
            device.share_range(PageNo(100), PageNo(0), 8).await.unwrap();
            let mut found = vec![PageBuf::zero(); 8];
            device.read(PageNo(100), &mut found, None).await.unwrap();
            assert!(found == pages, "{entries}");
            volume.device().statistics().ftl
        });
        let counted = counted.unwrap();
        assert_eq!((counted.pages_shared, counted.pages_share_copied), (shared, 8 - shared));
        runtime.drop_tasks();
    }
}
