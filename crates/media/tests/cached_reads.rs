//! Reads through the page cache beside direct writes: they return the last write, and what they bring stays.
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use tantalum_base::Rng;
use tantalum_media::BlockStore;
use tantalum_media::block_store::{BLOCK_BYTES, FileStore, FileStoreOptions};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{Live, Runtime};
use tantalum_testing::resident::resident_bytes;

const BYTES: u64 = 4 << 20;
const BLOCKS: u64 = BYTES / BLOCK_BYTES;

fn store(live: &Live, path: &Path, cached_reads: bool) -> Option<FileStore> {
    let options = FileStoreOptions { cached_reads, ..FileStoreOptions::default() };
    let store = FileStore::create(live, path, BYTES, options).unwrap();
    // tmpfs, for instance.
    tantalum_testing::found(store.is_direct().then_some(store), "direct I/O")
}

fn folder() -> tempfile::TempDir {
    // Not in memory, as the folder for temporary files may be.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

async fn write(store: &FileStore, first: u64, blocks: u64, number: u64) {
    let mut buf = store.buffer((blocks * BLOCK_BYTES) as usize);
    let words = buf.chunks_exact_mut(8).enumerate();
    words.for_each(|(at, word)| {
        let block = first + (at as u64 * 8) / BLOCK_BYTES;
        word.copy_from_slice(&(number << 16 | block).to_le_bytes());
    });
    let buf = store.write(first * BLOCK_BYTES, buf, true).await.unwrap();
    store.recycle(buf);
}

/// The number of the write that each of the blocks has, which must be whole.
async fn numbers(store: &FileStore, first: u64, blocks: u64) -> Vec<u64> {
    let buf = store.buffer((blocks * BLOCK_BYTES) as usize);
    let buf = store.read(first * BLOCK_BYTES, buf).await.unwrap();
    let read = buf.chunks_exact(BLOCK_BYTES as usize).zip(first..).map(|(content, block)| {
        let word = u64::from_le_bytes(content[..8].try_into().unwrap());
        assert!(content.chunks_exact(8).all(|other| other == &content[..8]), "block {block}");
        assert!(word == 0 || word & 0xffff == block, "block {block} has that of another");
        word >> 16
    });
    let read = read.collect();
    store.recycle(buf);
    read
}

/// Two writers rewrite blocks while three readers read runs of them, which the system reads ahead of. A read that begins
/// after a write has ended returns that write or a later one.
#[test]
fn a_read_returns_the_last_write_that_had_ended() {
    let (folder, live) = (folder(), Live::new(LiveOptions::default()).unwrap());
    let Some(store) = store(&live, &folder.path().join("store"), true) else { return };
    let written: Rc<Vec<Cell<u64>>> = Rc::new((0..BLOCKS).map(|_| Cell::new(0)).collect());
    let runtime = live.clone();
    live.run(async move {
        let writers = (0..2).map(|writer| {
            let (store, written) = (store.clone(), Rc::clone(&written));
            runtime.spawn("writer", async move {
                let mut rng = Rng::split(writer, "writer");
                for number in 1..1500 {
                    // Each writer has a half of its own, so that the order of two writes of a block is known.
                    let first = writer * BLOCKS / 2 + rng.below(BLOCKS / 2 - 16);
                    let blocks = 1 + rng.below(16);
                    write(&store, first, blocks, number).await;
                    (first..first + blocks).for_each(|block| written[block as usize].set(number));
                }
            })
        });
        let readers = (0..3).map(|reader| {
            let (store, written) = (store.clone(), Rc::clone(&written));
            runtime.spawn("reader", async move {
                let mut rng = Rng::split(reader, "reader");
                for _ in 0..1500 {
                    let first = rng.below(BLOCKS - 64);
                    let blocks = 1 + rng.below(64);
                    let before: Vec<u64> = (first..first + blocks)
                        .map(|block| written[block as usize].get())
                        .collect();
                    let read = numbers(&store, first, blocks).await;
                    for (at, (read, before)) in read.iter().zip(before).enumerate() {
                        assert!(*read >= before, "block {}: {read}, {before}", first + at as u64);
                    }
                }
            })
        });
        for task in writers.chain(readers).collect::<Vec<_>>() {
            task.await;
        }
    });
}

#[test]
fn what_is_read_stays_in_the_systems_memory_and_what_is_written_does_not() {
    let (folder, live) = (folder(), Live::new(LiveOptions::default()).unwrap());
    for cached_reads in [false, true] {
        let path = folder.path().join(format!("store-{cached_reads}"));
        let Some(store) = store(&live, &path, cached_reads) else { return };
        let handle = store.clone();
        live.run(async move { write(&handle, 0, 256, 1).await });
        let Some(before) = resident_bytes(&path) else { return };
        assert_eq!(before, 0);
        live.run(async move { assert_eq!(numbers(&store, 0, 256).await, [1; 256]) });
        let after = resident_bytes(&path).unwrap();
        assert!((after >= 256 * BLOCK_BYTES) == cached_reads, "{cached_reads}: {after} bytes");
    }
}
