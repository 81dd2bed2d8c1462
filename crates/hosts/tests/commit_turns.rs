//! Commits whose pages are not in the pool.

use crate::loads::{ROWS, disk, key, options, run, value};
use crate::worst_disk::WorstDisk;
use std::rc::Rc;
use tantalum_base::{DeviceLayer, PageNo, Result, Stamp, TxId};
use tantalum_hosts::double_write::{DoubleWrite, Form};
use tantalum_runtime::{Runtime, Virtual};

const READ_NS: u64 = 1_000_000;
const CLIENTS: u64 = 320;

/// A disk on which only reads take time.
struct SlowReads(Virtual, Rc<WorstDisk<Stamp>>);

impl DeviceLayer for SlowReads {
    type Inner = WorstDisk<Stamp>;

    fn inner(&self) -> &WorstDisk<Stamp> {
        &self.1
    }

    async fn read(&self, first: PageNo, out: &mut [Stamp], tx: Option<TxId>) -> Result<()> {
        self.0.sleep(READ_NS).await;
        tantalum_base::PageDevice::read(&*self.1, first, out, tx).await
    }
}

/// Each client changes a row in a page of its own, and there are five times as many of them as frames. Half of the frames are kept by
/// commits, so about thirty of the 320 reads are under way together.
#[test]
fn commits_do_not_wait_for_the_reads_of_others() {
    run(3, |rt| async move {
        let ((disk, codec), options) = (disk(), options(Form::Off, 1));
        let disk = Rc::new(SlowReads(rt.clone(), disk));
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
