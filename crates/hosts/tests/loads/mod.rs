//! Loads that every engine with rows must pass.
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use tantalum_base::{Durability, ErrorKind, Result, Rng, Stamp};
use tantalum_hosts::database::{
    Database, DatabaseOptions, EngineStatistics, PageOptions, Transaction, Way,
};
use tantalum_hosts::records::{ByteCodec, Remembered};
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::{Key, Tree, ValueStamp};
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};
use tantalum_volume::{OpenOptions, VolumeConfig, config, create_flash, open_flash};

use crate::worst_disk::WorstDisk;

pub type Stamps = Remembered<Block<ValueStamp>>;
pub type Engine<W> = Rc<Database<Virtual, WorstDisk<Stamp>, ValueStamp, Stamps, W>>;

pub const ROWS: Tree = Tree(0);
pub const OTHERS: Tree = Tree(1);

pub fn options<W: Way>(form: W, device_pages_per_page: u32) -> DatabaseOptions<W> {
    let pages = PageOptions {
        form,
        database_pages: 2_000 / u64::from(device_pages_per_page),
        device_pages_per_page,
        pool_pages: 64,
        batch_pages: 8,
        metadata_per_page: 0.0,
        metadata_pages: 0,
    };
    let log_pages = match (form.has_log(), form.logs_whole_pages()) {
        (false, _) => 0,
        (true, false) => 256,
        (true, true) => 2_048,
    };
    DatabaseOptions { pages, log_pages, trees: 2 }
}

pub fn disk() -> (Rc<WorstDisk<Stamp>>, Rc<Stamps>) {
    let disk = WorstDisk::with_transactions_of(200, Durability::OnAck, 5_000);
    (disk, Rc::new(Stamps::default()))
}

pub async fn created<W: Way>(rt: &Virtual, options: DatabaseOptions<W>) -> Engine<W> {
    let (disk, codec) = disk();
    Database::create(rt, &disk, &codec, options).await.unwrap()
}

pub fn key(number: u64) -> Vec<u8> {
    format!("row {number:06}").into_bytes()
}

pub fn value(count: u64, bytes: u32) -> ValueStamp {
    ValueStamp { bytes, count }
}

pub fn run<F: Future<Output = ()> + 'static>(seed: u64, test: impl FnOnce(Virtual) -> F) {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let ran = runtime.run(test(runtime.clone()));
    runtime.drop_tasks();
    ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"));
}

pub async fn put<W: Way>(
    engine: &Engine<W>,
    tree: Tree,
    number: u64,
    value: ValueStamp,
) -> Result<()> {
    let mut transaction = engine.begin();
    transaction.put(tree, &key(number), value).await?;
    transaction.commit().await
}

/// Rows are inserted, changed and deleted, until all are gone; in pages of each size, in several levels of them.
pub fn trees_are_as_a_map_is<W: Way>(form: W) {
    for device_pages in [1, 2, 4] {
        run(u64::from(device_pages), move |rt| async move {
            let (disk, codec) = disk();
            let options = options(form, device_pages);
            let engine = Database::create(&rt, &disk, &codec, options).await.unwrap();
            let mut model = BTreeMap::<Key, ValueStamp>::new();
            let rng = &mut Rng::new(7);
            // Long keys give many levels.
            let long = |number: u64| [key(number), vec![b'.'; 200]].concat();
            for round in 0..1_200 {
                let mut transaction = engine.begin();
                for _ in 0..10 {
                    let key = long(rng.below(3_000));
                    if rng.chance(if round < 500 { 0.8 } else { 0.2 }) {
                        let value = value(rng.next_u64(), rng.below(700) as u32);
                        transaction.put(ROWS, &key, value).await.unwrap();
                        model.insert(key.into(), value);
                    } else {
                        transaction.delete(ROWS, &key).await.unwrap();
                        model.remove(&key[..]);
                    }
                }
                transaction.commit().await.unwrap();
                let asked = long(rng.below(3_000));
                let found = engine.get(ROWS, &asked).await.unwrap();
                assert_eq!(found, model.get(&asked[..]).copied());
            }
            let all: Vec<_> = model.iter().map(|(key, value)| (key.clone(), *value)).collect();
            assert!(all.len() > 300, "{} rows", all.len());
            assert_eq!(engine.scan(ROWS, &[], None, usize::MAX).await.unwrap(), all);
            assert_eq!(
                engine.scan(ROWS, &all[7].0, Some(&all[99].0), 50).await.unwrap(),
                all[7..57]
            );
            engine.close().await.unwrap();
            let (engine, report) = Database::open(&rt, &disk, &codec, options).await.unwrap();
            assert_eq!(report.transactions, 0, "it was closed");
            assert_eq!(engine.scan(ROWS, &[], None, usize::MAX).await.unwrap(), all);
            for part in all.chunks(10) {
                let mut transaction = engine.begin();
                for (key, _) in part {
                    transaction.delete(ROWS, key).await.unwrap();
                }
                transaction.commit().await.unwrap();
            }
            assert_eq!(engine.scan(ROWS, &[], None, usize::MAX).await.unwrap(), []);
            let free = engine.free_pages().await.unwrap();
            assert_eq!(free, options.pages.database_pages - 3, "all but two roots and the list");
        });
    }
}

