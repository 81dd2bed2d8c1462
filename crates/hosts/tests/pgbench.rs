//! pgbench over rows of an engine: its operations, that a run repeats, that its tables agree afterwards, and that a faulty store is
//! noticed.

use crate::worst_disk::WorstDisk;
use crate::wrong_store::{Wrong, WrongStore};
use std::rc::Rc;
use tantalum_base::{Durability, ErrorKind, PageBuf, Payload, Result, Stamp};
use tantalum_hosts::records::{ByteCodec, Codec, Remembered};
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::ValueStamp;
use tantalum_hosts::wal_engine::{
    EngineStatistics, WalEngine, WalForm, WalOptions, WalPageOptions,
};
use tantalum_hosts::workload::pgbench::{Audit, Pgbench, PgbenchReport, Population, TREES, Table};
use tantalum_hosts::workload::{LoadValue, LoopOptions};
use tantalum_runtime::Virtual;

const TRANSACTIONS: u64 = 4_000;
const LOOP: LoopOptions = LoopOptions { clients: 100, warm_up: 0, operations: TRANSACTIONS };
const SMALL: Population = Population { branches: 4, accounts_per_branch: 2_000 };

type Stamps = Remembered<Block<ValueStamp>>;
type Bytes = ByteCodec<Block<Rc<[u8]>>>;
type Engine<P, V, C> = Rc<WalEngine<Virtual, WorstDisk<P>, V, C>>;

fn options(form: WalForm) -> WalOptions {
    let pages = WalPageOptions {
        form,
        database_pages: 1_000,
        device_pages_per_page: 1,
        pool_pages: 100,
        batch_pages: 8,
        metadata_per_page: 0.0,
        metadata_pages: 0,
    };
    WalOptions {
        pages,
        log_pages: if form == WalForm::Transactions { 0 } else { 512 },
        trees: TREES,
    }
}

/// Makes a bank in a new engine, and runs a function on both.
fn with_bank<P, V, C, T: 'static, F>(
    form: WalForm,
    what: impl FnOnce(Virtual, Engine<P, V, C>, Rc<Pgbench>) -> F + 'static,
) -> Result<T>
where
    P: Payload,
    V: LoadValue,
    C: Codec<Page = P, Record = Block<V>> + Default + 'static,
    F: Future<Output = Result<T>> + 'static,
{
    Virtual::alone("pgbench", move |rt| async move {
        let disk = WorstDisk::with_transactions_of(64, Durability::OnFlush, 3_000);
        let engine = WalEngine::create(&rt, &disk, &Rc::new(C::default()), options(form)).await?;
        let pgbench = Pgbench::new(SMALL)?;
        pgbench.load(&engine).await?;
        what(rt, engine, pgbench).await
    })
}

/// A run of a hundred clients: returns its report, the engine's, and the content of the tables.
fn run<P, V, C>(form: WalForm, seed: u64) -> (PgbenchReport, Audit, EngineStatistics)
where
    P: Payload,
    V: LoadValue,
    C: Codec<Page = P, Record = Block<V>> + Default + 'static,
{
    let run = with_bank::<P, V, C, _, _>(form, move |rt, engine, pgbench| async move {
        assert_eq!(pgbench.check(&engine).await?, Audit::default());
        let report = pgbench.run(&rt, &engine, LOOP, seed).await?;
        Ok((report, pgbench.check(&engine).await?, engine.statistics()))
    });
    run.unwrap()
}

#[test]
fn every_form_runs_it_in_bytes_and_in_stamps_and_the_tables_agree() {
    for form in WalForm::ALL {
        let (report, audit, stamps) = run::<Stamp, ValueStamp, Stamps>(form, 1);
        assert_eq!((report.transactions(), audit.payments), (TRANSACTIONS, TRANSACTIONS));
        assert_eq!(report.latencies().len(), TRANSACTIONS);
        // Four branches, one of which every transaction needs.
        assert!(report.conflicts > 100, "{}", report.conflicts);
        let in_bytes = run::<PageBuf, Rc<[u8]>, Bytes>(form, 1);
        assert_eq!((report, audit, stamps), in_bytes, "{form:?}");
    }
}

#[test]
fn the_same_seed_does_the_same_and_another_one_does_not() {
    let run = |seed| run::<Stamp, ValueStamp, Stamps>(WalForm::FullPages, seed);
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).1.paid, run(6).1.paid);
}

#[test]
fn a_store_that_forgets_or_mixes_up_or_does_not_hold_rows_is_noticed() {
    let forgets = Table::ALL.map(|table| Wrong::Forgets(table.tree()));
    let mixes_up = [Table::Branches, Table::Tellers, Table::Accounts];
    let mixes_up = mixes_up.map(|table| Wrong::MixesUp(table.tree()));
    for wrong in forgets.into_iter().chain(mixes_up).chain([Wrong::DoesNotHold]) {
        let ran = with_bank::<Stamp, ValueStamp, Stamps, _, _>(
            WalForm::NoFullPages,
            move |rt, engine, pgbench| async move {
                let store = WrongStore::new(engine, wrong);
                pgbench.run(&rt, &store, LOOP, 1).await?;
                pgbench.check(&store).await
            },
        );
        let error = ran.err().unwrap_or_else(|| panic!("{wrong:?} was not noticed"));
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{wrong:?}: {error}");
    }
}

#[test]
fn loads_that_make_no_sense_are_refused() {
    let refused = Pgbench::new(Population::new(0)).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let form = WalForm::NoFullPages;
    let ran = with_bank::<Stamp, ValueStamp, Stamps, _, _>(form, |rt, engine, _| async move {
        let early = Pgbench::new(SMALL)?.run(&rt, &engine, LOOP, 1).await;
        assert_eq!(early.unwrap_err().kind(), ErrorKind::InvalidInput, "not loaded");
        Ok(())
    });
    ran.unwrap();
}
