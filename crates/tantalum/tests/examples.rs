//! The examples work as described, and docs/rust.md contains the ledger verbatim.
#[path = "../examples/ledger.rs"]
#[allow(dead_code, reason = "the test has a main of its own")]
mod ledger;
#[path = "../examples/page_cache.rs"]
#[allow(dead_code, reason = "the test has a main of its own")]
mod page_cache;
#[path = "../examples/page_store.rs"]
#[allow(dead_code, reason = "the test has a main of its own")]
mod page_store;

use ledger::Ledger;
use page_cache::PageCache;
use page_store::PageStore;
use tantalum::{ErrorKind, PAGE_BYTES, PageBuf, PageNo, Volume};

#[test]
fn money_moves_as_a_whole_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("accounts");
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.transfer(1, 2, 100).unwrap();
    // The second account is out of range, so the first one keeps its money. Repeated so often that transactions left
    // open would exceed the limit.
    for _ in 0..200 {
        let refused = ledger.transfer(1, 1 << 30, 100).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::OutOfRange);
    }
    drop(ledger);
    let ledger = Ledger::open(&path).unwrap();
    assert_eq!((ledger.balance(1).unwrap(), ledger.balance(2).unwrap()), (-100, 100));
}

#[test]
fn an_engine_finds_its_pages_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let store = PageStore::open(&path).unwrap();
    store.checkpoint([(0, &[1; 16384]), (700, &[2; 16384])]).unwrap();
    drop(store);
    let store = PageStore::open(&path).unwrap();
    for (number, byte) in [(0, 1), (1, 0), (700, 2)] {
        let mut page = vec![9; 16384];
        store.read(number, &mut page).unwrap();
        assert!(page.iter().all(|it| *it == byte), "{number}");
    }
}

#[test]
fn a_cache_keeps_what_its_policy_says_and_writes_go_through() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cached");
    let volume = Volume::create(&path).capacity_bytes(4 << 20).open().unwrap();
    let mut cache = PageCache::over(volume, "fifo", 2).unwrap();
    let page = |byte: u8| PageBuf::copy_from(&[byte; PAGE_BYTES]);
    for byte in 1..=3 {
        cache.write(PageNo(u64::from(byte)), page(byte)).unwrap();
        assert_eq!(cache.volume.read(PageNo(u64::from(byte)), 1).unwrap(), [page(byte)]);
    }
    // Two frames: the page that was read first has been evicted.
    for (byte, is_kept) in [(3, true), (2, true), (1, false), (1, true), (2, false)] {
        let read = cache.read(PageNo(u64::from(byte))).unwrap();
        assert_eq!(read, (page(byte), is_kept), "{byte}");
    }
}

#[test]
fn the_page_has_the_example_as_it_is_compiled() {
    let (page, source) =
        (include_str!("../../../docs/rust.md"), include_str!("../examples/ledger.rs"));
    // The first line is the command to run it.
    let (_, program) = source.split_once('\n').unwrap();
    assert!(
        page.contains(program),
        "docs/rust.md has another ledger than crates/tantalum/examples"
    );
}
