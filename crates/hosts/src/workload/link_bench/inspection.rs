//! Compares all tables of an engine with each other, and with the rows that were written.
use tantalum_base::Result;

use super::checks::wrong;
use super::graph::List;
use super::rows::{CountRow, LinkRow, Table, index_key, link_key, list_key, node_key, told_node};
use super::run::LinkBench;
use crate::workload::RowStore;
use crate::workload::rows::each_row;

/// Numbers of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Inspection {
    /// Nodes.
    pub nodes: u64,
    /// Links, which equal the number of index entries.
    pub links: u64,
    /// Links that are visible.
    pub visible_links: u64,
    /// Counts.
    pub counts: u64,
}

impl LinkBench {
    /// Reads all tables while no operation is in progress: everything that was written is there and nothing else, each link has its entry
    /// in the index, and each count is the number of visible links in the table of links.
    ///
    /// # Errors
    /// `Corrupt` if this is not so; those of the engine.
    pub async fn inspect<S: RowStore>(&self, store: &S) -> Result<Inspection> {
        let mut found = Inspection::default();
        let graph = &self.graph;
        each_row(store, Table::Node.tree(), |key, value: &S::Value| {
            let told = told_node(value);
            let node =
                told.filter(|told| node_key(told.0) == **key).ok_or_else(|| misplaced(key))?;
            found.nodes += 1;
            match self.checks.borrow().node_state(node.0) {
                Some(version) if version == node.1 => Ok(()),
                state => Err(wrong(format_args!("node {node:?} instead of version {state:?}"))),
            }
        })
        .await?;
        let mut visible = vec![0; graph.lists() as usize];
        each_row(store, Table::Link.tree(), |key, value: &S::Value| {
            let link = LinkRow::told(Table::Link, value).ok_or_else(|| misplaced(key))?;
            let list = graph.list_of(link.slot);
            found.links += 1;
            visible[list.0 as usize] += u64::from(link.visible);
            let state = self.checks.borrow().link_state(link.slot);
            let whole = state.is_some_and(|state| state.row == link);
            self.expect(whole && **key == link_key(graph, list, link.slot), key)
        })
        .await?;
        let mut entries = 0;
        each_row(store, Table::Index.tree(), |key, value: &S::Value| {
            let link = LinkRow::told(Table::Index, value).ok_or_else(|| misplaced(key))?;
            entries += 1;
            let state = self.checks.borrow().link_state(link.slot);
            let state = state.filter(|state| state.row == link).ok_or_else(|| misplaced(key))?;
            let place = index_key(graph, graph.list_of(link.slot), link, state.time_ms);
            self.expect(**key == place, key)
        })
        .await?;
        let mut counted = 0;
        each_row(store, Table::Count.tree(), |key, value: &S::Value| {
            let count = CountRow::told(value).ok_or_else(|| misplaced(key))?;
            found.counts += 1;
            counted += count.links;
            let List(list) = count.list;
            let links = visible.get(list as usize).copied();
            let whole = links == Some(count.links) && **key == list_key(count.list);
            self.expect(whole && self.checks.borrow().count_state(count.list) == Some(count), key)
        })
        .await?;
        found.visible_links = visible.iter().sum();
        let (nodes, gone) = self.checks.borrow().nodes();
        if found.nodes != nodes - gone || entries != found.links || counted != found.visible_links {
            return Err(wrong(format_args!(
                "{found:?} of {nodes} nodes, {gone} gone; {entries} entries; {counted} counted"
            )));
        }
        Ok(found)
    }

    fn expect(&self, whole: bool, key: &[u8]) -> Result<()> {
        if whole { Ok(()) } else { Err(misplaced(key)) }
    }
}

fn misplaced(key: &[u8]) -> tantalum_base::Error {
    wrong(format_args!("the row with the key {key:x?} is not what was written there"))
}
