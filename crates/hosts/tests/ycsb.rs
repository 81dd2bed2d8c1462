//! YCSB's workloads over a document store: their operations, that a run repeats, and that a wrong read is
//! noticed.

use crate::worst_disk::WorstDisk;
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Durability, ErrorKind, PageBuf, Payload, Result, Rng, Stamp};
use tantalum_hosts::docstore::{
    Block, DocStore, DocStoreOptions, DocStoreStatistics, Mode, ValueStamp,
};
use tantalum_hosts::double_write::{DoubleWrite, DoubleWriteOptions, Form, PageOptions};
use tantalum_hosts::records::{ByteCodec, Codec, Remembered};
use tantalum_hosts::redo;
use tantalum_hosts::values::{Key, Tree};
use tantalum_hosts::workload::ycsb::{
    Kind, Mix, RecordOptions, Requests, Workload, Ycsb, YcsbOptions, YcsbReport, key_of,
};
use tantalum_hosts::workload::{KeyValueStore, LoadValue, OneTree};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

const RECORDS: u64 = 2_000;
const OPERATIONS: u64 = 4_000;

type Stamps = Remembered<Block<ValueStamp>>;
type Bytes = ByteCodec<Block<Rc<[u8]>>>;

/// A run of 100 clients over a store of loaded records; returns its report and the store's.
fn run<P, V, C>(workload: Workload, mode: Mode, seed: u64) -> (YcsbReport, DocStoreStatistics)
where
    P: Payload,
    V: LoadValue,
    C: Codec<Page = P, Record = Block<V>> + Default,
{
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let rt = runtime.clone();
    let ran = runtime.run(async move {
        let (disk, codec) =
            (WorstDisk::<P>::new(Durability::OnFlush, 10_000), Rc::new(C::default()));
        let options = DocStoreOptions { batch_updates: 64, ..DocStoreOptions::new(mode) };
        let store = DocStore::create(&rt, &disk, &codec, options).await.unwrap();
        let ycsb = Ycsb::new::<V>(RecordOptions::new(RECORDS)).unwrap();
        ycsb.load(&store).await.unwrap();
        let options = YcsbOptions {
            clients: 100,
            warm_up: 500,
            ..YcsbOptions::new(workload, OPERATIONS, seed)
        };
        let report = ycsb.run(&rt, &store, options).await.unwrap();
        store.commit().await.unwrap();
        assert_eq!(store.statistics().documents, ycsb.records());
        (report, store.statistics())
    });
    runtime.drop_tasks();
    ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"))
}

#[test]
fn every_workload_runs_with_its_mix_and_every_read_is_right() {
    for workload in Workload::ALL {
        for mode in Mode::ALL {
            let (report, statistics) = run::<Stamp, ValueStamp, Stamps>(workload, mode, 7);
            assert_eq!(report.operations(), OPERATIONS, "{workload:?}");
            for kind in Kind::ALL {
                let share = 100.0 * report.latencies(kind).len() as f64 / OPERATIONS as f64;
                let expected = workload.mix().percent(kind) as f64;
                assert!((share - expected).abs() < 3.0, "{workload:?}, {kind:?}: {share} %");
            }
            let inserted = statistics.documents - RECORDS;
            let inserts = 45 * workload.mix().insert;
            assert!(inserted.abs_diff(inserts) <= inserts / 2, "{workload:?}: {inserted} inserted");
            let scans = report.latencies(Kind::Scan).len() as f64;
            if workload == Workload::E {
                let records = report.records_scanned() as f64 / scans;
                // 1 to 100, except for scans that reach the end of the keys.
                assert!((45.0..52.0).contains(&records), "{records} records a scan");
            }
        }
    }
}

#[test]
fn values_of_bytes_are_read_as_they_were_written() {
    for mode in Mode::ALL {
        for workload in [Workload::A, Workload::E] {
            let (report, _) = run::<PageBuf, Rc<[u8]>, Bytes>(workload, mode, 3);
            assert_eq!(report.operations(), OPERATIONS, "{mode:?}, {workload:?}");
        }
    }
}

#[test]
fn the_same_seed_does_the_same_and_another_one_does_not() {
    let run = |seed| run::<Stamp, ValueStamp, Stamps>(Workload::F, Mode::Share, seed);
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).1, run(6).1);
}

/// A database of 16 MB with one tree.
const ROWS: DoubleWriteOptions = DoubleWriteOptions {
    pages: PageOptions {
        form: Form::On,
        database_pages: 2_000,
        device_pages_per_page: 2,
        pool_pages: 400,
        batch_pages: 32,
        metadata_per_page: 0.0,
        metadata_pages: 0,
    },
    log_pages: 512,
    trees: 1,
};

