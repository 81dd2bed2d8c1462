//! The ten operations, as transactions.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, Result};
use tantalum_runtime::Runtime;
use tantalum_trace::link_bench::Operation;

use super::checks::{Change, Checks, wrong};
use super::draws::{Draws, Request};
use super::graph::{List, Slot};
use super::loading::LOADED_MS;
use super::rows::{
    self, CountRow, LinkRow, Table, index_key, link_key, list_key, node_key, told_node,
    visible_links,
};
use super::run::LinkBench;
use crate::workload::{ClosedLoad, Ending, RowStore, RowTransaction, transact};

/// Maximum number of rows read of a list.
const LIST_ROWS_MAX: usize = 10_000;

/// The operations of the clients of a run. Counts, for each operation, the rows that it found.
pub struct Requests<R, S> {
    runtime: R,
    store: S,
    bench: Rc<LinkBench>,
    draws: RefCell<Draws>,
    conflicts: Cell<u64>,
    /// The error of the first transaction that failed. Its outcome is uncertain then, and so is what later reads of its rows may
    /// find.
    failed: RefCell<Option<Error>>,
}

/// An operation to be performed.
pub struct Drawn(Request);

impl<R: Runtime, S: RowStore> ClosedLoad for Requests<R, S> {
    type Operation = Drawn;

    const KINDS: usize = Operation::ALL.len();

    fn draw(&self, _client: u32) -> (usize, Drawn) {
        let (operation, request) = self.draws.borrow_mut().draw(&self.bench.graph);
        (operation as usize, Drawn(request))
    }

    async fn perform(&self, drawn: Drawn) -> Result<u64> {
        match drawn.0 {
            Request::PutLink(list, slot) => self.change_link(list, slot, true).await,
            Request::HideLink(list, slot) => self.change_link(list, slot, false).await,
            Request::CountLinks(list) => self.count_links(list).await,
            Request::GetLinks(list, slots) => self.get_links(list, &slots).await,
            Request::GetList(list) => self.get_list(list).await,
            Request::GetNode(node) => self.get_node(node).await,
            Request::AddNode => self.add_node().await,
            Request::UpdateNode(node) => self.change_node(node, false).await,
            Request::DeleteNode(node) => self.change_node(node, true).await,
        }
    }
}

impl<R: Runtime, S: RowStore> Requests<R, S> {
    pub(super) fn new(runtime: &R, store: &S, bench: &Rc<LinkBench>, seed: u64) -> Self {
        Requests {
            runtime: runtime.clone(),
            store: store.clone(),
            bench: Rc::clone(bench),
            draws: RefCell::new(Draws::new(bench.graph.nodes, seed)),
            conflicts: Cell::new(0),
            failed: RefCell::default(),
        }
    }

    /// Number of transactions that started again because another one held a row.
    pub fn conflicts(&self) -> u64 {
        self.conflicts.get()
    }

    fn checks(&self) -> &RefCell<Checks> {
        &self.bench.checks
    }

    /// Runs a transaction; returns whether it changed anything.
    async fn transact(
        &self,
        work: impl AsyncFnMut(&mut S::Transaction) -> Result<Ending<Option<Change>>>,
    ) -> Result<u64> {
        let ended = transact(&self.store, &self.conflicts, work).await;
        let change =
            ended.map_err(|error| self.failed.borrow_mut().get_or_insert(error).clone())?;
        if let Some(change) = change {
            self.checks().borrow_mut().end(change);
        }
        Ok(u64::from(change.is_some()))
    }

    /// Makes a link visible, with the current time and new data; or hides it. Its index entry moves with it, and the count of its
    /// list follows the visible links. Only the lock holder of the link touches its index entry.
    async fn change_link(&self, list: List, slot: Slot, visible: bool) -> Result<u64> {
        let graph = &self.bench.graph;
        let (key, count_key) = (link_key(graph, list, slot), list_key(list));
        let now_ms = LOADED_MS + (self.runtime.now_ns() / 1_000_000) as u32;
        self.transact(async |transaction| {
            let found = transaction.get_for_update(Table::Link.tree(), &key).await?;
            let before = self.checks().borrow().link_state(slot);
            let told = found.map(|value| LinkRow::told(Table::Link, &value));
            held("link in slot", slot.0, told, before.map(|before| before.row))?;
            let was_visible = before.is_some_and(|before| before.row.visible);
            if !visible && !was_visible {
                return Ok(Ending::GiveUp(None));
            }
            if visible != was_visible {
                let found = transaction.get_for_update(Table::Count.tree(), &count_key).await?;
                let counted = self.checks().borrow().count_state(list);
                held("count of list", list.0, found.map(|value| CountRow::told(&value)), counted)?;
            }
            // All rows are locked: from here on nothing blocks the transaction.
            let time_ms = before.filter(|_| !visible).map_or(now_ms, |before| before.time_ms);
            let (link, count, change) =
                self.checks().borrow_mut().begin_link(list, slot, (visible, time_ms));
            if let Some(before) = before {
                let old = index_key(graph, list, before.row, before.time_ms);
                transaction.delete(Table::Index.tree(), &old).await?;
            }
            let new = index_key(graph, list, link.row, link.time_ms);
            transaction.put(Table::Index.tree(), &new, link.row.made(Table::Index)).await?;
            transaction.put(Table::Link.tree(), &key, link.row.made(Table::Link)).await?;
            if let Some(count) = count {
                transaction.put(Table::Count.tree(), &count_key, count.made()).await?;
            }
            Ok(Ending::Commit(Some(change)))
        })
        .await
    }

