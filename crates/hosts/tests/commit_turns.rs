//! Commits whose pages are not in the pool.

use crate::loads::{ROWS, disk, key, options, run, value};
use crate::worst_disk::WorstDisk;
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{DeviceLayer, PageDevice, PageNo, Result, Rng, Stamp, TxId};
use tantalum_hosts::double_write::{DoubleWrite, Form};
use tantalum_runtime::{Runtime, Virtual};

const READ_NS: u64 = 1_000_000;
const CLIENTS: u64 = 320;

/// A disk with these times of a read and of a flush, however many are under way.
struct SlowDisk {
    runtime: Virtual,
    disk: Rc<WorstDisk<Stamp>>,
    read_ns: u64,
    flush_ns: u64,
}

impl DeviceLayer for SlowDisk {
    type Inner = WorstDisk<Stamp>;

    fn inner(&self) -> &WorstDisk<Stamp> {
        &self.disk
    }

    async fn read(&self, first: PageNo, out: &mut [Stamp], tx: Option<TxId>) -> Result<()> {
        self.runtime.sleep(self.read_ns).await;
        PageDevice::read(&*self.disk, first, out, tx).await
    }

    async fn flush(&self) -> Result<()> {
        self.runtime.sleep(self.flush_ns).await;
        PageDevice::flush(&*self.disk).await
    }
}

/// Each client changes a row in a page of its own, and there are five times as many of them as frames. A quarter of the frames are kept
/// by commits, so 16 of the 320 reads are under way together.
#[test]
fn commits_do_not_wait_for_the_reads_of_others() {
    run(3, |rt| async move {
        let ((disk, codec), options) = (disk(), options(Form::Off, 1));
        let disk = SlowDisk { runtime: rt.clone(), disk, read_ns: READ_NS, flush_ns: 0 };
        let disk = Rc::new(disk);
        let engine = DoubleWrite::create(&rt, &disk, &codec, options).await.unwrap();
        for number in 0..4 * CLIENTS {
            let mut transaction = engine.begin();
            transaction.put(ROWS, &key(number), value(number, 900)).await.unwrap();
            transaction.commit().await.unwrap();
        }
        let start_ns = rt.now_ns();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let engine = Rc::clone(&engine);
                rt.spawn("client", async move {
                    let mut transaction = engine.begin();
                    transaction.put(ROWS, &key(4 * client), value(client, 800)).await.unwrap();
                    transaction.commit().await.unwrap();
                })
            })
            .collect();
        for client in clients {
            client.await;
        }
        let reads = (rt.now_ns() - start_ns) / READ_NS;
        assert!(reads < CLIENTS / 8, "{reads} reads one after the other");
        for client in 0..CLIENTS {
            let found = engine.get(ROWS, &key(4 * client)).await.unwrap();
            assert_eq!(found, Some(value(client, 800)));
        }
    });
}

/// Commits change six rows here and there, and split pages as they add others. Readers let the policy evict the pages that commits keep
/// while these wait for a checkpoint. Were there only the frames of two batches beside the policy's, such pages would fill them up: with
/// those of half of the pool kept, a batch had 6 pages.
#[test]
fn batches_are_full_beside_the_pages_that_commits_keep() {
    const LOADED: u64 = 1_000;
    run(5, |rt| async move {
        let ((disk, codec), options) = (disk(), options(Form::On, 1));
        let disk = SlowDisk { runtime: rt.clone(), disk, read_ns: READ_NS, flush_ns: 20 * READ_NS };
        let disk = Rc::new(disk);
        let engine = DoubleWrite::create(&rt, &disk, &codec, options).await.unwrap();
        for number in 0..LOADED {
            let mut transaction = engine.begin();
            transaction.put(ROWS, &key(2 * number), value(number, 900)).await.unwrap();
            transaction.commit().await.unwrap();
        }
        let (before, has_ended) = (engine.pool_statistics(), Rc::new(Cell::new(false)));
        for reader in 0..64 {
            let (engine, has_ended) = (Rc::clone(&engine), Rc::clone(&has_ended));
            drop(rt.spawn("reader", async move {
                let mut rng = Rng::new(1_000 + reader);
                while !has_ended.get() {
                    engine.get(ROWS, &key(2 * rng.below(LOADED))).await.unwrap();
                }
            }));
        }
        let clients: Vec<_> = (0..64)
            .map(|client| {
                let engine = Rc::clone(&engine);
                rt.spawn("client", async move {
                    let mut rng = Rng::new(client);
                    for _ in 0..12 {
                        let mut transaction = engine.begin();
                        let mut numbers = [0; 6].map(|_| rng.below(LOADED / 64) * 64 + client);
                        numbers.sort_unstable();
                        for number in numbers {
                            let added = 2 * number + rng.below(2);
                            transaction.put(ROWS, &key(added), value(client, 800)).await.unwrap();
                        }
                        transaction.commit().await.unwrap();
                    }
                })
            })
            .collect();
        for client in clients {
            client.await;
        }
        has_ended.set(true);
        let after = engine.pool_statistics();
        let written = after.physical_writes - before.physical_writes;
        let batches = after.device_writes - before.device_writes;
        assert!(written > 7 * batches, "{written} pages in {batches} batches of up to 8");
    });
}
