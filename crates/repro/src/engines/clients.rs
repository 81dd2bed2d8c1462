//! A load with its knowledge of an engine's content: it inserts that content, runs clients over it, and reads it again after a
//! crash.
use hdrhistogram::Histogram;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, Result};
use tantalum_hosts::workload::link_bench::{LinkBench, LinkBenchReport, Operation};
use tantalum_hosts::workload::pgbench::{Pgbench, PgbenchReport};
use tantalum_hosts::workload::tpcc::{self, Tpcc, TpccOptions, TpccReport};
use tantalum_hosts::workload::ycsb::{Kind, Workload, Ycsb, YcsbOptions, YcsbReport};
use tantalum_hosts::workload::{LoadValue, LoopOptions};
use tantalum_runtime::Runtime;

use super::load::Load;
use super::rows::RowEngine;
use super::sizes::{CLIENTS, Sizes};
use super::store::{Content, Store};
use super::table::{self, Metric};

/// A load on an engine. Clones share it.
#[derive(Clone)]
pub(super) enum Clients {
    Ycsb(Rc<Ycsb>, Workload),
    Tpcc(Rc<Tpcc>),
    Pgbench(Rc<Pgbench>),
    LinkBench(Rc<LinkBench>),
}

/// The result of some operations of a load.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    pub(super) elapsed_ns: u64,
    /// For each kind of operation the name of its 99th percentile, and its latencies in nanoseconds.
    pub(super) kinds: Vec<(Metric, Histogram<u64>)>,
    /// Operations that changed something.
    pub(super) changes: u64,
}

impl Clients {
    /// A load for an engine that is not loaded yet.
    ///
    /// # Errors
    /// `InvalidInput` if a size is zero.
    pub(super) fn new<V: LoadValue>(load: Load, sizes: &Sizes, seed: u64) -> Result<Clients> {
        Ok(match load {
            Load::Ycsb(workload) => {
                Clients::Ycsb(Ycsb::new::<V>(sizes.record_options())?, workload)
            }
            Load::Tpcc => Clients::Tpcc(Tpcc::new(sizes.warehouses(), seed)?),
            Load::Pgbench => Clients::Pgbench(Pgbench::new(sizes.accounts())?),
            Load::LinkBench => Clients::LinkBench(LinkBench::new(sizes.nodes())?),
        })
    }

    /// Inserts the content that the load works on.
    ///
    /// # Errors
    /// Those of the engine.
    pub(super) async fn load<R, D, K>(&self, runtime: &R, store: &Store<R, D, K>) -> Result<()>
    where
        R: Runtime,
        D: PageDevice,
        K: Content<Page = D::Page>,
    {
        match self {
            Clients::Ycsb(ycsb, _) => ycsb.load_by(runtime, store, CLIENTS).await,
            Clients::Tpcc(tpcc) => tpcc.load(rows(store)?).await,
            Clients::Pgbench(pgbench) => pgbench.load(rows(store)?).await,
            Clients::LinkBench(bench) => bench.load(rows(store)?).await,
        }
    }

    /// Runs this many operations. Aging must change something: for YCSB it uses workload A, whichever is measured afterwards.
    ///
    /// # Errors
    /// Those of engine and load.
    pub(super) async fn age<R, D, K>(
        &self,
        (runtime, store): (&R, &Store<R, D, K>),
        operations: u64,
        seed: u64,
    ) -> Result<()>
    where
        R: Runtime,
        D: PageDevice,
        K: Content<Page = D::Page>,
    {
        let ageing = match self {
            Clients::Ycsb(ycsb, _) => Clients::Ycsb(Rc::clone(ycsb), Workload::A),
            other => other.clone(),
        };
        ageing.run((runtime, store), operations, seed).await.map(drop)
    }

    /// Runs this many operations.
    ///
    /// # Errors
    /// Those of engine and load.
    pub(super) async fn run<R, D, K>(
        &self,
        (runtime, store): (&R, &Store<R, D, K>),
        operations: u64,
        seed: u64,
    ) -> Result<Ran>
    where
        R: Runtime,
        D: PageDevice,
        K: Content<Page = D::Page>,
    {
        Ok(match self {
            Clients::Ycsb(ycsb, workload) => {
                let options = YcsbOptions::new(*workload, operations, seed);
                let options = YcsbOptions { clients: CLIENTS, ..options };
                of_ycsb(&ycsb.run(runtime, store, options).await?)
            }
            Clients::Tpcc(tpcc) => {
                let options = TpccOptions::new(CLIENTS, operations, seed);
                of_tpcc(&tpcc.run(runtime, rows(store)?, options).await?)
            }
            Clients::Pgbench(pgbench) => {
                let options = LoopOptions { clients: CLIENTS, warm_up: 0, operations };
                of_pgbench(&pgbench.run(runtime, rows(store)?, options, seed).await?)
            }
            Clients::LinkBench(bench) => {
                let options = LoopOptions { clients: CLIENTS, warm_up: 0, operations };
                of_link_bench(&bench.run(runtime, rows(store)?, options, seed).await?)
            }
        })
    }