/// Committed rows are there when a process ends without a close.
pub fn a_process_that_ends_without_a_close<W: Way>(form: W) {
    run(2, move |rt| async move {
        let (disk, codec) = disk();
        let options = options(form, 2);
        let engine = Database::create(&rt, &disk, &codec, options).await.unwrap();
        for number in 0..500 {
            put(&engine, ROWS, number, value(number, 300)).await.unwrap();
        }
        engine.stop().await;
        assert_eq!(put(&engine, ROWS, 1, value(1, 1)).await.unwrap_err().kind(), ErrorKind::Closed);
        let (engine, report) = Database::open(&rt, &disk, &codec, options).await.unwrap();
        let repeats = report.transactions > 50 && report.pages_changed > 0;
        assert_eq!(repeats, form.has_log(), "{report:?}");
        let rows = engine.scan(ROWS, &[], None, usize::MAX).await.unwrap();
        assert_eq!(rows.len(), 500, "{form:?}");
        assert!(rows.iter().zip(0..).all(|((_, value), number)| value.count == number));
    });
}

/// This many clients that commit at the same time, four times each; returns the counters.
pub fn many_clients<W: Way>(form: W, count: u64) -> EngineStatistics {
    let counts = Rc::new(Cell::default());
    let told = Rc::clone(&counts);
    run(3, |rt| async move {
        let engine = created(&rt, options(form, 1)).await;
        let clients: Vec<_> = (0..count)
            .map(|client| {
                let engine = Rc::clone(&engine);
                rt.spawn("client", async move {
                    for round in 0..4 {
                        put(&engine, ROWS, client, value(round, 100)).await.unwrap();
                        let found = engine.get(ROWS, &key(client)).await.unwrap();
                        assert_eq!(found, Some(value(round, 100)));
                    }
                })
            })
            .collect();
        for client in clients {
            client.await;
        }
        assert_eq!(engine.statistics().commits, 4 * count);
        told.set(engine.statistics());
    });
    counts.get()
}

/// Each client reads a row, increments it and writes it, beside others that do the same with the same rows.
pub fn what_clients_count_together<W: Way>(form: W) {
    run(4, |rt| async move {
        let engine = created(&rt, options(form, 1)).await;
        let clients: Vec<_> = (0..20)
            .map(|client| {
                let (engine, mut rng) = (Rc::clone(&engine), Rng::new(client));
                rt.spawn("client", async move {
                    let mut conflicts = 0;
                    for _ in 0..50 {
                        let rows = [rng.below(5), rng.below(5)];
                        let mut transaction = engine.begin();
                        while let Err(error) = count_up(&mut transaction, rows).await {
                            assert_eq!(error.kind(), ErrorKind::Conflict);
                            conflicts += 1;
                            transaction.start_again().await;
                        }
                        transaction.commit().await.unwrap();
                    }
                    conflicts
                })
            })
            .collect();
        let mut conflicts = 0;
        for client in clients {
            conflicts += client.await;
        }
        assert_eq!(engine.statistics().conflicts, conflicts);
        // A refused transaction tries again once the row is free, and not before.
        assert!((1..20 * 50).contains(&conflicts), "{conflicts}");
        let rows = engine.scan(ROWS, &[], None, usize::MAX).await.unwrap();
        assert_eq!(rows.iter().map(|(_, value)| value.count).sum::<u64>(), 2 * 20 * 50);
    });
}

async fn count_up<W: Way>(
    transaction: &mut Transaction<Virtual, WorstDisk<Stamp>, ValueStamp, Stamps, W>,
    rows: [u64; 2],
) -> Result<()> {
    for row in rows {
        let count = transaction.get_for_update(ROWS, &key(row)).await?.map_or(0, |row| row.count);
        transaction.put(ROWS, &key(row), value(count + 1, 8)).await?;
    }
    Ok(())
}

/// The engine on a real volume, over its real bytes: committed rows are there when it is opened again without a close.
pub fn a_volume_that_is_opened_again<W: Way>(form: W) {
    run(9, move |rt| async move {
        let config = VolumeConfig::parse(&config::template("32MiB"), Path::new("v.toml"));
        let (config, memory) = (config.unwrap(), MemoryStore::new(128 << 20));
        create_flash(memory.clone(), &config, 1).await.unwrap();
        let codec = Rc::new(ByteCodec::<Block<Rc<[u8]>>>::default());
        let bytes = |number: u64| -> Rc<[u8]> { vec![number as u8; 2 * number as usize].into() };
        for life in 0..3 {
            let opened = open_flash(&rt, memory.clone(), &config, OpenOptions::default()).await;
            let volume = opened.unwrap().0;
            let options = options(form, 4);
            let engine = match life {
                0 => Database::create(&rt, &volume, &codec, options).await.unwrap(),
                _ => Database::open(&rt, &volume, &codec, options).await.unwrap().0,
            };
            for number in 0..300 * life {
                let found = engine.get(ROWS, &key(number)).await.unwrap();
                assert_eq!(found, Some(bytes(number + life - 1)), "{form:?}, life {life}");
            }
            for first in (0..300 * (life + 1)).step_by(10) {
                let mut transaction = engine.begin();
                for number in first..first + 10 {
                    transaction.put(ROWS, &key(number), bytes(number + life)).await.unwrap();
                }
                transaction.commit().await.unwrap();
            }
            engine.stop().await;
        }
    });
}
