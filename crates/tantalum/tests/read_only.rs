//! Volumes opened read-only: nothing in their folder changes.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tantalum::{ErrorKind, OpenOptions, PAGE_BYTES, PageBuf, PageNo, PageRange, Placement, Volume};

const PAGES: u64 = 512;

fn page(number: u64) -> PageBuf {
    PageBuf::copy_from(&number.to_le_bytes().repeat(PAGE_BYTES / 8))
}

/// A volume in `folder` whose writer was killed, and its content.
fn killed(folder: &Path) -> (PathBuf, Vec<PageBuf>) {
    let (open, left) = (folder.join("open"), folder.join("left"));
    let volume = Volume::create(&open).capacity_bytes(PAGES * PAGE_BYTES as u64).open().unwrap();
    let scattered = (0..PAGES / 2).map(|number| (PageNo(number * 2), page(number)));
    volume.write_scattered(scattered.take(100).collect()).unwrap();
    volume.write(PageNo(7), vec![page(700)]).unwrap();
    std::fs::create_dir(&left).unwrap();
    for name in ["VOLUME.toml", "data.tantalum"] {
        std::fs::copy(open.join(name), left.join(name)).unwrap();
    }
    let held = volume.read(PageNo(0), PAGES as usize).unwrap();
    (left, held)
}

/// All content of a folder.
fn everything_in(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
}

#[test]
fn readers_go_side_by_side_and_writers_are_locked_out() {
    let folder = tempfile::tempdir().unwrap();
    let (path, held) = killed(folder.path());
    let before = everything_in(&path);
    let writer = || Volume::open(&path).map(|_| ());
    {
        let thread = OpenOptions { placement: Placement::Thread, ..OpenOptions::READ_ONLY };
        let volumes =
            [Volume::open_read_only(&path).unwrap(), Volume::open_with(&path, thread).unwrap()];
        for volume in &volumes {
            assert!(volume.is_read_only());
            assert!(volume.read(PageNo(0), PAGES as usize).unwrap() == held);
            for refused in [
                volume.write(PageNo(3), vec![page(9)]),
                volume.write_at(3, b"bytes"),
                volume.write_scattered(vec![(PageNo(3), page(9))]),
                volume.trim(PageRange::new(PageNo(3), 1)),
                volume.share(vec![(PageNo(3), PageNo(9))]),
                volume.begin().map(|_| ()),
            ] {
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnly);
            }
            volume.flush().unwrap();
        }
        assert_eq!(writer().unwrap_err().kind(), ErrorKind::Locked);
    }
    assert!(everything_in(&path) == before, "something changed");
    let open = Volume::open(&path).unwrap();
    let reader = Volume::open_read_only(&path).map(|_| ());
    assert_eq!(reader.unwrap_err().kind(), ErrorKind::Locked);
    assert_eq!(Volume::check(&path).unwrap_err().kind(), ErrorKind::Locked);
    drop(open);
    writer().unwrap();
}
