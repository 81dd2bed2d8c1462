//! The state of a database after wrong input, failures, a stop, and futures that are dropped.

use crate::worst_disk::WorstDisk;
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use tantalum_base::{
    DeviceLayer, Durability, Error, ErrorKind, PageDevice, PageNo, Result, Rng, Stamp, TxId,
};
use tantalum_hosts::double_write::{DoubleWrite, DoubleWriteOptions, Form, PageOptions};
use tantalum_hosts::records::Remembered;
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::{Tree, ValueStamp};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual, yield_now};

type Stamps = Remembered<Block<ValueStamp>>;
type Engine<D> = Rc<DoubleWrite<Virtual, D, ValueStamp, Stamps>>;

const ROWS: Tree = Tree(0);

fn options(form: Form) -> DoubleWriteOptions {
    let pages = PageOptions {
        form,
        database_pages: 200,
        device_pages_per_page: 2,
        pool_pages: 64,
        batch_pages: 8,
        metadata_per_page: 0.0,
        metadata_pages: 0,
    };
    DoubleWriteOptions { pages, log_pages: 256, trees: 2 }
}

fn disk(durability: Durability) -> (Rc<WorstDisk<Stamp>>, Rc<Stamps>) {
    (WorstDisk::new(durability, 3_000), Rc::new(Stamps::default()))
}

fn key(number: u64) -> Vec<u8> {
    format!("row {number:06}").into_bytes()
}

fn value(count: u64) -> ValueStamp {
    ValueStamp { bytes: 900, count }
}

fn run<F: Future<Output = ()> + 'static>(seed: u64, test: impl FnOnce(Virtual) -> F) {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let ran = runtime.run(test(runtime.clone()));
    runtime.drop_tasks();
    ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"));
}

async fn put<D: PageDevice<Page = Stamp>>(
    engine: &Engine<D>,
    number: u64,
    value: ValueStamp,
) -> Result<()> {
    let mut transaction = engine.begin();
    transaction.put(ROWS, &key(number), value).await?;
    transaction.commit().await
}

#[test]
fn no_key_tree_or_size_is_too_large_to_be_refused() {
    run(1, |rt| async move {
        let (disk, codec) = disk(Durability::OnAck);
        let mut huge = options(Form::On);
        // Homes that cannot be counted, and homes after which no page can follow.
        for pages in [u64::MAX / 2 + 2, u64::MAX / 2] {
            huge.pages.database_pages = pages;
            let refused = DoubleWrite::create(&rt, &disk, &codec, huge).await.err().unwrap();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        }
        let engine = DoubleWrite::create(&rt, &disk, &codec, options(Form::On)).await.unwrap();
        let mut transaction = engine.begin();
        let refused = transaction.scan(Tree(u32::MAX), &[], None, 1).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        let refused = transaction.get_for_update(ROWS, &[]).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        let refused = transaction.get_for_update(ROWS, &[7; 251]).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooLarge);
        assert_eq!(transaction.get_for_update(ROWS, &[7; 250]).await.unwrap(), None);
    });
}

#[test]
fn a_commit_leaves_a_frame_to_those_who_read_meanwhile() {
    for seed in 0..5 {
        run(seed, move |rt| async move {
            let (disk, codec) = disk(Durability::OnAck);
            // One row fills a quarter of a page, and the next row goes into another page.
            let mut small = options(Form::Off);
            (small.pages.pool_pages, small.log_pages) = (32, 1_000);
            let engine = DoubleWrite::create(&rt, &disk, &codec, small).await.unwrap();
            for number in 0..400 {
                put(&engine, number, value(number)).await.unwrap();
            }
            let done = Rc::new(Cell::new(false));
            let reader = |first: u64| {
                let (engine, done) = (Rc::clone(&engine), Rc::clone(&done));
                rt.spawn("reader", async move {
                    let mut number = first;
                    while !done.get() {
                        number = (number + 37) % 400;
                        let found = engine.get(ROWS, &key(number)).await;
                        assert!(found.unwrap().is_some(), "row {number}");
                        yield_now().await;
                    }
                })
            };
            let readers: Vec<_> = (0..60).map(reader).collect();
            let (mut committed, mut refused) = (0, 0);
            for pages in 20..60 {
                let mut transaction = engine.begin();
                for number in 0..pages {
                    transaction.put(ROWS, &key(number * 6), value(pages)).await.unwrap();
                }
                match transaction.commit().await {
                    Ok(()) => committed += 1,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
                        refused += 1;
                    }
                }
            }
            done.set(true);
            for reader in readers {
                reader.await;
            }
            assert!(committed > 10 && refused > 10, "{committed} and {refused}");
        });
    }
}

async fn headers(disk: &WorstDisk<Stamp>) -> Vec<Stamp> {
    let mut headers = vec![Stamp::default(); 2];
    disk.read(PageNo(0), &mut headers, None).await.unwrap();
    headers
}

