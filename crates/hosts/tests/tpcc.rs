//! TPC-C over rows of an engine: its transactions, that a run repeats, that its database is consistent after a run and after a power cut,
//! and that a faulty store is noticed.

use crate::worst_disk::WorstDisk;
use crate::wrong_store::{Wrong, WrongStore};
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{Durability, Error, ErrorKind, PageBuf, Payload, Result, Rng, Stamp};
use tantalum_hosts::double_write::{DoubleWrite, DoubleWriteOptions, Form, PageOptions};
use tantalum_hosts::fault_points::Fault;
use tantalum_hosts::records::{ByteCodec, Codec, Remembered};
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::ValueStamp;
use tantalum_hosts::workload::LoadValue;
use tantalum_hosts::workload::tpcc::{
    Audit, Kind, Population, TREES, Table, Tpcc, TpccOptions, TpccReport,
};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

type Stamps = Remembered<Block<ValueStamp>>;
type Bytes = ByteCodec<Block<Rc<[u8]>>>;
type Engine<P, V, C> = Rc<DoubleWrite<Virtual, WorstDisk<P>, V, C>>;

const DISK_PAGES: u64 = 4_000;

/// 46 customers per district, 1,562 items.
const SMALL: Population = Population { warehouses: 2, halvings: 6 };

fn engine_options(form: Form) -> DoubleWriteOptions {
    let pages = PageOptions {
        form,
        database_pages: 3_000,
        device_pages_per_page: 1,
        pool_pages: 200,
        batch_pages: 16,
        metadata_per_page: 0.0,
        metadata_pages: 0,
    };
    DoubleWriteOptions { pages, log_pages: 512, trees: TREES }
}

/// A disk with a loaded database, which can be opened several times.
struct Database<P, C> {
    disk: Rc<WorstDisk<P>>,
    codec: Rc<C>,
    tpcc: Rc<Tpcc>,
    options: DoubleWriteOptions,
}

impl<P, C> Database<P, C>
where
    P: Payload,
    C: Codec<Page = P> + Default + 'static,
{
    fn new<V: LoadValue>(form: Form, durability: Durability, seed: u64) -> Self
    where
        C: Codec<Page = P, Record = Block<V>>,
    {
        let database = Database {
            disk: WorstDisk::new(durability, DISK_PAGES),
            codec: Rc::new(C::default()),
            tpcc: Tpcc::new(SMALL, seed).unwrap(),
            options: engine_options(form),
        };
        let (disk, codec) = (Rc::clone(&database.disk), Rc::clone(&database.codec));
        let (tpcc, options) = (Rc::clone(&database.tpcc), database.options);
        in_virtual_time(seed, |rt| async move {
            let engine = DoubleWrite::create(&rt, &disk, &codec, options).await.unwrap();
            tpcc.load(&engine).await.unwrap();
            engine.close().await.unwrap();
        });
        database
    }

    /// Opens the database and runs a function on it. Nothing continues afterwards.
    fn live<V, T, F>(
        &self,
        seed: u64,
        what: impl FnOnce(Virtual, Engine<P, V, C>, Rc<Tpcc>) -> F + 'static,
    ) -> T
    where
        V: LoadValue,
        T: 'static,
        F: Future<Output = T> + 'static,
        C: Codec<Page = P, Record = Block<V>>,
    {
        let (disk, codec) = (Rc::clone(&self.disk), Rc::clone(&self.codec));
        let (tpcc, options) = (Rc::clone(&self.tpcc), self.options);
        in_virtual_time(seed, |rt| async move {
            let engine = DoubleWrite::open(&rt, &disk, &codec, options).await.unwrap().0;
            what(rt, engine, tpcc).await
        })
    }
}

fn in_virtual_time<T: 'static, F: Future<Output = T> + 'static>(
    seed: u64,
    what: impl FnOnce(Virtual) -> F,
) -> T {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let ran = runtime.run(what(runtime.clone()));
    runtime.drop_tasks();
    ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"))
}