    /// Reads the load's content and changes after a crash: acknowledged changes are there, and each change that was being committed
    /// is there as a whole or not at all.
    ///
    /// # Errors
    /// `Corrupt` if this is not so; those of the engine.
    pub(super) async fn check<R, D, K>(&self, store: &Store<R, D, K>) -> Result<()>
    where
        R: Runtime,
        D: PageDevice,
        K: Content<Page = D::Page>,
    {
        match self {
            Clients::Ycsb(ycsb, _) => ycsb.check(store).await,
            Clients::Tpcc(tpcc) => tpcc.check(rows(store)?).await.map(drop),
            Clients::Pgbench(pgbench) => pgbench.check(rows(store)?).await.map(drop),
            Clients::LinkBench(bench) => bench.after_cut(rows(store)?).await.map(drop),
        }
    }
}

/// The engine of rows, for a load of transactions.
fn rows<R, D, K>(store: &Store<R, D, K>) -> Result<&RowEngine<R, D, K>>
where
    R: Runtime,
    D: PageDevice,
    K: Content<Page = D::Page>,
{
    let none =
        || Error::new(ErrorKind::Unsupported, "a document store has no transactions of rows");
    store.rows().ok_or_else(none)
}

fn of_ycsb(report: &YcsbReport) -> Ran {
    let metric = |kind| match kind {
        Kind::Read => table::READ_P99,
        Kind::Update => table::UPDATE_P99,
        Kind::Insert => table::INSERT_P99,
        Kind::Scan => table::SCAN_P99,
        Kind::ReadModifyWrite => table::READ_MODIFY_WRITE_P99,
    };
    let changes = [Kind::Update, Kind::Insert, Kind::ReadModifyWrite];
    Ran {
        elapsed_ns: report.elapsed_ns(),
        kinds: Kind::ALL.map(|kind| (metric(kind), report.latencies(kind).clone())).into(),
        changes: changes.iter().map(|kind| report.latencies(*kind).len()).sum(),
    }
}

fn of_tpcc(report: &TpccReport) -> Ran {
    use tpcc::Kind;
    let metric = |kind| match kind {
        Kind::NewOrder => table::NEW_ORDER_P99,
        Kind::Payment => table::PAYMENT_P99,
        Kind::OrderStatus => table::ORDER_STATUS_P99,
        Kind::Delivery => table::DELIVERY_P99,
        Kind::StockLevel => table::STOCK_LEVEL_P99,
    };
    let changes = [Kind::NewOrder, Kind::Payment, Kind::Delivery];
    let changes: u64 = changes.iter().map(|kind| report.latencies(*kind).len()).sum();
    Ran {
        elapsed_ns: report.elapsed_ns(),
        kinds: Kind::ALL.map(|kind| (metric(kind), report.latencies(kind).clone())).into(),
        changes: changes - report.rolled_back(),
    }
}

fn of_pgbench(report: &PgbenchReport) -> Ran {
    Ran {
        elapsed_ns: report.elapsed_ns(),
        kinds: vec![(table::TRANSACTION_P99, report.latencies().clone())],
        changes: report.transactions(),
    }
}

fn of_link_bench(report: &LinkBenchReport) -> Ran {
    let metric = |operation| match operation {
        Operation::AddLink => table::ADD_LINK_P99,
        Operation::DeleteLink => table::DELETE_LINK_P99,
        Operation::UpdateLink => table::UPDATE_LINK_P99,
        Operation::CountLink => table::COUNT_LINK_P99,
        Operation::MultigetLink => table::MULTIGET_LINK_P99,
        Operation::GetLinkList => table::GET_LINK_LIST_P99,
        Operation::GetNode => table::GET_NODE_P99,
        Operation::AddNode => table::ADD_NODE_P99,
        Operation::UpdateNode => table::UPDATE_NODE_P99,
        Operation::DeleteNode => table::DELETE_NODE_P99,
    };
    let changes = [
        Operation::AddLink,
        Operation::DeleteLink,
        Operation::UpdateLink,
        Operation::AddNode,
        Operation::UpdateNode,
        Operation::DeleteNode,
    ];
    let latencies = |operation| (metric(operation), report.latencies(operation).clone());
    Ran {
        elapsed_ns: report.elapsed_ns(),
        kinds: Operation::ALL.map(latencies).into(),
        // For these operations `rows` is the number of transactions that changed something.
        changes: changes.iter().map(|operation| report.rows(*operation)).sum(),
    }
}
