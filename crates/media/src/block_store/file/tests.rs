use super::*;
use std::io::ErrorKind::StorageFull;
use std::os::unix::fs::MetadataExt;
use tantalum_runtime::live::LiveOptions;

fn live() -> Live {
    Live::new(LiveOptions::default()).unwrap()
}

#[test]
fn what_was_written_is_read_and_the_lock_holds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let live = live();
    let store = FileStore::create(&live, &path, 1 << 20, FileStoreOptions::default()).unwrap();
    assert_eq!(store.bytes(), 1 << 20);
    let second = FileStore::open(&live, &path, FileStoreOptions::default());
    let error = second.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains("is open in this process already"), "{error}");
    let handle = store.clone();
    live.run(async move {
        let mut buf = handle.buffer(8192);
        buf.fill(7);
        let buf = handle.write(4096, buf, true).await.unwrap();
        handle.recycle(buf);
        handle.sync().await.unwrap();
        assert!(handle.is_written(4096, 8192) && !handle.is_written(4096, 16384));
        handle.prepare(0, 1 << 20).await.unwrap();
    });
    drop(store);
    let store = FileStore::open(&live, &path, FileStoreOptions::default()).unwrap();
    live.run(async move {
        // `prepare` may destroy content: here it wrote zeros over it.
        assert!(store.is_written(0, 1 << 20));
        let buf = store.read(4096, store.buffer(4096)).await.unwrap();
        assert!(buf.iter().all(|byte| *byte == 0));
    });
}

#[test]
fn a_range_is_prepared_whole_and_nothing_beside_it_is_changed() {
    const MIB: u64 = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let live = live();
    let store = FileStore::create(&live, &path, 8 * MIB, FileStoreOptions::default()).unwrap();
    // Pieces for several writes at a time, the last of them short.
    let (first, end) = (4096, 6 * MIB + 8192);
    live.run(async move {
        for at in [0, end] {
            let mut buf = store.buffer(4096);
            buf.fill(7);
            store.recycle(store.write(at, buf, false).await.unwrap());
        }
        assert!(!store.is_written(first, 4096));
        store.prepare(first, end - first).await.unwrap();
        assert!(store.is_written(0, end + 4096) && !store.is_written(end, 8192));
        for (at, byte) in [(0, 7), (first, 0), (end - 4096, 0), (end, 7)] {
            let buf = store.read(at, store.buffer(4096)).await.unwrap();
            assert!(buf.iter().all(|found| *found == byte), "{at}");
        }
    });
}

#[test]
fn readers_share_the_file_with_readers_alone_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let (live, writable) = (live(), FileStoreOptions::default());
    let read_only = FileStoreOptions { read_only: true, ..writable };
    let refused = |options| FileStore::open(&live, &path, options).err().map(|it| it.kind());
    let made = FileStore::create(&live, &path, 1 << 20, read_only).err().unwrap();
    assert_eq!((made.kind(), path.exists()), (ErrorKind::ReadOnly, false));

    let writer = FileStore::create(&live, &path, 1 << 20, writable).unwrap();
    assert_eq!(refused(read_only), Some(ErrorKind::Locked));
    drop(writer);
    let before = std::fs::metadata(&path).unwrap().modified().unwrap();
    let reader = FileStore::open(&live, &path, read_only).unwrap();
    let second = FileStore::open(&live, &path, read_only).unwrap();
    assert_eq!(refused(writable), Some(ErrorKind::Locked));
    live.run(async move {
        let buf = second.read(4096, second.buffer(4096)).await.unwrap();
        for refused in [
            second.write(4096, buf, true).await.map(|_| ()),
            second.sync().await,
            second.zero(4096, 4096).await,
        ] {
            assert!(refused.is_err_and(|error| error.kind() == ErrorKind::ReadOnly));
        }
    });
    drop(reader);
    assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), before);
    assert_eq!(refused(writable), None);
}

#[test]
fn what_is_zeroed_reads_as_zeros_and_a_sparse_file_gives_its_space_back() {
    for sparse in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let (live, options) = (live(), FileStoreOptions { sparse, ..Default::default() });
        let store = FileStore::create(&live, &path, 8 << 20, options).unwrap();
        let space = || std::fs::metadata(&path).unwrap().blocks() * 512;
        let handle = store.clone();
        let read = live.run(async move {
            let mut buf = handle.buffer(8 << 20);
            buf.fill(7);
            let buf = handle.write(0, buf, true).await.unwrap();
            handle.zero(4096, (4 << 20) - 8192).await.unwrap();
            // The fallback for a file system without a faster way.
            handle.write_zeros(4 << 20, (2 << 20) + 4096).await.unwrap();
            handle.sync().await.unwrap();
            handle.read(0, buf).await.unwrap()
        });
        for (block, content) in read.chunks(4096).enumerate() {
            let zeroed = (1..1023).contains(&block) || (1024..1537).contains(&block);
            let expected = if zeroed { 0 } else { 7 };
            assert!(content.iter().all(|byte| *byte == expected), "block {block}");
        }
        assert_eq!(space() < 8 << 20, sparse, "{} bytes allocated", space());
    }
}

#[test]
fn a_failure_says_once_what_failed_where() {
    let dir = tempfile::tempdir().unwrap();
    let (path, link) = (dir.path().join("store"), dir.path().join("link"));
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for (opened, begins) in [(&path, "reading 4096 bytes"), (&link, link.to_str().unwrap())] {
        let live = live();
        let store = FileStore::create(&live, opened, 8192, FileStoreOptions::default()).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        let handle = store.clone();
        let read = live.run(async move { handle.read(0, handle.buffer(4096)).await });
        let told = read.err().unwrap().to_string();
        assert!(told.starts_with(begins), "{told}");
        assert_eq!(told.matches("reading").count(), 1, "{told}");
        assert_eq!(told.matches("/store").count(), 1, "{told}");
    }
    let full = Error::io("writing 8 bytes at offset 0 of /x/store", StorageFull.into());
    let store = FileStore::create(&live(), &path, 8192, FileStoreOptions::default()).unwrap();
    let told = store.failed(full);
    assert_eq!(told.kind(), ErrorKind::OutOfSpace);
    assert_eq!(told.to_string().matches("writing").count(), 1, "{told}");
}

#[test]
fn a_full_disk_is_out_of_space_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let result = FileStore::create(&live(), &path, 1 << 50, FileStoreOptions::default());
    let kind = result.err().map(|error| error.kind());
    assert!(matches!(kind, Some(ErrorKind::OutOfSpace | ErrorKind::Io)), "{kind:?}");
    assert!(!path.exists());

    std::fs::write(&path, "as before").unwrap();
    let result = FileStore::create(&live(), &path, 1 << 50, FileStoreOptions::default());
    assert!(result.is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"as before");
}
