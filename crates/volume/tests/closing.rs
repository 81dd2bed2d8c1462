//! A cleanly closed volume opens from its checkpoint alone, regardless of its activity at that time.
use std::path::Path;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, Rng};
use tantalum_media::block_store::{
    Counting, CrashOptions, CrashStore, MemoryStore, StoreCounters, StoreCounts,
};
use tantalum_runtime::LifeCycle;
use tantalum_runtime::virtual_time::{Schedule, Virtual};
use tantalum_volume::{FlashVolume, OpenOptions, VolumeConfig, config, create_flash, open_flash};

const PAGES: u64 = 4096;
/// The maximum number of commits between an opening and the next close.
const COMMITS_MAX: u64 = 64;
const PAGES_PER_COMMIT: u64 = 8;

/// Opens and closes a full volume `times` times, with random writes in between that cause cleaning.
/// Returns the store operations of each opening except the first, and the total number of cleaned zones.
fn openings(times: u64) -> (Vec<StoreCounts>, u64) {
    let config = VolumeConfig::parse(&config::template("16MiB"), Path::new("v.toml")).unwrap();
    let runtime = Virtual::new(Schedule::Fifo);
    let disk = MemoryStore::new(64 << 20);
    let latencies = CrashOptions {
        seed: 1,
        read_ns: (10_000, 100_000),
        write_ns: (20_000, 400_000),
        sync_ns: (100_000, 500_000),
    };
    let handle = runtime.clone();
    let main = async move {
        create_flash(disk.clone(), &config, 1).await.unwrap();
        let (mut opened, mut cleaned) = (Vec::new(), 0);
        for time in 0..times {
            let counters = StoreCounters::default();
            let store = CrashStore::new(handle.clone(), disk.clone(), latencies);
            let store = Counting::new(store, counters.clone());
            let (volume, _) =
                open_flash(&handle, store, &config, OpenOptions::default()).await.unwrap();
            opened.push(counters.snapshot());
            write(&volume, time).await;
            volume.close().await.unwrap();
            cleaned += volume.device().statistics().ftl.zones_cleaned;
        }
        (opened.split_off(1), cleaned)
    };
    let opened = runtime.run(main).unwrap();
    runtime.drop_tasks();
    opened
}

/// Fills the volume the first time; later it writes at random, some single pages and some commits.
async fn write<S: tantalum_media::BlockStore>(volume: &FlashVolume<S>, time: u64) {
    let device = &volume;
    let content = [PageBuf::copy_from(&[time as u8; PAGE_BYTES])];
    let mut rng = Rng::split(time, "writes");
    if time == 0 {
        for page in 0..PAGES {
            device.write(PageNo(page), &content, None).await.unwrap();
        }
    }
    for _ in 0..rng.below(COMMITS_MAX) {
        let tx = device.begin().await.unwrap();
        for _ in 0..PAGES_PER_COMMIT {
            device.write(PageNo(rng.below(PAGES)), &content, Some(tx)).await.unwrap();
        }
        device.commit(tx).await.unwrap();
    }
    device.write(PageNo(rng.below(PAGES)), &content, None).await.unwrap();
}

#[test]
fn a_full_volume_that_was_cleaning_opens_from_its_checkpoint_alone() {
    let (opened, cleaned) = openings(60);
    assert!(cleaned > 60, "{cleaned}");
    for (number, counts) in opened.iter().enumerate() {
        assert_eq!((counts.writes, counts.syncs), (0, 1), "opening {number}: {counts:?}");
        // The map and the table of zones, both superblocks, and the anchors.
        assert!(counts.bytes_read < 2 << 20, "opening {number}: {counts:?}");
    }
}
