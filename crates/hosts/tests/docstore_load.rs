//! The writes of each mode, compared with the paper's arithmetic; many clients; readers and compactions; refusals; bytes on a
//! volume.

use crate::worst_disk::WorstDisk;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{Durability, ErrorKind, PageDevice, PageNo, Rng, Stamp};
use tantalum_hosts::docstore::{Block, DocStore, DocStoreOptions, Mode, ValueStamp};
use tantalum_hosts::fault_points::Fault;
use tantalum_hosts::records::{ByteCodec, Remembered};
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};
use tantalum_volume::{OpenOptions, VolumeConfig, config, create_flash, open_flash};

type Stamps = Remembered<Block<ValueStamp>>;
type Store = Rc<DocStore<Virtual, WorstDisk<Stamp>, ValueStamp, Stamps>>;

const DOCUMENTS: u64 = 12_000;

fn options(mode: Mode, batch_updates: u32) -> DocStoreOptions {
    DocStoreOptions { batch_updates, compact_at: None, ..DocStoreOptions::new(mode) }
}

/// A record of 4 KiB with its key, as in YCSB: one page.
fn value(count: u64) -> ValueStamp {
    ValueStamp { bytes: 4_000, count }
}

fn key(number: u64) -> Vec<u8> {
    format!("user{number:020}").into_bytes()
}

/// A store of documents on a disk of `pages` pages.
async fn loaded(rt: &Virtual, options: DocStoreOptions, documents: u64, pages: u64) -> Store {
    loaded_on(rt, Durability::Volatile, options, (documents, pages)).await
}

async fn loaded_on(
    rt: &Virtual,
    durability: Durability,
    options: DocStoreOptions,
    (documents, pages): (u64, u64),
) -> Store {
    let (disk, codec) = (WorstDisk::new(durability, pages), Rc::new(Stamps::default()));
    let load = DocStoreOptions { batch_updates: 1_000, ..options };
    let store = DocStore::create(rt, &disk, &codec, load).await.unwrap();
    for number in 0..documents {
        store.set(&key(number), value(number)).await.unwrap();
    }
    store.close().await.unwrap();
    DocStore::open(rt, &disk, &codec, options).await.unwrap()
}

fn run<F: Future<Output = ()> + 'static>(seed: u64, test: impl FnOnce(Virtual) -> F) {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let ran = runtime.run(test(runtime.clone()));
    runtime.drop_tasks();
    ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"));
}

/// DuraSSD's paper, section 4.3.3: nodes and document are written "as a single unit", with one fsync. This needs a device that keeps the
/// order of writes.
#[test]
fn a_commit_is_flushed_once_where_the_order_of_writes_is_kept() {
    for (durability, flushes) in
        [(Durability::OnAck, 0), (Durability::OnFlush, 1), (Durability::Volatile, 2)]
    {
        run(1, move |rt| async move {
            let options = options(Mode::Original, 1);
            let store = loaded_on(&rt, durability, options, (1_000, 8_000)).await;
            let before = store.statistics().device;
            store.set(&key(1), value(1)).await.unwrap();
            let device = store.statistics().device.since(&before);
            assert_eq!(device.flushes, flushes, "{durability:?}");
        });
    }
}