/// A run of a hundred terminals; returns its report, and the database's content before and after.
fn run<P, V, C>(form: Form, transactions: u64, seed: u64) -> (TpccReport, Audit, Audit)
where
    P: Payload,
    V: LoadValue,
    C: Codec<Page = P, Record = Block<V>> + Default + 'static,
{
    let database = Database::<P, C>::new(form, Durability::OnFlush, seed);
    database.live(seed, move |rt, engine, tpcc| async move {
        let before = tpcc.check(&engine).await.unwrap();
        let options = TpccOptions::new(100, transactions, seed);
        let report = tpcc.run(&rt, &engine, options).await.unwrap();
        (report, before, tpcc.check(&engine).await.unwrap())
    })
}

#[test]
fn a_hundred_terminals_run_the_mix_and_leave_a_consistent_database() {
    const TRANSACTIONS: u64 = 6_000;
    let (report, before, after) = run::<Stamp, ValueStamp, Stamps>(Form::On, TRANSACTIONS, 1);
    assert_eq!(report.transactions(), TRANSACTIONS);
    for kind in Kind::ALL {
        let share = 100.0 * report.latencies(kind).len() as f64 / TRANSACTIONS as f64;
        let expected = kind.percent() as f64;
        assert!((share - expected).abs() < 2.5, "{}: {share} %", kind.name());
    }
    let new_orders = report.latencies(Kind::NewOrder).len();
    let rolled_back = report.rolled_back();
    assert!((10..50).contains(&rolled_back), "{rolled_back} of {new_orders} rolled back");
    assert!(report.conflicts > 0, "a hundred terminals of two warehouses meet");
    // The work that was done is there, and nothing else.
    assert_eq!(before.orders, SMALL.rows(Table::Order));
    assert_eq!(before.undelivered, SMALL.rows(Table::NewOrder));
    assert_eq!(after.orders - before.orders, new_orders - rolled_back);
    assert_eq!(after.payments - before.payments, report.latencies(Kind::Payment).len());
    let delivered = before.undelivered + new_orders - rolled_back - after.undelivered;
    assert_eq!(report.orders_delivered(), delivered);
    assert!(delivered > 1_000, "{delivered} delivered");
    let lines = (after.order_lines - before.order_lines) as f64 / (new_orders - rolled_back) as f64;
    assert!((9.7..10.3).contains(&lines), "{lines} lines an order");
}

#[test]
fn every_form_runs_it_in_bytes_and_in_stamps_with_the_same_database_in_the_end() {
    for form in Form::ALL {
        let (report, _, stamps) = run::<Stamp, ValueStamp, Stamps>(form, 1_000, 2);
        let (in_bytes, _, bytes) = run::<PageBuf, Rc<[u8]>, Bytes>(form, 1_000, 2);
        assert_eq!((report, stamps), (in_bytes, bytes), "{form:?}");
    }
}

#[test]
fn the_same_seed_does_the_same_and_another_one_does_not() {
    let run = |seed| run::<Stamp, ValueStamp, Stamps>(Form::Share, 1_500, seed);
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).2, run(6).2);
}

/// Lives of a database that end midway; returns the content found then.
fn cut<P, V, C>(form: Form, durability: Durability, seed: u64, lives: u64) -> Result<u64>
where
    P: Payload,
    V: LoadValue,
    C: Codec<Page = P, Record = Block<V>> + Default + 'static,
{
    let database = Database::<P, C>::new(form, durability, seed);
    let (rng, mut cuts) = (&mut Rng::split(seed, "cuts"), 0);
    for life in 0..lives {
        let (disk, left) = (Rc::clone(&database.disk), 20 + rng.below(1_500));
        let ended = database.live(seed ^ life << 32, move |rt, engine, tpcc| async move {
            disk.cut_after(left);
            let options = TpccOptions::new(20, 2_000, seed ^ life << 32);
            tpcc.run(&rt, &engine, options).await.map(drop)
        });
        if database.disk.is_off() {
            assert_eq!(ended.unwrap_err().kind(), ErrorKind::PowerCut);
            cuts += 1;
        } else {
            ended?;
        }
        if rng.chance(0.7) {
            database.disk.power_on(rng)
        } else {
            database.disk.killed()
        }
        database.live(seed, |_, engine, tpcc| async move {
            tpcc.check(&engine).await?;
            engine.close().await
        })?;
    }
    Ok(cuts)
}

