//! A hosted volume in a file, called from several threads, with its executor on any thread.
use tantalum::{OpenOptions, PAGE_BYTES, PageBuf, PageNo, Placement, Volume};

const THREADS: u64 = 4;
const COMMITS: u64 = 40;

fn content(page: u64, commit: u64) -> PageBuf {
    PageBuf::copy_from(&[(page * 31 + commit) as u8; PAGE_BYTES])
}

/// Each thread commits to its own pages and ends; another one reads, closes and opens the volume
/// again.
fn threads_come_and_go(placement: Placement) {
    let folder = tempfile::tempdir().unwrap();
    drop(Volume::create(folder.path()).capacity_bytes(8 << 20).open().unwrap());
    let open = || {
        let options = OpenOptions { placement, ..OpenOptions::default() };
        Volume::open_with(folder.path(), options).unwrap()
    };
    let volume = open();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let volume = volume.clone();
            scope.spawn(move || {
                for commit in 0..COMMITS {
                    let pages = (0..8).map(|page| thread * 8 + page);
                    let pages = pages.map(|page| (PageNo(page), content(page, commit))).collect();
                    volume.write_scattered(pages).unwrap();
                }
            });
        }
    });
    let read_all = |volume: Volume| {
        for page in 0..THREADS * 8 {
            let found = volume.read(PageNo(page), 1).unwrap();
            assert_eq!(found[0], content(page, COMMITS - 1), "page {page}, {placement:?}");
        }
    };
    // Dropping the last handle closes the volume. Otherwise the second opening would find it
    // locked.
    read_all(volume);
    read_all(open());
    assert_eq!(open().stat().unwrap().number("dropped_at_open"), Some(0));
}

#[test]
fn on_the_callers_threads() {
    threads_come_and_go(Placement::Caller);
}

#[test]
fn on_a_thread_of_its_own() {
    threads_come_and_go(Placement::Thread);
}
