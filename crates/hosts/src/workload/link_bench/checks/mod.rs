//! The results that a read may return.
//!
//! A transaction that changes a row holds its lock, so the versions of a row have one order. A read finds no version that was
//! replaced before the read began, and none that had not begun when the read ended. A transaction that holds a row finds its newest
//! version. A list that does not change during the read is found complete.
//!
//! ```text
//! versions   of the rows of a table: those begun, and those committed
//! after_cut  the fate of changes that a power cut interrupted
//! ```
mod after_cut;
mod versions;

use tantalum_base::{Error, ErrorKind, FastMap, Result};

use super::graph::{Graph, List, Slot};
use super::rows::{CountRow, LinkRow};
use versions::Versions;

/// A link with all changes that have begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LinkState {
    pub(super) row: LinkRow,
    pub(super) time_ms: u32,
}

/// The writes so far, and which of them are committed.
#[derive(Debug)]
pub(super) struct Checks {
    nodes: Versions,
    /// The version at which a node was deleted.
    nodes_gone: FastMap<u64, u32>,
    links: Versions,
    links_visible: Vec<bool>,
    link_times_ms: Vec<u32>,
    /// For links with uncommitted changes, by slot: the committed state, and the states begun since.
    links_open: FastMap<u64, Vec<LinkState>>,
    counts: Versions,
    /// Number of visible links of each list.
    visible: Vec<u32>,
    /// Numbers of changes to the links of each list: begun, and committed.
    list_changes: Versions,
}

/// Changes of a transaction that is being committed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// Of a node.
    Node { node: u64, version: u32 },
    /// Of a link, and of its list's count if that changes.
    Link { list: List, slot: Slot, version: u32, count_version: Option<u32> },
}

/// The state of a list before it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListFloor {
    changes: u32,
    at_rest: bool,
}

pub(super) fn wrong(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, what.to_string())
}

impl Checks {
    pub(super) fn new(graph: &Graph) -> Self {
        let (slots, lists) = (graph.slots(), graph.lists());
        Checks {
            nodes: Versions::of(graph.nodes),
            nodes_gone: FastMap::default(),
            links: Versions::of(slots),
            links_visible: vec![false; slots as usize],
            link_times_ms: vec![0; slots as usize],
            links_open: FastMap::default(),
            counts: Versions::of(lists),
            visible: vec![0; lists as usize],
            list_changes: Versions::of(lists),
        }
    }

    /// Number of nodes that ever existed, and of those that were deleted again.
    pub(super) fn nodes(&self) -> (u64, u64) {
        (self.nodes.begun.len() as u64, self.nodes_gone.len() as u64)
    }

    /// Begins a change of a node, which its lock holder has found or which is new.
    pub(super) fn begin_node(&mut self, node: u64, is_taken_out: bool) -> Change {
        let version = self.nodes.begin(node);
        if is_taken_out {
            self.nodes_gone.insert(node, version);
        }
        Change::Node { node, version }
    }

    /// Begins a change of a link, and of its list's count if that changes.
    pub(super) fn begin_link(
        &mut self,
        list: List,
        slot: Slot,
        (visible, time_ms): (bool, u32),
    ) -> (LinkState, Option<CountRow>, Change) {
        let before = self.link_state(slot);
        let version = self.links.begin(slot.0);
        let was_visible = std::mem::replace(&mut self.links_visible[slot.0 as usize], visible);
        self.link_times_ms[slot.0 as usize] = time_ms;
        self.list_changes.begin(list.0);
        let count = (was_visible != visible).then(|| {
            let links = &mut self.visible[list.0 as usize];
            *links = if visible { *links + 1 } else { *links - 1 };
            let links = u64::from(*links);
            CountRow { list, links, version: self.counts.begin(list.0) }
        });
        let count_version = count.map(|count| count.version);
        let link = LinkState { row: LinkRow { slot, visible, version }, time_ms };
        let open = self.links_open.entry(slot.0);
        open.or_insert_with(|| before.into_iter().collect()).push(link);
        (link, count, Change::Link { list, slot, version, count_version })
    }