#[test]
fn a_tree_of_rows_has_what_was_acknowledged_after_a_cut() {
    type Rows = Remembered<redo::Block<ValueStamp>>;
    let disk = WorstDisk::<Stamp>::new(Durability::Volatile, 10_000);
    let (codec, ycsb) =
        (Rc::new(Rows::default()), Ycsb::new::<ValueStamp>(RecordOptions::new(RECORDS)).unwrap());
    let load = |workload, operations| YcsbOptions {
        clients: 50,
        ..YcsbOptions::new(workload, operations, 1)
    };
    for life in 0..4 {
        let (rt, disk, codec, ycsb) =
            (Virtual::new(Schedule::Shuffled(life)), disk.clone(), codec.clone(), ycsb.clone());
        let (runtime, powered) = (rt.clone(), disk.clone());
        let ran = runtime.run(async move {
            let rows = match life {
                0 => DoubleWrite::create(&rt, &disk, &codec, ROWS).await.unwrap(),
                _ => DoubleWrite::open(&rt, &disk, &codec, ROWS).await.unwrap().0,
            };
            let store = OneTree::new(rows, Tree(0));
            if life == 0 {
                ycsb.load_by(&rt, &store, 8).await.unwrap();
                assert_eq!(ycsb.records(), RECORDS);
            }
            ycsb.check(&store).await.unwrap();
            let wrong = Wrong { store: store.clone(), updates: Rc::default(), forgets: false };
            assert_eq!(ycsb.check(&wrong).await.unwrap_err().kind(), ErrorKind::Corrupt);
            ycsb.run(&rt, &store, load(Workload::E, 500)).await.unwrap();
            disk.cut_after(3_000);
            let cut = ycsb.run(&rt, &store, load(Workload::A, 100_000)).await;
            assert!(disk.is_off(), "{cut:?}");
        });
        runtime.drop_tasks();
        ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"));
        powered.power_on(&mut Rng::new(life));
    }
}

/// A store that occasionally forgets an update, or returns another record's value.
#[derive(Clone)]
struct Wrong<S> {
    store: S,
    updates: Rc<Cell<u64>>,
    forgets: bool,
}

impl<S: KeyValueStore> KeyValueStore for Wrong<S> {
    type Value = S::Value;

    async fn get(&self, key: &[u8]) -> Result<Option<S::Value>> {
        if !self.forgets && key == key_of(7, 0) {
            return self.store.get(&key_of(8, 0)).await;
        }
        self.store.get(key).await
    }

    async fn put(&self, key: &[u8], value: S::Value) -> Result<()> {
        self.updates.set(self.updates.get() + 1);
        let forgotten =
            self.forgets && self.updates.get() > RECORDS && self.updates.get().is_multiple_of(8);
        if forgotten { Ok(()) } else { self.store.put(key, value).await }
    }

    async fn scan(&self, from: &[u8], records_max: usize) -> Result<Vec<(Key, S::Value)>> {
        self.store.scan(from, records_max).await
    }
}

#[test]
fn a_store_that_forgets_or_mixes_up_is_noticed() {
    for forgets in [true, false] {
        let runtime = Virtual::new(Schedule::Fifo);
        let rt = runtime.clone();
        let ran = runtime.run(async move {
            let disk = WorstDisk::<Stamp>::new(Durability::OnAck, 20_000);
            let codec = Rc::new(Stamps::default());
            let options =
                DocStoreOptions { batch_updates: 64, ..DocStoreOptions::new(Mode::Original) };
            let store = DocStore::create(&rt, &disk, &codec, options).await.unwrap();
            let store = Wrong { store, updates: Rc::default(), forgets };
            let ycsb = Ycsb::new::<ValueStamp>(RecordOptions::new(RECORDS)).unwrap();
            ycsb.load(&store).await.unwrap();
            let options = YcsbOptions {
                requests: Requests::Uniform,
                clients: 8,
                ..YcsbOptions::new(Workload::A, 20_000, 1)
            };
            ycsb.run(&rt, &store, options).await
        });
        runtime.drop_tasks();
        let ran = ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"));
        assert_eq!(ran.unwrap_err().kind(), ErrorKind::Corrupt, "forgets: {forgets}");
    }
}

#[test]
fn loads_that_make_no_sense_are_refused() {
    let small = RecordOptions { fields: 1, field_bytes: 4, ..RecordOptions::new(1) };
    assert_eq!(Ycsb::new::<Rc<[u8]>>(small).err().unwrap().kind(), ErrorKind::InvalidInput);
    let none = Ycsb::new::<ValueStamp>(RecordOptions::new(0));
    assert_eq!(none.err().unwrap().kind(), ErrorKind::InvalidInput);
    let runtime = Virtual::new(Schedule::Fifo);
    let rt = runtime.clone();
    let ran = runtime.run(async move {
        let disk = WorstDisk::<Stamp>::new(Durability::OnAck, 300);
        let codec = Rc::new(Stamps::default());
        let options = DocStoreOptions::new(Mode::Original);
        let store = DocStore::create(&rt, &disk, &codec, options).await.unwrap();
        let ycsb = Ycsb::new::<ValueStamp>(RecordOptions::new(10)).unwrap();
        let options = YcsbOptions::new(Workload::A, 10, 1);
        let early = ycsb.run(&rt, &store, options).await;
        assert_eq!(early.unwrap_err().kind(), ErrorKind::InvalidInput, "not loaded");
        ycsb.load(&store).await.unwrap();
        let odd = Mix { read: 99, ..Mix::default() };
        for options in [
            YcsbOptions { mix: odd, ..options },
            YcsbOptions { clients: 0, ..options },
            YcsbOptions { operations: 0, ..options },
        ] {
            let refused = ycsb.run(&rt, &store, options).await;
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput, "{options:?}");
        }
        ycsb.run(&rt, &store, options).await.unwrap();
    });
    ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"));
}
