//! The fate of changes that a power cut interrupted: the version found in each row is the newest from then on.
use tantalum_base::Result;

use super::super::graph::{Graph, List, Slot};
use super::super::rows::{CountRow, LinkRow};
use super::{Checks, wrong};

impl Checks {
    /// Nodes with uncommitted changes.
    pub(in super::super) fn open_nodes(&self) -> Vec<u64> {
        self.nodes.open().collect()
    }

    /// Links with uncommitted changes.
    pub(in super::super) fn open_links(&self) -> Vec<Slot> {
        self.links.open().map(Slot).collect()
    }

    /// Lists of such links.
    pub(in super::super) fn open_lists(&self) -> Vec<List> {
        self.list_changes.open().map(List).collect()
    }

    /// Records the state in which a node was found: `None` if there is no node.
    ///
    /// # Errors
    /// `Corrupt` if that state is not possible.
    pub(in super::super) fn settle_node(
        &mut self,
        node: u64,
        found: Option<(u64, u32)>,
    ) -> Result<()> {
        let ended = self.nodes.ended(node);
        self.node(node, ended, found)?;
        match found {
            Some((_, version)) => {
                // A deletion in progress did not happen.
                self.nodes_gone.remove(&node);
                self.nodes.settle(node, version);
            }
            // A node whose insertion did not happen counts as deleted.
            None => {
                let gone = *self.nodes_gone.entry(node).or_insert(0);
                self.nodes.settle(node, gone);
            }
        }
        Ok(())
    }

    /// Records the state in which a link was found: `None` if there is no link.
    ///
    /// # Errors
    /// `Corrupt` if that state is not possible.
    pub(in super::super) fn settle_link(
        &mut self,
        slot: Slot,
        found: Option<LinkRow>,
    ) -> Result<()> {
        self.link(slot, self.links.ended(slot.0), found)?;
        let states = self.links_open.remove(&slot.0).unwrap_or_default();
        let state = found.map(|found| {
            let state = states.iter().find(|state| state.row == found).copied();
            state.ok_or_else(|| wrong(format_args!("link {found:?} is none of {states:?}")))
        });
        let state = state.transpose()?;
        self.links.settle(slot.0, state.map_or(0, |state| state.row.version));
        self.links_visible[slot.0 as usize] = state.is_some_and(|state| state.row.visible);
        self.link_times_ms[slot.0 as usize] = state.map_or(0, |state| state.time_ms);
        Ok(())
    }

    /// Records the count that was found for a list, all of whose links are settled: `None` if there is no count.
    ///
    /// # Errors
    /// `Corrupt` if that count is not possible.
    pub(in super::super) fn settle_list(
        &mut self,
        graph: &Graph,
        list: List,
        found: Option<CountRow>,
    ) -> Result<()> {
        let is_visible = |slot: &u64| self.links_visible[*slot as usize];
        let visible = graph.slots_of(list).filter(is_visible).count() as u32;
        self.visible[list.0 as usize] = visible;
        let (ended, begun) = (self.counts.ended(list.0), self.counts.begun(list.0));
        let is_right = match found {
            Some(found) => {
                let in_time = (ended.max(1)..=begun).contains(&found.version);
                in_time && found.list == list && found.links == u64::from(visible)
            }
            None => ended == 0 && visible == 0,
        };
        if !is_right {
            return Err(wrong(format_args!(
                "list {} has {visible} links, and its count is {found:?} (versions {ended} to {begun})",
                list.0
            )));
        }
        self.counts.settle(list.0, found.map_or(0, |found| found.version));
        let changes = self.list_changes.ended(list.0);
        self.list_changes.settle(list.0, changes);
        Ok(())
    }
}