/// couchstore appends a header at each commit.
#[test]
fn a_header_is_written_on_demand_even_if_nothing_changed() {
    for mode in Mode::ALL {
        run(1, move |rt| async move {
            let options = options(mode, 1_000);
            let store = loaded_on(&rt, Durability::OnFlush, options, (100, 8_000)).await;
            let before = store.statistics();
            store.commit().await.unwrap();
            assert_eq!(store.statistics().device, before.device, "nothing to commit");
            store.commit_header().await.unwrap();
            let after = store.statistics();
            let device = after.device.since(&before.device);
            let (flushes, shared) = if mode == Mode::Original { (1, 0) } else { (0, 1) };
            let counted = (device.pages_read, device.pages_written, device.flushes);
            assert_eq!((counted, device.pages_shared), ((0, 1, flushes), shared), "{mode:?}");
            assert_eq!(after.commits.header_pages - before.commits.header_pages, 1);
            assert_eq!(after.documents, 100);
            // With an update a commit writes as much as without the demand: by SHARE only the document.
            store.set(&key(7), value(8)).await.unwrap();
            store.commit_header().await.unwrap();
            let written = store.statistics().device.since(&after.device).pages_written;
            assert_eq!(
                written,
                if mode == Mode::Original { 1 + u64::from(after.depth) + 1 } else { 1 }
            );
            // The same for an update that changes nothing.
            let before = store.statistics().commits.header_pages;
            store.delete(&key(100)).await.unwrap();
            store.commit_header().await.unwrap();
            assert_eq!(store.statistics().commits.header_pages, before + 1, "{mode:?}");
            store.set(&key(7), value(7)).await.unwrap();
            assert_eq!(store.get(&key(7)).await.unwrap(), Some(value(7)));
        });
    }
}

/// The paper's arithmetic (section 5.3.2): with a tree of depth three an update writes its document and three nodes, and here
/// also a header; by SHARE only its document.
#[test]
fn an_update_writes_the_path_and_by_share_the_document_alone() {
    for mode in Mode::ALL {
        run(1, move |rt| async move {
            let store = loaded(&rt, options(mode, 1), DOCUMENTS, 70_000).await;
            let (before, rng) = (store.statistics(), &mut Rng::new(5));
            assert_eq!((before.depth, before.documents), (3, DOCUMENTS));
            for count in 0..100 {
                store.set(&key(rng.below(DOCUMENTS)), value(count)).await.unwrap();
            }
            let after = store.statistics();
            let device = after.device.since(&before.device);
            let (written, shared, flushes) = match mode {
                Mode::Original => (100 * (1 + 3 + 1), 0, 200),
                Mode::Share => (100, 100, 0),
            };
            assert_eq!((device.pages_written, device.pages_shared), (written, shared), "{mode:?}");
            assert_eq!((device.shares, device.flushes), (shared, flushes), "{mode:?}");
            assert_eq!(after.commits.document_pages, 100);
            assert_eq!(after.used_pages - before.used_pages, written - shared, "{mode:?}");
        });
    }
}

/// A larger batch shares nodes, so the difference between the modes is smaller.
#[test]
fn larger_batches_write_fewer_nodes() {
    let per_update = |batch: u32| {
        let written = Rc::new(std::cell::Cell::new(0));
        let told = Rc::clone(&written);
        run(1, move |rt| async move {
            let store = loaded(&rt, options(Mode::Original, batch), DOCUMENTS, 70_000).await;
            let (before, rng) = (store.statistics(), &mut Rng::new(5));
            for count in 0..512 {
                store.set(&key(rng.below(DOCUMENTS)), value(count)).await.unwrap();
            }
            told.set(store.statistics().device.since(&before.device).pages_written);
        });
        written.get() as f64 / 512.0
    };
    let pages = [1, 16, 256].map(per_update);
    assert!((pages[0] - 5.0).abs() < 0.01, "{pages:?}");
    assert!(pages[0] > pages[1] + 1.0 && pages[1] > pages[2] + 0.5, "{pages:?}");
    assert!(pages[2] > 1.0, "{pages:?}");
}

#[test]
fn a_compaction_copies_documents_and_by_share_none() {
    for mode in Mode::ALL {
        run(1, move |rt| async move {
            let store = loaded(&rt, options(mode, 1), 1_000, 8_000).await;
            for number in 0..200 {
                store.delete(&key(number)).await.unwrap();
            }
            let before = store.statistics();
            assert!(before.stale_ratio() > 0.1, "{before:?}");
            store.compact().await.unwrap();
            let after = store.statistics();
            let compaction = after.compaction;
            // 800 documents; their nodes and a header, three states of the directory.
            let others = compaction.pages_written - if mode == Mode::Original { 800 } else { 0 };
            assert!((10..40).contains(&others), "{mode:?}: {compaction:?}");
            assert_eq!(compaction.pages_shared, if mode == Mode::Share { 800 } else { 0 });
            assert_eq!((after.documents, after.compactions), (800, 1));
            // Packed documents leave less than a page of each 64.
            assert!(after.stale_pages <= 800 / 64 + 1, "{after:?}");
            let all = store.scan(&[], None, usize::MAX).await.unwrap();
            let expected: Vec<_> = (200..1_000).map(|n| (key(n).into(), value(n))).collect();
            assert_eq!(all, expected);
        });
    }
}

