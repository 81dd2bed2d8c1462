//! The example of docs/rust.md: it is in the page as it is compiled, and does what the page says.
#[path = "../examples/ledger.rs"]
#[allow(dead_code, reason = "the test has a main of its own")]
mod ledger;

use ledger::Ledger;
use std::path::{Path, PathBuf};
use tantalum_base::{ErrorKind, PageNo};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::{VolumeConfig, config, create_volume, open_client};

fn created(folder: &Path) -> PathBuf {
    let path = folder.join("VOLUME.toml");
    std::fs::write(&path, config::template("4MiB")).unwrap();
    let config = VolumeConfig::read(&path).unwrap();
    let live = Live::new(LiveOptions::default()).unwrap();
    let handle = live.clone();
    live.run(async move { create_volume(&handle, &config, false).await }).unwrap();
    path
}

#[test]
fn money_moves_as_a_whole_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let config = created(folder.path());
    let mut ledger = Ledger::open(&config).unwrap();
    ledger.transfer(1, 2, 100).unwrap();
    // The second account is behind the end: the first one keeps its money, too.
    let refused = ledger.transfer(1, 1 << 40, 100).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::OutOfRange);
    drop(ledger);
    let ledger = Ledger::open(&config).unwrap();
    assert_eq!((ledger.balance(1).unwrap(), ledger.balance(2).unwrap()), (-100, 100));
}

#[test]
fn a_page_that_another_transaction_wrote_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let volume = open_client(&created(folder.path())).unwrap();
    let page = || volume.read(PageNo(7), 1).unwrap();
    let (one, other) = (volume.begin().unwrap(), volume.begin().unwrap());
    volume.write_tx(one, PageNo(7), page()).unwrap();
    let refused = volume.write_tx(other, PageNo(7), page()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    volume.commit(one).unwrap();
    // The other one may now, though it would have read the page before.
    volume.write_tx(other, PageNo(7), page()).unwrap();
    volume.commit(other).unwrap();
}

#[test]
fn the_page_has_the_example_as_it_is_compiled() {
    let (page, source) =
        (include_str!("../../../docs/rust.md"), include_str!("../examples/ledger.rs"));
    // The first line says how to run it.
    let (_, program) = source.split_once('\n').unwrap();
    assert!(page.contains(program), "docs/rust.md has another ledger than crates/volume/examples");
}
