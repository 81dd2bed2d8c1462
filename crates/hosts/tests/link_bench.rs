//! LinkBench over rows: its operations, that a run repeats, that its tables agree afterwards, and that a wrong read is
//! noticed.

use crate::worst_disk::WorstDisk;
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Durability, ErrorKind, PageBuf, Payload, Result, Stamp};
use tantalum_hosts::double_write::{
    DoubleWrite, DoubleWriteOptions, EngineStatistics, Form, PageOptions,
};
use tantalum_hosts::records::{ByteCodec, Codec, Remembered};
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::{Key, Tree, ValueStamp};
use tantalum_hosts::workload::link_bench::{
    Inspection, LinkBench, LinkBenchReport, Operation, TREES, Table,
};
use tantalum_hosts::workload::{
    LoadValue, LoopOptions, RowStore, RowStoreLayer, RowTransaction, RowTransactionLayer, UndoLog,
};
use tantalum_media::block_store::{FileStore, FileStoreOptions};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Live, Virtual};
use tantalum_volume::{OpenOptions, VolumeConfig, config, create_volume, open_flash};

const NODES: u64 = 1_000;
const OPERATIONS: u64 = 20_000;
pub const LOOP: LoopOptions = LoopOptions { clients: 100, warm_up: 2_000, operations: OPERATIONS };

pub type Stamps = Remembered<Block<ValueStamp>>;
type Bytes = ByteCodec<Block<Rc<[u8]>>>;

pub fn options(form: Form) -> DoubleWriteOptions {
    let pages = PageOptions {
        form,
        database_pages: 1_000,
        device_pages_per_page: 1,
        pool_pages: 100,
        batch_pages: 8,
        metadata_per_page: 0.0,
        metadata_pages: 0,
    };
    DoubleWriteOptions { pages, log_pages: 2_048, trees: TREES }
}

/// A run of 100 clients over a loaded graph, most of which is not in the pool; returns its report and the engine's.
fn run<P, V, C>(form: Form, seed: u64) -> (LinkBenchReport, Inspection, EngineStatistics)
where
    P: Payload,
    V: LoadValue,
    C: Codec<Page = P, Record = Block<V>> + Default,
{
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let rt = runtime.clone();
    let ran = runtime.run(async move {
        let (disk, codec) =
            (WorstDisk::<P>::new(Durability::OnFlush, 4_000), Rc::new(C::default()));
        let store: Rc<DoubleWrite<_, _, V, C>> =
            DoubleWrite::create(&rt, &disk, &codec, options(form)).await.unwrap();
        let bench = LinkBench::new(NODES).unwrap();
        bench.load(&store).await.unwrap();
        let loaded = bench.inspect(&store).await.unwrap();
        let report = bench.run(&rt, &store, LOOP, seed).await.unwrap();
        let found = bench.inspect(&store).await.unwrap();
        assert!(found.nodes > loaded.nodes && found.links > loaded.links, "{loaded:?}, {found:?}");
        assert!(found.visible_links < found.links, "{found:?}");
        store.close().await.unwrap();
        let (store, _) = DoubleWrite::open(&rt, &disk, &codec, options(form)).await.unwrap();
        assert_eq!(bench.inspect(&store).await.unwrap(), found, "opened again");
        let statistics = store.statistics();
        store.close().await.unwrap();
        (report, found, statistics)
    });
    runtime.drop_tasks();
    ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"))
}