    async fn count_links(&self, list: List) -> Result<u64> {
        let floor = self.checks().borrow().count_floor(list);
        let found = self.store.get(Table::Count.tree(), &list_key(list)).await?;
        let told = found.map(|value| CountRow::told(&value));
        self.checks().borrow().count(list, floor, told_all("count of list", list.0, told)?)?;
        Ok(u64::from(told.is_some()))
    }

    async fn get_links(&self, list: List, slots: &[Slot]) -> Result<u64> {
        let mut links = 0;
        for slot in slots {
            let floor = self.checks().borrow().link_floor(*slot);
            let key = link_key(&self.bench.graph, list, *slot);
            let found = self.store.get(Table::Link.tree(), &key).await?;
            links += u64::from(found.is_some());
            let told = found.map(|value| LinkRow::told(Table::Link, &value));
            self.checks().borrow().link(*slot, floor, told_all("link in slot", slot.0, told)?)?;
        }
        Ok(links)
    }

    /// The visible links of a list, the newest first.
    async fn get_list(&self, list: List) -> Result<u64> {
        let floor = self.checks().borrow().list_floor(list);
        let [from, to] = visible_links(list);
        let found = self.store.scan(Table::Index.tree(), &from, Some(&to), LIST_ROWS_MAX).await?;
        let mut links = Vec::with_capacity(found.len());
        for (key, value) in &found {
            let link = told_all("list", list.0, Some(LinkRow::told(Table::Index, value)))?;
            let slots = self.bench.graph.slots_of(list);
            let Some(link) = link.filter(|link| slots.contains(&link.slot.0)) else {
                return Err(wrong(format_args!("list {} has {value:?} of another", list.0)));
            };
            let state = self.checks().borrow().link_state(link.slot);
            let newest = state.filter(|state| state.row == link);
            let whole = newest.is_none_or(|newest| {
                **key == index_key(&self.bench.graph, list, link, newest.time_ms)
            });
            if !whole {
                return Err(wrong(format_args!("list {} has {link:?} out of place", list.0)));
            }
            links.push(link);
        }
        if !found.is_sorted_by(|(before, _), (after, _)| before < after) {
            return Err(wrong(format_args!("list {} is out of order", list.0)));
        }
        self.checks().borrow().list(list, floor, links.into_iter())?;
        Ok(found.len() as u64)
    }

    async fn get_node(&self, node: u64) -> Result<u64> {
        let floor = self.checks().borrow().node_floor(node);
        let found = self.store.get(Table::Node.tree(), &node_key(node)).await?;
        let told = found.map(|value| told_node(&value));
        self.checks().borrow().node(node, floor, told_all("node", node, told)?)?;
        Ok(u64::from(told.is_some()))
    }

    async fn add_node(&self) -> Result<u64> {
        let node = self.checks().borrow().nodes().0;
        let change = self.checks().borrow_mut().begin_node(node, false);
        self.transact(async |transaction| {
            let value = rows::node(node, 1);
            transaction.put(Table::Node.tree(), &node_key(node), value).await?;
            Ok(Ending::Commit(Some(change)))
        })
        .await
    }

    /// Gives a node new data, or deletes it. A node that is already gone is left alone.
    async fn change_node(&self, node: u64, takes_out: bool) -> Result<u64> {
        let key = node_key(node);
        self.transact(async |transaction| {
            let found = transaction.get_for_update(Table::Node.tree(), &key).await?;
            let before = self.checks().borrow().node_state(node);
            let told = found.map(|value| told_node(&value));
            held("node", node, told, before.map(|version| (node, version)))?;
            let Some(before) = before else { return Ok(Ending::GiveUp(None)) };
            let change = self.checks().borrow_mut().begin_node(node, takes_out);
            if takes_out {
                transaction.delete(Table::Node.tree(), &key).await?;
            } else {
                let value = rows::node(node, before + 1);
                transaction.put(Table::Node.tree(), &key, value).await?;
            }
            Ok(Ending::Commit(Some(change)))
        })
        .await
    }
}

/// The contents of a row; an error if it is not a valid row of its table.
pub(super) fn told_all<T: Copy>(
    what: &str,
    number: u64,
    told: Option<Option<T>>,
) -> Result<Option<T>> {
    match told {
        Some(None) => Err(wrong(format_args!("{what} {number}: found what is no such row"))),
        told => Ok(told.flatten()),
    }
}

/// Checks that the holder of a row's lock finds the row as it was last written.
fn held<T>(what: &str, number: u64, told: Option<Option<T>>, expected: Option<T>) -> Result<()>
where
    T: Copy + PartialEq + std::fmt::Debug,
{
    let found = told_all(what, number, told)?;
    if found == expected {
        return Ok(());
    }
    Err(wrong(format_args!("{what} {number}, held: found {found:?} instead of {expected:?}")))
}