/// A compaction that remaps documents without reading them keeps a damaged one; a compaction that reads them fails there.
#[test]
fn a_compaction_that_reads_documents_finds_a_damaged_one() {
    for reads in [false, true] {
        run(1, move |rt| async move {
            let (disk, codec) =
                (WorstDisk::new(Durability::OnAck, 2_000), Rc::new(Stamps::default()));
            let options =
                DocStoreOptions { compaction_reads: reads, ..options(Mode::Share, 1_000) };
            let store = DocStore::create(&rt, &disk, &codec, options).await.unwrap();
            for number in 0..300 {
                store.set(&key(number), value(number)).await.unwrap();
            }
            store.commit().await.unwrap();
            // The first document is after the directory and the header.
            disk.write(PageNo(3), &[Stamp::new(PageNo(3), u64::MAX)], None).await.unwrap();
            assert_eq!(store.get(&key(0)).await.unwrap_err().kind(), ErrorKind::Corrupt);
            let compacted = store.compact().await;
            assert_eq!(compacted.is_err(), reads, "{compacted:?}");
            if reads {
                assert_eq!(compacted.unwrap_err().kind(), ErrorKind::Corrupt);
                assert_eq!(store.statistics().compactions_failed, 1);
            }
            assert_eq!(store.get(&key(0)).await.unwrap_err().kind(), ErrorKind::Corrupt);
            assert_eq!(store.get(&key(7)).await.unwrap(), Some(value(7)));
        });
    }
}

/// Clients that wait for each of their updates share commits.
#[test]
fn a_thousand_clients_share_commits() {
    for mode in Mode::ALL {
        run(3, move |rt| async move {
            let automatic = DocStoreOptions { compact_at: Some(0.5), ..options(mode, 1) };
            let store = loaded(&rt, automatic, 2_000, 16_000).await;
            let clients: Vec<_> = (0..1_000)
                .map(|client| {
                    let store = Rc::clone(&store);
                    rt.spawn("client", async move {
                        for round in 0..8 {
                            let (key, value) = (key(2 * client), value(round << 20 | client));
                            store.set(&key, value).await.unwrap();
                            assert_eq!(store.get(&key).await.unwrap(), Some(value));
                        }
                    })
                })
                .collect();
            for client in clients {
                client.await;
            }
            let counts = store.statistics();
            assert_eq!(counts.commits.documents, 8_000);
            assert!(counts.commits.commits < 40, "{counts:?}");
            assert!(mode == Mode::Share || counts.compactions > 0, "{counts:?}");
            assert_eq!(counts.documents, 2_000);
        });
    }
}