#[test]
fn operations_come_in_their_shares_and_tables_agree_afterwards() {
    let (report, found, _) = run::<Stamp, ValueStamp, Stamps>(Form::On, 7);
    assert_eq!(report.operations(), OPERATIONS);
    for operation in Operation::ALL {
        let latencies = report.latencies(operation);
        let share = 100.0 * latencies.len() as f64 / OPERATIONS as f64;
        let chance = 4.0 * (operation.percent() / OPERATIONS as f64 * 100.0).sqrt();
        assert!((share - operation.percent()).abs() < chance, "{operation:?}: {share} %");
    }
    // A link in two or three of those requested exists; lists have a few links.
    let of = |operation| report.rows(operation) as f64 / report.latencies(operation).len() as f64;
    assert!((0.5..2.6).contains(&of(Operation::MultigetLink)), "{}", of(Operation::MultigetLink));
    assert!((1.0..30.0).contains(&of(Operation::GetLinkList)), "{}", of(Operation::GetLinkList));
    // One operation in a hundred deletes one of a thousand nodes.
    for operation in [Operation::GetNode, Operation::UpdateNode] {
        assert!((0.8..0.99).contains(&of(operation)), "{operation:?}: {}", of(operation));
    }
    assert_eq!(of(Operation::AddNode), 1.0);
    // Some links that are to be hidden are already hidden.
    assert!((0.3..1.0).contains(&of(Operation::DeleteLink)), "{}", of(Operation::DeleteLink));
    assert!(report.conflicts > 0, "of a hundred clients none wanted the row of another");
    assert!(found.counts > NODES / 2, "{found:?}");
}

#[test]
fn every_form_runs_it_in_stamps_and_in_bytes() {
    for form in [Form::Off, Form::Share, Form::Transactions] {
        let (report, ..) = run::<Stamp, ValueStamp, Stamps>(form, 3);
        assert_eq!(report.operations(), OPERATIONS, "{form:?}");
    }
    let (report, ..) = run::<PageBuf, Rc<[u8]>, Bytes>(Form::On, 3);
    assert_eq!(report.operations(), OPERATIONS);
}

#[test]
fn the_same_seed_does_the_same_and_another_one_does_not() {
    let run = |seed| run::<Stamp, ValueStamp, Stamps>(Form::Off, seed);
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).1, run(6).1);
}

const OTHER: ValueStamp = ValueStamp { bytes: 7, count: 7 };

async fn change_and_change_back<S>(store: &S, key: &[u8], value: ValueStamp) -> Result<()>
where
    S: RowStore<Value = ValueStamp>,
{
    let mut transaction = store.begin();
    transaction.put(Table::Node.tree(), key, OTHER).await?;
    transaction.put(Table::Node.tree(), key, value).await?;
    // A new row leaves no old content.
    transaction.put(Table::Node.tree(), &[key, b"new"].concat(), value).await?;
    transaction.commit().await?;
    let mut transaction = store.begin();
    transaction.put(Table::Index.tree(), b"of no row", value).await?;
    transaction.delete(Table::Index.tree(), b"of no row").await?;
    transaction.delete(Table::Node.tree(), &[key, b"new"].concat()).await?;
    transaction.commit().await
}

#[test]
fn an_undo_log_has_what_rows_had_before_their_newest_changes() {
    const ROWS_MAX: u64 = 500;
    let undo = Tree(TREES);
    let runtime = Virtual::new(Schedule::Shuffled(4));
    let rt = runtime.clone();
    let ran = runtime.run(async move {
        let disk = WorstDisk::<Stamp>::new(Durability::OnFlush, 6_000);
        let codec = Rc::new(Stamps::default());
        let options = DoubleWriteOptions { trees: TREES + 1, ..options(Form::On) };
        let store = DoubleWrite::create(&rt, &disk, &codec, options).await.unwrap();
        let bench = LinkBench::new(NODES).unwrap();
        bench.load(&store).await.unwrap();
        let nodes = store.scan(Table::Node.tree(), &[], None, usize::MAX).await.unwrap();
        let log = UndoLog::new(undo, &[Table::Node.tree()], ROWS_MAX);
        let undone = log.over(&store);
        // The very first changes find the loaded content.
        for (key, value) in nodes.iter().take(10) {
            change_and_change_back(&undone, key, *value).await.unwrap();
        }
        let kept = store.scan(undo, &[], None, usize::MAX).await.unwrap();
        let expected = nodes.iter().take(10).flat_map(|(_, value)| [*value, OTHER, *value]);
        assert!(kept.into_iter().map(|(_, value)| value).eq(expected));
        let report = bench.run(&rt, &undone, LOOP, 4).await.unwrap();
        assert_eq!(report.operations(), OPERATIONS);
        bench.inspect(&store).await.unwrap();
        let kept = store.scan(undo, &[], None, usize::MAX).await.unwrap();
        assert_eq!((kept.len() as u64, log.rows()), (ROWS_MAX, ROWS_MAX));
        store.close().await.unwrap();
    });
    runtime.drop_tasks();
    ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"));
}