#[test]
fn after_a_power_cut_the_database_is_consistent_and_has_all_that_was_acknowledged() {
    let mut cuts = 0;
    for form in Form::ALL {
        for durability in [Durability::OnAck, Durability::OnFlush, Durability::Volatile] {
            // Without double write a page that such a disk tore is detected, and the database is not opened.
            if form != Form::Off || durability != Durability::Volatile {
                cuts += cut::<Stamp, ValueStamp, Stamps>(form, durability, 1, 3).unwrap();
            }
        }
    }
    cuts += cut::<PageBuf, Rc<[u8]>, Bytes>(Form::On, Durability::Volatile, 2, 3).unwrap();
    assert!(cuts > 25, "{cuts} lives were cut");
}

#[test]
fn a_commit_that_is_acknowledged_too_early_is_noticed() {
    assert_noticed(Fault::NoFlushAfterLog, || {
        let lost = |seed| {
            let ended = cut::<Stamp, ValueStamp, Stamps>(Form::On, Durability::OnFlush, seed, 4);
            ended.err().map(|error| error.to_string())
        };
        (0..12).find_map(lost)
    });
}

#[test]
fn a_store_that_forgets_or_mixes_up_or_does_not_hold_rows_is_noticed() {
    let forgets = Table::ALL
        .into_iter()
        .filter(|table| ![Table::Item, Table::CustomerName].contains(table))
        .map(|table| Wrong::Forgets(table.tree()));
    let [new_orders, stock] = [Table::NewOrder, Table::Stock].map(Table::tree);
    let others = [Wrong::KeepsOld(new_orders), Wrong::MixesUp(stock), Wrong::DoesNotHold];
    for wrong in forgets.chain(others) {
        let database = Database::<Stamp, Stamps>::new(Form::Off, Durability::OnAck, 4);
        let ran: Result<Audit, Error> = database.live(4, move |rt, store, tpcc| async move {
            let store = WrongStore::new(store, wrong);
            tpcc.run(&rt, &store, TpccOptions::new(30, 2_000, 4)).await?;
            tpcc.check(&store).await
        });
        let error = ran.err().unwrap_or_else(|| panic!("{wrong:?} was not noticed"));
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{wrong:?}: {error}");
    }
}

#[test]
fn terminals_that_key_in_and_think_make_what_the_specification_allows() {
    let database = Database::<Stamp, Stamps>::new(Form::On, Durability::OnAck, 1);
    let run = |pauses, transactions| {
        database.live(1, move |rt, engine, tpcc| async move {
            let options = TpccOptions { pauses, ..TpccOptions::new(20, transactions, 1) };
            tpcc.run(&rt, &engine, options).await.unwrap()
        })
    };
    let slow = run(true, 4_000);
    // Clause 4.2: 9 to 12.86 per warehouse, each with ten terminals.
    let per_warehouse = slow.new_orders_per_minute() / 2.0;
    assert!((11.0..13.0).contains(&per_warehouse), "{per_warehouse} new orders a minute");
    let second_ns = 1_000_000_000;
    assert!(slow.latencies(Kind::NewOrder).max() < second_ns, "a pause is no part of it");
}

#[test]
fn loads_that_make_no_sense_are_refused() {
    for population in [Population { warehouses: 0, ..SMALL }, Population { halvings: 7, ..SMALL }] {
        let refused = Tpcc::new(population, 1).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{population:?}");
    }
    let database = Database::<Stamp, Stamps>::new(Form::On, Durability::OnAck, 1);
    database.live(1, |rt, engine, tpcc| async move {
        let none = Tpcc::new(SMALL, 1).unwrap();
        let options = TpccOptions::new(10, 10, 1);
        let early = none.run(&rt, &engine, options).await;
        assert_eq!(early.unwrap_err().kind(), ErrorKind::InvalidInput, "not loaded");
        for options in
            [TpccOptions { terminals: 0, ..options }, TpccOptions { transactions: 0, ..options }]
        {
            let refused = tpcc.run(&rt, &engine, options).await;
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput, "{options:?}");
        }
        tpcc.run(&rt, &engine, options).await.unwrap();
    });
}