    /// The change is committed.
    pub(super) fn end(&mut self, change: Change) {
        match change {
            Change::Node { node, version } => self.nodes.end(node, version),
            Change::Link { list, slot, version, count_version } => {
                self.links.end(slot.0, version);
                self.forget_replaced(slot);
                if let Some(version) = count_version {
                    self.counts.end(list.0, version);
                }
                self.list_changes.ended[list.0 as usize] += 1;
            }
        }
    }

    /// Forgets states of the link that a committed change has replaced.
    fn forget_replaced(&mut self, slot: Slot) {
        let (begun, ended) = (self.links.begun(slot.0), self.links.ended(slot.0));
        if begun == ended {
            self.links_open.remove(&slot.0);
        } else if let Some(states) = self.links_open.get_mut(&slot.0) {
            states.retain(|state| state.row.version >= ended);
        }
    }

    /// The oldest version that a read of a node that begins now may find; 0 if it may find no node.
    pub(super) fn node_floor(&self, node: u64) -> u32 {
        self.nodes.ended(node)
    }

    /// The same for a link.
    pub(super) fn link_floor(&self, slot: Slot) -> u32 {
        self.links.ended(slot.0)
    }

    /// The same for a count.
    pub(super) fn count_floor(&self, list: List) -> u32 {
        self.counts.ended(list.0)
    }

    pub(super) fn list_floor(&self, list: List) -> ListFloor {
        let changes = self.list_changes.begun(list.0);
        ListFloor { changes, at_rest: changes == self.list_changes.ended(list.0) }
    }

    /// Checks the result of a read of a node that began with this floor: `None` if there is no node.
    pub(super) fn node(&self, node: u64, floor: u32, found: Option<(u64, u32)>) -> Result<()> {
        let gone = self.nodes_gone.get(&node).copied();
        let whole = match found {
            Some((of, version)) => {
                of == node && self.nodes.may_find(node, floor, version) && gone != Some(version)
            }
            None => floor == 0 || gone.is_some(),
        };
        if whole {
            return Ok(());
        }
        let newest = self.nodes.begun(node);
        Err(wrong(format_args!(
            "node {node}: found {found:?}, where versions {floor} to {newest} may be found"
        )))
    }

    /// The same for a link.
    pub(super) fn link(&self, slot: Slot, floor: u32, found: Option<LinkRow>) -> Result<()> {
        let whole = match found {
            Some(found) => {
                let newest = self.link_state(slot).filter(|is| is.row.version == found.version);
                found.slot == slot
                    && self.links.may_find(slot.0, floor, found.version)
                    && newest.is_none_or(|newest| newest.row == found)
            }
            None => floor == 0,
        };
        if whole {
            return Ok(());
        }
        let newest = self.links.begun(slot.0);
        Err(wrong(format_args!(
            "link in slot {}: found {found:?}, where versions {floor} to {newest} may be found",
            slot.0
        )))
    }

    /// The same for a count.
    pub(super) fn count(&self, list: List, floor: u32, found: Option<CountRow>) -> Result<()> {
        let whole = match found {
            Some(found) => {
                let newest = found.version == self.counts.begun(list.0);
                found.list == list
                    && self.counts.may_find(list.0, floor, found.version)
                    && (!newest || found.links == u64::from(self.visible[list.0 as usize]))
            }
            None => floor == 0,
        };
        if whole {
            return Ok(());
        }
        let newest = self.counts.begun(list.0);
        Err(wrong(format_args!(
            "count of list {}: found {found:?}, where versions {floor} to {newest} may be found",
            list.0
        )))
    }

    /// Checks that a read that began with this floor may find these visible links of a list.
    pub(super) fn list(
        &self,
        list: List,
        floor: ListFloor,
        found: impl ExactSizeIterator<Item = LinkRow>,
    ) -> Result<()> {
        let whole = floor.at_rest && floor.changes == self.list_changes.begun(list.0);
        let links = found.len();
        if whole && links != self.visible[list.0 as usize] as usize {
            return Err(wrong(format_args!(
                "list {}: found {links} links of {}",
                list.0, self.visible[list.0 as usize]
            )));
        }
        for row in found {
            self.link(row.slot, if whole { self.link_floor(row.slot) } else { 0 }, Some(row))?;
            if !row.visible {
                return Err(wrong(format_args!("list {}: found a hidden link {row:?}", list.0)));
            }
        }
        Ok(())
    }