#[test]
fn no_checkpoint_is_written_after_a_stop() {
    for seed in 0..20 {
        run(seed, move |rt| async move {
            let (disk, codec) = disk(Durability::OnAck);
            let engine = DoubleWrite::create(&rt, &disk, &codec, options(Form::On)).await.unwrap();
            for number in 0..20 {
                put(&engine, number, value(number)).await.unwrap();
            }
            let before = headers(&disk).await;
            // A stop arrives during a checkpoint, which has pages to write before its header.
            let checkpoint = {
                let engine = Rc::clone(&engine);
                rt.spawn("checkpoint", async move { engine.checkpoint().await })
            };
            for _ in 0..4 {
                yield_now().await;
            }
            engine.stop().await;
            assert_eq!(checkpoint.await.unwrap_err().kind(), ErrorKind::Closed);
            // Later calls do not access the device either.
            disk.fail_after(1);
            assert_eq!(engine.checkpoint().await.unwrap_err().kind(), ErrorKind::Closed);
            assert_eq!(engine.close().await.unwrap_err().kind(), ErrorKind::Closed);
            assert!(!disk.has_failed(), "something was asked of the device");
            assert_eq!(headers(&disk).await, before);
        });
    }
}

#[test]
fn nothing_is_brought_home_after_the_log_failed() {
    run(1, |rt| async move {
        let (disk, codec) = disk(Durability::OnAck);
        let engine = DoubleWrite::create(&rt, &disk, &codec, options(Form::On)).await.unwrap();
        // Several batches of pages, of which all except the last could be written.
        for number in 0..100 {
            put(&engine, number, value(1)).await.unwrap();
        }
        let before = headers(&disk).await;
        disk.fail_after(1);
        assert_eq!(put(&engine, 100, value(1)).await.unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(engine.checkpoint().await.unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(engine.close().await.unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(engine.statistics().pages.batches, 0);
        assert_eq!(headers(&disk).await, before);
    });
}

/// First page of the homes, after headers, log and area.
const HOMES: PageNo = PageNo(2 + 256 + 8 * 2);

/// A disk on which, once requested, one write of a home fails at once and the others take long.
struct Uneven {
    disk: Rc<WorstDisk<Stamp>>,
    runtime: Virtual,
    /// Whether this is requested, and whether a write has failed.
    uneven: Cell<bool>,
    failed: Cell<bool>,
}

impl DeviceLayer for Uneven {
    type Inner = WorstDisk<Stamp>;

    fn inner(&self) -> &Self::Inner {
        &self.disk
    }

    async fn write(&self, first: PageNo, pages: &[Stamp], tx: Option<TxId>) -> Result<()> {
        if self.uneven.get() && first >= HOMES {
            if !self.failed.replace(true) {
                return Err(Error::new(ErrorKind::Io, "this write failed"));
            }
            self.runtime.sleep(1_000_000).await;
        }
        self.disk.write(first, pages, tx).await
    }
}

#[test]
fn no_write_of_a_batch_that_failed_goes_on_behind_it() {
    for (seed, form) in [(1, Form::On), (2, Form::Off)] {
        run(seed, move |rt| async move {
            let (disk, codec) = disk(Durability::OnAck);
            let (uneven, failed) = (Cell::new(false), Cell::new(false));
            let disk = Rc::new(Uneven { disk, runtime: rt.clone(), uneven, failed });
            let engine = DoubleWrite::create(&rt, &disk, &codec, options(form)).await.unwrap();
            for number in 0..30 {
                put(&engine, number, value(1)).await.unwrap();
            }
            disk.uneven.set(true);
            assert_eq!(engine.checkpoint().await.unwrap_err().kind(), ErrorKind::Io);
            engine.stop().await;
            disk.uneven.set(false);
            let engine = DoubleWrite::open(&rt, &disk, &codec, options(form)).await.unwrap().0;
            for number in 0..30 {
                put(&engine, number, value(2)).await.unwrap();
            }
            engine.close().await.unwrap();
            rt.sleep(10_000_000).await;
            let engine = DoubleWrite::open(&rt, &disk, &codec, options(form)).await.unwrap().0;
            let rows = engine.scan(ROWS, &[], None, usize::MAX).await.unwrap();
            assert!(rows.len() == 30 && rows.iter().all(|(_, value)| value.count == 2), "{rows:?}");
        });
    }
}

/// Polls `future` at most `polls` times, then drops it.
async fn give_up_after<F: Future>(polls: u64, future: F) {
    let (mut future, mut left) = (pin!(future), polls);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Pending if left > 0 => {
            left -= 1;
            Poll::Pending
        }
        _ => Poll::Ready(()),
    })
    .await;
}

/// The power is cut soon after a checkpoint was dropped midway, while another one writes pages.
#[test]
fn a_checkpoint_that_is_given_up_leaves_no_batch_half_done() {
    for seed in 0..1_500 {
        let disk = WorstDisk::<Stamp>::new(Durability::Volatile, 500);
        let codec = Rc::new(Stamps::default());
        let mut options = options(Form::On);
        (options.pages.batch_pages, options.pages.database_pages) = (2, 100);
        let mut rng = Rng::new(seed);
        let (polls, left) = (rng.below(30), 1 + rng.below(12));
        let (cut, remembered) = (Rc::clone(&disk), Rc::clone(&codec));
        run(seed, move |rt| async move {
            let engine = DoubleWrite::create(&rt, &cut, &remembered, options).await.unwrap();
            for number in 0..40 {
                put(&engine, number, value(1)).await.unwrap();
            }
            give_up_after(polls, engine.checkpoint()).await;
            cut.cut_after(left);
            drop(engine.checkpoint().await);
        });
        disk.power_on(&mut rng);
        run(seed, move |rt| async move {
            let opened = DoubleWrite::open(&rt, &disk, &codec, options).await;
            let (engine, _) = opened.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let rows = engine.scan(ROWS, &[], None, usize::MAX).await.unwrap();
            assert_eq!(rows.len(), 40, "seed {seed}");
        });
    }
}