/// Commits continue while a compaction copies, and the new file has their changes, insertions and deletions.
#[test]
fn commits_go_on_beside_a_compaction() {
    for mode in Mode::ALL {
        run(9, move |rt| async move {
            let store = loaded(&rt, options(mode, 1), 2_000, 30_000).await;
            let compacted = Rc::clone(&store);
            let compaction = rt.spawn("compaction", async move { compacted.compact().await });
            let (mut expected, rng) = (BTreeMap::new(), &mut Rng::new(2));
            expected.extend((0..2_000).map(|number| (key(number), value(number))));
            let mut beside = 0;
            for count in 10_000..10_400 {
                let key = key(rng.below(2_200));
                match rng.below(5) {
                    0 => {
                        store.delete(&key).await.unwrap();
                        expected.remove(&key);
                    }
                    drawn => {
                        // Now and then with another number of pages.
                        let bytes = if drawn == 1 { 9_000 } else { 4_000 };
                        let value = ValueStamp { bytes, count };
                        store.set(&key, value).await.unwrap();
                        expected.insert(key, value);
                    }
                }
                beside += u64::from(store.statistics().compactions == 0);
            }
            compaction.await.unwrap();
            let statistics = store.statistics();
            assert!(beside > 50, "{mode:?}: {beside} commits beside the compaction");
            assert!(statistics.caught_up >= beside / 2, "{mode:?}: {statistics:?}");
            assert_eq!((statistics.compactions, statistics.compactions_failed), (1, 0));
            let expected: Vec<_> =
                expected.into_iter().map(|(key, value)| (key.into(), value)).collect();
            assert_eq!(store.scan(&[], None, usize::MAX).await.unwrap(), expected, "{mode:?}");
            assert_eq!(statistics.documents, expected.len() as u64, "{mode:?}");
        });
    }
}

/// After a close the store does nothing to the device.
#[test]
fn a_closed_store_does_nothing_more() {
    for mode in Mode::ALL {
        run(10, move |rt| async move {
            let store = loaded(&rt, options(mode, 4), 300, 2_000).await;
            let compacted = Rc::clone(&store);
            let compaction = rt.spawn("compaction", async move { compacted.compact().await });
            while store.statistics().compaction.pages_read < 2 {
                tantalum_runtime::yield_now().await;
            }
            store.set(&key(7), value(8)).await.unwrap();
            store.close().await.unwrap();
            assert!(compaction.await.is_err());
            let (device, compaction) = (store.statistics().device, store.statistics().compaction);
            let again = store.compact().await.unwrap_err();
            let update = store.set(&key(1), value(1)).await.unwrap_err();
            assert_eq!((again.kind(), update.kind()), (ErrorKind::Closed, ErrorKind::Closed));
            assert_eq!(store.get(&key(7)).await.unwrap(), Some(value(8)));
            let after = store.statistics();
            assert_eq!(after.device.pages_written, device.pages_written);
            assert_eq!(after.compaction, compaction);
        });
    }
}

/// A scan that is slower than compactions still finds everything.
fn scan_beside_compactions() -> Option<String> {
    run(4, |rt| async move {
        // By SHARE, a compaction reads no documents and ends long before the scan.
        let store = loaded(&rt, options(Mode::Share, 1), 300, 2_000).await;
        let scanned = Rc::clone(&store);
        let scan = rt
            .spawn("scan", async move { scanned.scan(&[], None, usize::MAX).await.unwrap().len() });
        for _ in 0..3 {
            store.compact().await.unwrap();
        }
        assert_eq!(scan.await, 300);
    });
    None
}

#[test]
fn a_file_is_deleted_when_nobody_reads_it() {
    assert_noticed(Fault::NoWaitForReaders, scan_beside_compactions);
}

#[test]
fn a_compaction_that_is_stopped_leaves_the_store_as_it_was() {
    for mode in Mode::ALL {
        run(8, move |rt| async move {
            let store = loaded(&rt, options(mode, 1), 300, 2_000).await;
            let compacted = Rc::clone(&store);
            let compaction = rt.spawn("compaction", async move { compacted.compact().await });
            while store.statistics().compaction.pages_read < 2 {
                tantalum_runtime::yield_now().await;
            }
            store.stop_compaction();
            assert_eq!(compaction.await.unwrap_err().kind(), ErrorKind::Interrupted);
            assert_eq!(store.statistics().compactions_failed, 1);
            store.set(&key(7), value(8)).await.unwrap();
            store.compact().await.unwrap();
            assert_eq!(store.scan(&[], None, usize::MAX).await.unwrap().len(), 300);
            assert_eq!(store.get(&key(7)).await.unwrap(), Some(value(8)));
        });
    }
}