/// A fault of a store.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Occasionally a change of a table is not made.
    Forgets(Table),
    /// A read returns the content of another row.
    MixesUp(Table),
    /// Scans leave out the last row.
    CutsShort,
    /// Transactions ignore each other's locks.
    DoesNotLock,
}

/// A store with a fault.
#[derive(Clone)]
struct Wrong<S> {
    store: S,
    fault: Fault,
    /// The store is correct until this is set.
    wrong: Rc<Cell<bool>>,
    changes: Rc<Cell<u64>>,
}

struct WrongTransaction<S: RowStore> {
    transaction: S::Transaction,
    of: Wrong<S>,
}

impl<S> Wrong<S> {
    fn has(&self, fault: Fault) -> bool {
        self.wrong.get() && self.fault == fault
    }

    fn forgets(&self, tree: Tree) -> bool {
        let table = Table::ALL[tree.0 as usize];
        self.changes.set(self.changes.get() + 1);
        self.has(Fault::Forgets(table)) && self.changes.get().is_multiple_of(16)
    }
}

impl<S: RowStore> RowStoreLayer for Wrong<S> {
    type Inner = S;
    type Transaction = WrongTransaction<S>;

    fn inner(&self) -> &S {
        &self.store
    }

    fn begin(&self) -> WrongTransaction<S> {
        WrongTransaction { transaction: self.store.begin(), of: self.clone() }
    }

    async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<S::Value>> {
        if self.has(Fault::MixesUp(Table::ALL[tree.0 as usize])) {
            return Ok(self.store.scan(tree, key, None, 2).await?.pop().map(|(_, value)| value));
        }
        self.store.get(tree, key).await
    }

    async fn scan(
        &self,
        tree: Tree,
        from: &[u8],
        to: Option<&[u8]>,
        rows_max: usize,
    ) -> Result<Vec<(Key, S::Value)>> {
        let mut rows = self.store.scan(tree, from, to, rows_max).await?;
        if self.has(Fault::CutsShort) {
            rows.pop();
        }
        Ok(rows)
    }
}

impl<S: RowStore> RowTransactionLayer for WrongTransaction<S> {
    type Inner = S::Transaction;

    fn inner(&self) -> &S::Transaction {
        &self.transaction
    }

    fn inner_mut(&mut self) -> &mut S::Transaction {
        &mut self.transaction
    }

    fn into_inner(self) -> S::Transaction {
        self.transaction
    }

    async fn get_for_update(&mut self, tree: Tree, key: &[u8]) -> Result<Option<S::Value>> {
        if self.of.has(Fault::DoesNotLock) {
            return self.transaction.get(tree, key).await;
        }
        self.transaction.get_for_update(tree, key).await
    }

    async fn put(&mut self, tree: Tree, key: &[u8], value: S::Value) -> Result<()> {
        if self.of.forgets(tree) { Ok(()) } else { self.transaction.put(tree, key, value).await }
    }

    async fn delete(&mut self, tree: Tree, key: &[u8]) -> Result<()> {
        if self.of.forgets(tree) { Ok(()) } else { self.transaction.delete(tree, key).await }
    }
}

