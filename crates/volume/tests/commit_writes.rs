//! The cost of a commit on a store: one durable append and nothing else.
use std::path::Path;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo};
use tantalum_ftl::FtlStatistics;
use tantalum_media::block_store::{Counting, MemoryStore, StoreCounters, StoreCounts};
use tantalum_runtime::virtual_time::{Schedule, Virtual};
use tantalum_volume::{OpenOptions, VolumeConfig, config, create_flash, open_flash};

const PAGES_PER_COMMIT: u64 = 8;
/// A zone of this volume has 256 slots, so it takes 28 commits: the next would be split in two.
const COMMITS: u64 = 200;

/// The store operations of each of `commits` sequential commits, and the FTL's counters.
fn counts(commits: u64) -> (Vec<StoreCounts>, FtlStatistics) {
    let config = VolumeConfig::parse(&config::template("64MiB"), Path::new("v.toml")).unwrap();
    let runtime = Virtual::new(Schedule::Fifo);
    let handle = runtime.clone();
    let main = async move {
        let counters = StoreCounters::default();
        let store = Counting::new(MemoryStore::new(256 << 20), counters.clone());
        create_flash(store.clone(), &config, 1).await.unwrap();
        let (volume, _) =
            open_flash(&handle, store, &config, OpenOptions::default()).await.unwrap();
        let device = &volume;
        let mut counts = Vec::new();
        for commit in 0..commits {
            let before = counters.snapshot();
            let tx = device.begin().await.unwrap();
            let content = [PageBuf::copy_from(&[commit as u8; PAGE_BYTES])];
            for page in 0..PAGES_PER_COMMIT {
                // Scattered, as in a database.
                let page = (commit * PAGES_PER_COMMIT + page) * 977 % 16_000;
                device.write(PageNo(page), &content, Some(tx)).await.unwrap();
            }
            assert_eq!(counters.snapshot(), before, "nothing before the commit");
            device.commit(tx).await.unwrap();
            counts.push(counters.snapshot().since(&before));
        }
        (counts, volume.device().statistics().ftl)
    };
    let counts = runtime.run(main).unwrap();
    runtime.drop_tasks();
    counts
}

#[test]
fn a_commit_of_eight_pages_is_one_durable_append() {
    // Eight pages and the header that describes them, checksums included.
    let one = StoreCounts {
        writes: 1,
        bytes_written: (PAGES_PER_COMMIT + 1) * PAGE_BYTES as u64,
        durable_writes: 1,
        ..StoreCounts::default()
    };
    // The first commit after an opening also records, twice, the zones that may be filled from
    // then on.
    let first = StoreCounts {
        writes: 3,
        bytes_written: one.bytes_written + 2 * PAGE_BYTES as u64,
        durable_writes: 3,
        ..one
    };
    for (commit, counts) in counts(COMMITS).0.into_iter().enumerate() {
        assert_eq!(counts, if commit == 0 { first } else { one }, "commit {commit}");
    }
}

#[test]
fn a_commit_is_one_append_also_while_cleaning_runs() {
    // Twice the capacity, so that zones are cleaned all the time.
    let commits = 2 * 16_384 / PAGES_PER_COMMIT;
    let (_, ftl) = counts(commits);
    assert!(ftl.zones_cleaned > 10, "{ftl:?}");
    assert_eq!(ftl.host_appends, commits);
}