    /// The link that its lock holder must find; `None` if there is none.
    pub(super) fn link_state(&self, slot: Slot) -> Option<LinkState> {
        let (version, at) = (self.links.begun(slot.0), slot.0 as usize);
        let row = LinkRow { slot, visible: self.links_visible[at], version };
        (version > 0).then_some(LinkState { row, time_ms: self.link_times_ms[at] })
    }

    /// The count that its lock holder must find; `None` if there is none.
    pub(super) fn count_state(&self, list: List) -> Option<CountRow> {
        let (version, links) = (self.counts.begun(list.0), self.visible[list.0 as usize]);
        (version > 0).then_some(CountRow { list, links: u64::from(links), version })
    }

    /// The version of a node that its lock holder must find; `None` if there is no such node.
    pub(super) fn node_state(&self, node: u64) -> Option<u32> {
        let version = self.nodes.begun.get(node as usize).copied().filter(|version| *version > 0);
        version.filter(|_| !self.nodes_gone.contains_key(&node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: List = List(3);

    fn checks() -> (Graph, Checks, Slot) {
        let graph = Graph::new(10).unwrap();
        let (checks, slot) = (Checks::new(&graph), Slot(graph.slots_of(LIST).start));
        (graph, checks, slot)
    }

    #[test]
    fn what_was_replaced_before_a_read_began_may_not_be_found() {
        let (_, mut checks, slot) = checks();
        checks.link(slot, 0, None).unwrap();
        let (first, _, change) = checks.begin_link(LIST, slot, (true, 5));
        checks.link(slot, 0, None).unwrap();
        checks.link(slot, 0, Some(first.row)).unwrap();
        checks.end(change);
        let floor = checks.link_floor(slot);
        assert!(checks.link(slot, floor, None).is_err(), "lost");
        let (second, _, change) = checks.begin_link(LIST, slot, (false, 5));
        checks.link(slot, floor, Some(first.row)).unwrap();
        checks.link(slot, floor, Some(second.row)).unwrap();
        let other = LinkRow { visible: true, ..second.row };
        assert!(checks.link(slot, floor, Some(other)).is_err(), "it was hidden");
        checks.end(change);
        assert!(checks.link(slot, checks.link_floor(slot), Some(first.row)).is_err(), "replaced");
        let of_another = LinkRow { slot: Slot(slot.0 + 1), ..second.row };
        assert!(checks.link(slot, 0, Some(of_another)).is_err(), "another link");
    }

    #[test]
    fn a_list_at_rest_is_found_whole_and_counted() {
        let (_, mut checks, slot) = checks();
        let (link, count, change) = checks.begin_link(LIST, slot, (true, 5));
        let under_way = checks.list_floor(LIST);
        checks.list(LIST, under_way, std::iter::empty()).unwrap();
        checks.end(change);
        checks.list(LIST, under_way, std::iter::empty()).unwrap();
        let at_rest = checks.list_floor(LIST);
        assert!(checks.list(LIST, at_rest, std::iter::empty()).is_err(), "a link is missing");
        checks.list(LIST, at_rest, std::iter::once(link.row)).unwrap();
        let count = count.unwrap();
        assert_eq!(count.links, 1);
        checks.count(LIST, checks.count_floor(LIST), Some(count)).unwrap();
        let two = CountRow { links: 2, ..count };
        assert!(checks.count(LIST, 0, Some(two)).is_err(), "miscounted");
        // A new time alone does not change the count.
        assert!(checks.begin_link(LIST, slot, (true, 6)).1.is_none());
    }

    #[test]
    fn a_node_that_was_taken_out_is_found_no_more() {
        let (_, mut checks, _) = checks();
        let new = checks.begin_node(10, false);
        checks.end(new);
        checks.node(10, 1, Some((10, 1))).unwrap();
        assert!(checks.node(10, 1, None).is_err(), "lost");
        let gone = checks.begin_node(10, true);
        checks.node(10, 1, Some((10, 1))).unwrap();
        checks.node(10, 1, None).unwrap();
        checks.end(gone);
        assert!(checks.node(10, checks.node_floor(10), Some((10, 1))).is_err(), "it is gone");
        assert_eq!((checks.node_state(10), checks.nodes()), (None, (11, 1)));
    }
}
