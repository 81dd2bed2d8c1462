//! The reads that file zones send to their store for many slots.
use std::cell::RefCell;
use tantalum_base::{Error, ErrorKind, PageBuf, PageNo, Payload, Result, SlotNo, Version, ZoneNo};
use tantalum_media::block_store::{IoBuf, MemoryStore, StoreLayer};
use tantalum_media::{
    AppendHeader, BlockStore, Body, FileZones, FileZonesOptions, SlotKind, Spare, ZoneMedia,
};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

const PAGE: u64 = 4096;

/// Records the reads, in blocks, and fails those that touch a bad block.
struct Watched {
    inner: MemoryStore,
    bad_block: Option<u64>,
    reads: RefCell<Vec<(u64, u64)>>,
}

impl StoreLayer for Watched {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    async fn read(&self, offset: u64, buf: IoBuf) -> Result<IoBuf> {
        let (first, count) = (offset / PAGE, buf.len() as u64 / PAGE);
        self.reads.borrow_mut().push((first, count));
        if self.bad_block.is_some_and(|bad| (first..first + count).contains(&bad)) {
            return Err(Error::new(ErrorKind::Io, "a bad block"));
        }
        self.inner.read(offset, buf).await
    }
}

fn content(number: u32) -> PageBuf {
    PageBuf::copy_from(&[number as u8; PAGE as usize])
}

/// Writes appends of three pages each to zone 0, whose slots hold their own numbers, then reads the `wanted` slots.
/// Returns the reads that reached the store, and the result.
fn read(bad_block: Option<u64>, wanted: &[u32]) -> (Vec<(u64, u64)>, Result<()>) {
    let runtime = Virtual::new(Schedule::Fifo);
    let wanted = wanted.to_vec();
    let run = runtime.run(async move {
        let inner = MemoryStore::new(600 * PAGE);
        let store = Watched { inner, bad_block, reads: RefCell::default() };
        let options =
            FileZonesOptions { volume_id: 1, first_byte: 0, zones: 1, slots_per_zone: 600 };
        let zones = FileZones::new(store, options).unwrap();
        zones.reset(ZoneNo(0)).await.unwrap();
        for append in 0..150 {
            let slots = append * 4 + 1..append * 4 + 4;
            let bodies: Vec<_> = slots.clone().map(|slot| Body::Data(content(slot))).collect();
            let spares: Vec<_> = slots
                .map(|slot| Spare {
                    kind: SlotKind::Data,
                    page: PageNo(u64::from(slot)),
                    version: Version(u64::from(slot)),
                    checksum: content(slot).checksum(),
                })
                .collect();
            let header = AppendHeader { epoch: 1, batch_len: 3, ..AppendHeader::default() };
            zones.append(ZoneNo(0), &header, &spares, &bodies, true).await.unwrap();
        }
        let slots: Vec<_> = wanted.iter().map(|&slot| SlotNo(slot)).collect();
        let mut out = vec![PageBuf::zero(); slots.len()];
        let result = zones.read(&slots, &mut out).await;
        if result.is_ok() {
            let expected: Vec<_> = wanted.iter().map(|&slot| content(slot)).collect();
            assert!(out == expected, "{wanted:?}");
        }
        (zones.store().reads.take(), result)
    });
    run.unwrap()
}

#[test]
fn appends_side_by_side_are_read_together_with_the_headers_between() {
    let all: Vec<u32> = (1..200).filter(|slot| slot % 4 != 0).collect();
    assert_eq!(read(None, &all).0, [(1, 199)]);
    // A distant or earlier slot is a separate operation.
    assert_eq!(read(None, &[1, 2, 7, 13, 11, 3]).0, [(1, 7), (13, 1), (11, 1), (3, 1)]);
    assert_eq!(read(None, &[5, 5]).0, [(5, 1), (5, 1)]);
    // The size of one operation is limited.
    let all: Vec<u32> = (1..600).filter(|slot| slot % 4 != 0).collect();
    assert_eq!(read(None, &all).0, [(1, 255), (257, 255), (513, 87)]);
}

#[test]
fn a_bad_block_that_nobody_asked_for_fails_no_read() {
    let (reads, result) = read(Some(4), &[1, 2, 3, 5, 6]);
    result.unwrap();
    assert_eq!(reads, [(1, 6), (1, 3), (5, 2)]);
    assert_eq!(read(Some(5), &[1, 2, 3, 5, 6]).1.unwrap_err().kind(), ErrorKind::Io);
}
