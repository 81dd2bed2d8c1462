//! Nodes, and the places for their links.
use tantalum_base::{Error, ErrorKind, Result};

use super::degrees::links_of;

/// Types of links; each node's are spread over them.
pub(super) const LINK_TYPES: u32 = 2;

/// A permutation of `0..nodes` that scatters ranks over nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scatter {
    nodes: u64,
    step: u64,
    offset: u64,
}

impl Scatter {
    /// Uses steps of `part` of all nodes.
    fn new(nodes: u64, part: f64, offset: u64) -> Self {
        let mut step = ((nodes as f64 * part) as u64).max(1);
        while common_divisor(step, nodes) != 1 {
            step += 1;
        }
        Scatter { nodes, step, offset: offset % nodes }
    }

    /// The node with this rank; both from 0 on.
    pub(super) fn node(&self, rank: u64) -> u64 {
        ((u128::from(rank) * u128::from(self.step) + u128::from(self.offset))
            % u128::from(self.nodes)) as u64
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The links of one type of a node: its list. Lists are numbered in the order of nodes and types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct List(pub(super) u64);

/// A place for a link in a list; the target of the link determines its place in the list. Slots are numbered in the order of
/// lists.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Slot(pub(super) u64);

/// A graph as it is loaded, and the places for links that may be added later. Nodes are numbered from 0 on.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: u64,
    /// The first slot of each list, and the end of the last list.
    first_slots: Vec<u64>,
    /// Number of loaded links of each list; they are in its first slots.
    loaded: Vec<u32>,
    /// Ranks of nodes by number of links; also the ranks for requests that are correlated with it.
    pub(super) by_links: Scatter,
    /// Ranks of nodes for the other requests to their links.
    pub(super) by_list_requests: Scatter,
    /// Ranks of nodes for requests to the nodes themselves.
    pub(super) by_node_requests: Scatter,
}

impl Graph {
    /// # Errors
    /// `InvalidInput` for no nodes or more than 2^22.
    pub(super) fn new(nodes: u64) -> Result<Graph> {
        if nodes == 0 || nodes > 1 << 22 {
            let problem = format!("{nodes} nodes: there are 1 to 2^22");
            return Err(Error::new(ErrorKind::InvalidInput, problem));
        }
        let by_links = Scatter::new(nodes, 0.618_034, 7);
        let mut links = vec![0; nodes as usize];
        for rank in 0..nodes {
            links[by_links.node(rank) as usize] = links_of(rank, nodes);
        }
        let mut loaded = Vec::with_capacity(nodes as usize * LINK_TYPES as usize);
        for links in links {
            loaded.extend((0..LINK_TYPES).map(|kind| (links + LINK_TYPES - 1 - kind) / LINK_TYPES));
        }
        let mut first_slots = Vec::with_capacity(loaded.len() + 1);
        let mut next = 0;
        for links in &loaded {
            first_slots.push(next);
            next += u64::from((2 * links).max(1));
        }
        first_slots.push(next);
        let by_list_requests = Scatter::new(nodes, 0.414_214, nodes / 3);
        let by_node_requests = Scatter::new(nodes, 0.732_051, nodes / 5);
        Ok(Graph { nodes, first_slots, loaded, by_links, by_list_requests, by_node_requests })
    }

    /// Number of lists of all nodes.
    pub(super) fn lists(&self) -> u64 {
        self.loaded.len() as u64
    }

    /// Number of places for links.
    pub(super) fn slots(&self) -> u64 {
        self.first_slots[self.loaded.len()]
    }

    /// Number of loaded links of a list: they are in its first slots.
    pub(super) fn loaded(&self, list: List) -> u64 {
        u64::from(self.loaded[list.0 as usize])
    }

    /// The slots of a list: twice as many as its loaded links (at least 1), so that half of the requested links exist.
    pub(super) fn slots_of(&self, list: List) -> std::ops::Range<u64> {
        self.first_slots[list.0 as usize]..self.first_slots[list.0 as usize + 1]
    }

    /// The list of a slot.
    pub(super) fn list_of(&self, slot: Slot) -> List {
        List(self.first_slots.partition_point(|first| *first <= slot.0) as u64 - 1)
    }
}

impl List {
    pub(super) fn new(node: u64, kind: u32) -> List {
        List(node * u64::from(LINK_TYPES) + u64::from(kind))
    }

    /// Its node and its type.
    pub(super) fn node_and_kind(self) -> (u64, u32) {
        (self.0 / u64::from(LINK_TYPES), (self.0 % u64::from(LINK_TYPES)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_is_of_another_node() {
        for nodes in [1, 2, 3, 10, 1_000, 4_096] {
            let graph = Graph::new(nodes).unwrap();
            for scatter in [graph.by_links, graph.by_list_requests, graph.by_node_requests] {
                let mut found: Vec<u64> = (0..nodes).map(|rank| scatter.node(rank)).collect();
                found.sort_unstable();
                assert!(found.iter().copied().eq(0..nodes), "{nodes}");
            }
        }
    }

    #[test]
    fn each_slot_is_in_its_list_and_half_are_loaded() {
        let graph = Graph::new(2_000).unwrap();
        let mut links = 0;
        for list in (0..graph.lists()).map(List) {
            let slots = graph.slots_of(list);
            assert_eq!(slots.end - slots.start, (2 * graph.loaded(list)).max(1));
            assert!(
                [slots.start, slots.end - 1].map(|slot| graph.list_of(Slot(slot))) == [list; 2]
            );
            links += graph.loaded(list);
        }
        let expected: u64 = (0..2_000).map(|rank| u64::from(links_of(rank, 2_000))).sum();
        assert_eq!(links, expected);
    }
}
