//! A hosted volume in a file, called from several threads, with its executor on any thread.
use std::path::Path;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::{HostOptions, Placement, VolumeConfig, VolumeHost, config, create_volume};

const THREADS: u64 = 4;
const COMMITS: u64 = 40;

fn volume(folder: &Path) -> VolumeConfig {
    let path = folder.join("volume.toml");
    std::fs::write(&path, config::template("8MiB")).unwrap();
    let config = VolumeConfig::read(&path).unwrap();
    let live = Live::new(LiveOptions::default()).unwrap();
    let (handle, made) = (live.clone(), config.clone());
    live.run(async move { create_volume(&handle, &made, false).await }).unwrap();
    config
}

fn content(page: u64, commit: u64) -> PageBuf {
    PageBuf::copy_from(&[(page * 31 + commit) as u8; PAGE_BYTES])
}

/// Each thread commits to its own pages and ends; another one reads, closes and opens the volume
/// again.
fn threads_come_and_go(placement: Placement) {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let open = || {
        let options = HostOptions { placement, ..HostOptions::default() };
        VolumeHost::open(config.clone(), options).unwrap()
    };
    let host = open();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let client = host.client();
            scope.spawn(move || {
                for commit in 0..COMMITS {
                    let pages = (0..8).map(|page| thread * 8 + page);
                    let pages = pages.map(|page| (PageNo(page), content(page, commit))).collect();
                    client.write_transaction(pages).unwrap();
                }
            });
        }
    });
    let read_all = |host: VolumeHost| {
        for page in 0..THREADS * 8 {
            let found = host.client().read(PageNo(page), 1).unwrap();
            assert_eq!(found[0], content(page, COMMITS - 1), "page {page}, {placement:?}");
        }
    };
    // Dropping the last client closes the volume. Otherwise the second opening would find it
    // locked.
    read_all(host);
    read_all(open());
    assert_eq!(open().report().recovery.dropped, 0);
}

#[test]
fn on_the_callers_threads() {
    threads_come_and_go(Placement::Caller);
}

#[test]
fn on_a_thread_of_its_own() {
    threads_come_and_go(Placement::Thread);
}