#[test]
fn a_full_store_refuses_documents_and_deletes_and_compacts() {
    for mode in Mode::ALL {
        run(5, move |rt| async move {
            let store = loaded(&rt, options(mode, 4), 0, 202).await;
            let mut documents = 0;
            let refused = loop {
                match store.set(&key(documents), value(documents)).await {
                    Ok(()) => documents += 1,
                    Err(error) => break error,
                }
            };
            assert_eq!(refused.kind(), ErrorKind::OutOfSpace, "{refused}");
            assert!(documents > 70, "{documents} documents in a file of 100 pages");
            for number in 0..documents / 2 {
                store.delete(&key(number)).await.unwrap();
            }
            store.commit().await.unwrap();
            store.compact().await.unwrap();
            store.set(&key(0), value(1)).await.unwrap();
            store.commit().await.unwrap();
            assert_eq!(store.statistics().documents, documents - documents / 2 + 1);
        });
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    run(6, |rt| async move {
        let (disk, codec) = (WorstDisk::new(Durability::OnAck, 300), Rc::new(Stamps::default()));
        let options = options(Mode::Original, 1);
        let nothing = DocStore::open(&rt, &disk, &codec, options).await;
        assert_eq!(nothing.err().unwrap().kind(), ErrorKind::Format);
        let store = DocStore::create(&rt, &disk, &codec, options).await.unwrap();
        let again = DocStore::create(&rt, &disk, &codec, options).await;
        assert_eq!(again.err().unwrap().kind(), ErrorKind::InvalidInput, "it holds a store");
        let share = DocStoreOptions { mode: Mode::Share, ..options };
        let other = DocStore::open(&rt, &disk, &codec, share).await;
        assert_eq!(other.err().unwrap().kind(), ErrorKind::InvalidInput, "another mode");
        let limits = tantalum_base::Limits { share_pairs_max: 0, ..disk.limits().clone() };
        assert_eq!(share.check(&limits).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(store.set(&[], value(1)).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        let long = store.set(&[7; 251], value(1)).await.unwrap_err();
        assert_eq!(long.kind(), ErrorKind::TooLarge);
        let large = ValueStamp { bytes: (20 << 20) + 1, count: 1 };
        assert_eq!(store.set(&key(1), large).await.unwrap_err().kind(), ErrorKind::TooLarge);
        store.delete(&key(1)).await.unwrap();
        assert_eq!(store.statistics().documents, 0);
    });
}

/// The engine on a real volume, over its real bytes: committed documents are there when the volume is opened again without a
/// close.
#[test]
fn documents_in_bytes_survive_a_volume_that_is_opened_again() {
    for mode in Mode::ALL {
        run(7, move |rt| async move {
            let config = VolumeConfig::parse(&config::template("32MiB"), Path::new("v.toml"));
            let (config, memory) = (config.unwrap(), MemoryStore::new(128 << 20));
            create_flash(memory.clone(), &config, 1).await.unwrap();
            let codec = Rc::new(ByteCodec::<Block<Rc<[u8]>>>::default());
            let bytes =
                |number: u64| -> Rc<[u8]> { vec![number as u8; 3 * number as usize].into() };
            for life in 0..3 {
                let opened = open_flash(&rt, memory.clone(), &config, OpenOptions::default()).await;
                let volume = opened.unwrap().0;
                let options = DocStoreOptions { compact_at: Some(0.3), ..options(mode, 8) };
                let store = match life {
                    0 => DocStore::create(&rt, &volume, &codec, options).await.unwrap(),
                    _ => DocStore::open(&rt, &volume, &codec, options).await.unwrap(),
                };
                for number in 0..400 * life {
                    let found = store.get(&key(number)).await.unwrap();
                    assert_eq!(found, Some(bytes(number + life - 1)), "{mode:?}, life {life}");
                }
                for number in 0..400 * (life + 1) {
                    store.set(&key(number), bytes(number + life)).await.unwrap();
                }
                store.close().await.unwrap();
            }
        });
    }
}