/// The result of a run over a store that has a fault from the end of loading on.
fn run_wrong(fault: Fault) -> Result<()> {
    let runtime = Virtual::new(Schedule::Shuffled(1));
    let rt = runtime.clone();
    let ran = runtime.run(async move {
        let disk = WorstDisk::<Stamp>::new(Durability::OnAck, 4_000);
        let codec = Rc::new(Stamps::default());
        let store = DoubleWrite::create(&rt, &disk, &codec, options(Form::Off)).await?;
        let (wrong, changes) = (Rc::new(Cell::new(false)), Rc::default());
        let store = Wrong { store, fault, wrong: Rc::clone(&wrong), changes };
        let bench = LinkBench::new(NODES)?;
        bench.load(&store).await?;
        wrong.set(true);
        bench.run(&rt, &store, LOOP, 1).await?;
        bench.inspect(&store).await.map(|_| ())
    });
    runtime.drop_tasks();
    ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"))
}

#[test]
fn a_store_that_forgets_or_mixes_up_is_noticed() {
    for table in Table::ALL {
        let mixes_up = (table != Table::Index).then_some(Fault::MixesUp(table));
        for fault in [Some(Fault::Forgets(table)), mixes_up].into_iter().flatten() {
            let noticed = run_wrong(fault);
            assert_eq!(noticed.unwrap_err().kind(), ErrorKind::Corrupt, "{fault:?}");
        }
    }
    for fault in [Fault::CutsShort, Fault::DoesNotLock] {
        assert_eq!(run_wrong(fault).unwrap_err().kind(), ErrorKind::Corrupt, "{fault:?}");
    }
}

#[test]
fn loads_that_make_no_sense_are_refused() {
    for nodes in [0, u64::MAX] {
        assert_eq!(LinkBench::new(nodes).err().unwrap().kind(), ErrorKind::InvalidInput);
    }
    let runtime = Virtual::new(Schedule::Fifo);
    let rt = runtime.clone();
    let ran = runtime.run(async move {
        let disk = WorstDisk::<Stamp>::new(Durability::OnAck, 4_000);
        let codec = Rc::new(Stamps::default());
        let store = DoubleWrite::create(&rt, &disk, &codec, options(Form::Off)).await.unwrap();
        let bench = LinkBench::new(10).unwrap();
        let early = bench.run(&rt, &store, LOOP, 1).await;
        assert_eq!(early.unwrap_err().kind(), ErrorKind::InvalidInput, "not loaded");
        bench.load(&store).await.unwrap();
        for options in [LoopOptions { clients: 0, ..LOOP }, LoopOptions { operations: 0, ..LOOP }] {
            let refused = bench.run(&rt, &store, options, 1).await;
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput, "{options:?}");
        }
        // Ten nodes, and a hundred clients that all request them.
        let report = bench.run(&rt, &store, LOOP, 1).await.unwrap();
        assert!(report.conflicts > 0, "no client had to wait for another one");
        bench.inspect(&store).await.unwrap();
    });
    runtime.drop_tasks();
    ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"));
}

/// The same load on the live executor, over a volume in a file.
#[test]
fn it_runs_live_over_a_volume() {
    let folder = tempfile::tempdir().unwrap();
    let text = config::template("16MiB").replace("# zone = \"8MiB\"", "zone = \"1MiB\"");
    let config = VolumeConfig::parse(&text, &folder.path().join("v.toml")).unwrap();
    let live = Live::new(LiveOptions::default()).unwrap();
    let rt = live.clone();
    let ran = live.run(async move {
        create_volume(&rt, &config, false).await?;
        let file = FileStore::open(&rt, &config.data_path()?, FileStoreOptions::default())?;
        let (volume, _) = open_flash(&rt, file, &config, OpenOptions::default()).await?;
        let codec = Rc::new(Bytes::default());
        let options = options(Form::Transactions);
        let store = DoubleWrite::create(&rt, &volume, &codec, options).await?;
        let bench = LinkBench::new(NODES / 10)?;
        bench.load(&store).await?;
        let options = LoopOptions { clients: 16, warm_up: 0, operations: 1_000 };
        let report = bench.run(&rt, &store, options, 1).await?;
        assert_eq!(report.operations(), 1_000);
        bench.inspect(&store).await?;
        store.close().await
    });
    live.drop_tasks();
    ran.unwrap();
}
