//! Page accesses like those of LinkBench: short transactions over a social graph in B+-trees.
//!
//! Source: Armstrong, Ponnekanti, Borthakur, Callaghan, "LinkBench: a database benchmark based on the Facebook social
//! graph", SIGMOD 2013: the ten operations with their shares of the load, 31 % of them writes. The rest is a model.
//! Only leaf pages are counted, as inner ones stay in memory. Ids are drawn from one Zipf distribution and scattered.
//! Links have a separate tree, ordered by id, and a secondary index that covers a link list; in both, and in the
//! counts, the leaf of a node has the same relative position as in the nodes' tree. The sizes of the trees follow a
//! database of 68 GB: nodes 28 %, links and their index 34 % each, counts 4 %.
use crate::event::PageEvent;
use crate::zipf::Zipf;
use std::ops::Range;
use tantalum_base::{PageNo, Rng};

/// Ids per 4 KiB of the database: the default graph has a million per gigabyte.
const IDS_PER_PAGE: u64 = 4;
/// Nodes added to a leaf of 4 KiB before the next leaf is begun.
const NODES_PER_LEAF: u64 = 16;

/// One of LinkBench's ten operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Inserts a link, or makes it visible again.
    AddLink,
    /// Hides a link.
    DeleteLink,
    /// Changes the time and the data of a link.
    UpdateLink,
    /// Reads the number of links of a type that a node has.
    CountLink,
    /// Reads some links of a node, given their other ends.
    MultigetLink,
    /// Reads the newest links of a type that a node has.
    GetLinkList,
    /// Reads a node.
    GetNode,
    /// Inserts a node.
    AddNode,
    /// Changes the data of a node.
    UpdateNode,
    /// Removes a node.
    DeleteNode,
}

/// Shares of the load, in hundredths of a percent.
const MIX: [(Operation, u64); 10] = [
    (Operation::AddLink, 899),
    (Operation::DeleteLink, 299),
    (Operation::UpdateLink, 801),
    (Operation::CountLink, 489),
    (Operation::MultigetLink, 53),
    (Operation::GetLinkList, 5071),
    (Operation::GetNode, 1293),
    (Operation::AddNode, 257),
    (Operation::UpdateNode, 737),
    (Operation::DeleteNode, 101),
];

impl Operation {
    /// All operations, in the order of their numbers.
    pub const ALL: [Operation; 10] = [
        Operation::AddLink,
        Operation::DeleteLink,
        Operation::UpdateLink,
        Operation::CountLink,
        Operation::MultigetLink,
        Operation::GetLinkList,
        Operation::GetNode,
        Operation::AddNode,
        Operation::UpdateNode,
        Operation::DeleteNode,
    ];

    /// LinkBench's name of the operation.
    pub fn name(self) -> &'static str {
        match self {
            Operation::AddLink => "ADD_LINK",
            Operation::DeleteLink => "DELETE_LINK",
            Operation::UpdateLink => "UPDATE_LINK",
            Operation::CountLink => "COUNT_LINK",
            Operation::MultigetLink => "MULTIGET_LINK",
            Operation::GetLinkList => "GET_LINKS_LIST",
            Operation::GetNode => "GET_NODE",
            Operation::AddNode => "ADD_NODE",
            Operation::UpdateNode => "UPDATE_NODE",
            Operation::DeleteNode => "DELETE_NODE",
        }
    }

    /// Its share of the load in percent, with two decimals.
    pub fn percent(self) -> f64 {
        MIX[self as usize].1 as f64 / 100.0
    }

    /// The operation of the next transaction.
    pub fn draw(rng: &mut Rng) -> Operation {
        let mut left = rng.below(MIX.iter().map(|(_, share)| share).sum());
        for (operation, share) in MIX {
            match left.checked_sub(share) {
                Some(rest) => left = rest,
                None => return operation,
            }
        }
        unreachable!("the shares add up")
    }
}

/// Generates transactions.
#[derive(Clone, Debug)]
pub struct LinkBench {
    rng: Rng,
    ids: Zipf,
    ids_count: u64,
    nodes: Range<u64>,
    links: Range<u64>,
    link_index: Range<u64>,
    counts: Range<u64>,
    nodes_per_leaf: u64,
    nodes_added: u64,
}

impl LinkBench {
    /// Fewer pages cannot hold the four trees.
    pub const PAGES_MIN: u64 = 25;

    /// A database of `pages` pages of 4 KiB; ids are drawn with exponent `theta`.
    ///
    /// # Panics
    /// Below [`PAGES_MIN`](Self::PAGES_MIN).
    pub fn new(pages: u64, theta: f64, seed: u64) -> LinkBench {
        LinkBench::with_page_size(pages, 1, theta, seed)
    }

    /// The same with pages of `page_units` times 4 KiB, each of which has proportionally more ids.
    ///
    /// # Panics
    /// Below [`PAGES_MIN`](Self::PAGES_MIN).
    pub fn with_page_size(pages: u64, page_units: u64, theta: f64, seed: u64) -> LinkBench {
        assert!(pages >= Self::PAGES_MIN, "{pages} pages cannot hold LinkBench's trees");
        let at = |percent: u64| pages * percent / 100;
        let ids_count = pages * page_units * IDS_PER_PAGE;
        LinkBench {
            rng: Rng::split(seed, "link bench"),
            ids: Zipf::new(ids_count, theta),
            ids_count,
            nodes: 0..at(28),
            links: at(28)..at(62),
            link_index: at(62)..at(96),
            counts: at(96)..pages,
            nodes_per_leaf: page_units * NODES_PER_LEAF,
            nodes_added: 0,
        }
    }

    /// Appends the page accesses of the next transaction to `out`; returns whether it changes anything.
    pub fn transaction(&mut self, out: &mut Vec<PageEvent>) -> bool {
        let (operation, place) = (Operation::draw(&mut self.rng), self.place());
        let at = |tree: &Range<u64>| {
            let leaf = (place * (tree.end - tree.start) as f64) as u64;
            PageNo(tree.start + leaf.min(tree.end - tree.start - 1))
        };
        let mut read = |page| out.push(PageEvent::Read { page, pages: 1 });
        match operation {
            Operation::GetNode => read(at(&self.nodes)),
            Operation::CountLink => read(at(&self.counts)),
            Operation::GetLinkList => read(at(&self.link_index)),
            Operation::MultigetLink => read(at(&self.links)),
            _ => {
                let mut write = |page| out.push(PageEvent::Write { page, pages: 1 });
                match operation {
                    Operation::UpdateNode | Operation::DeleteNode => write(at(&self.nodes)),
                    Operation::AddNode => {
                        let leaf = self.nodes_added / self.nodes_per_leaf % self.nodes.end;
                        self.nodes_added += 1;
                        write(PageNo(leaf));
                    }
                    // The index also contains the visibility and the data of a link; a count changes with the number of
                    // links.
                    _ => {
                        write(at(&self.links));
                        write(at(&self.link_index));
                        if operation != Operation::UpdateLink {
                            write(at(&self.counts));
                        }
                    }
                }
                return true;
            }
        }
        false
    }

    /// The relative position, from 0 to 1, of the transaction's id in every tree. Hot ids are scattered.
    fn place(&mut self) -> f64 {
        let rank = self.ids.next(&mut self.rng) - 1;
        let scattered = rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
        (scattered % self.ids_count) as f64 / self.ids_count as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::FastMap;

    #[test]
    fn three_transactions_in_ten_write() {
        let mut bench = LinkBench::new(10_000, 0.6, 1);
        let mut events = Vec::new();
        let writing = (0..100_000).filter(|_| bench.transaction(&mut events)).count();
        assert!((30_000..32_000).contains(&writing), "{writing}");
        let mut pages = FastMap::default();
        for event in &events {
            let (PageEvent::Read { page, .. } | PageEvent::Write { page, .. }) = event else {
                panic!("{event:?}")
            };
            assert!(page.0 < 10_000);
            *pages.entry(*page).or_insert(0_u64) += 1;
        }
        // The load is skewed: a few of 10,000 pages get a large part of the accesses.
        let mut hits: Vec<u64> = pages.values().copied().collect();
        hits.sort_unstable_by(|a, b| b.cmp(a));
        let hottest: u64 = hits[..1000].iter().sum();
        assert!(hottest as f64 > 0.3 * events.len() as f64, "{hottest} of {}", events.len());
    }

    /// A page four times as large has the content of four adjacent small pages.
    #[test]
    fn larger_pages_hold_the_same_ids() {
        let (mut small, mut large) =
            (LinkBench::new(40_000, 0.6, 3), LinkBench::with_page_size(10_000, 4, 0.6, 3));
        let (mut of_small, mut of_large) = (Vec::new(), Vec::new());
        for _ in 0..10_000 {
            small.transaction(&mut of_small);
            large.transaction(&mut of_large);
        }
        assert_eq!(of_small.len(), of_large.len());
        let page = |event: &PageEvent| match event {
            PageEvent::Read { page, .. } | PageEvent::Write { page, .. } => page.0,
            event => panic!("{event:?}"),
        };
        let holds = |(small, large): (&PageEvent, &PageEvent)| page(small) / 4 == page(large);
        assert!(of_small.iter().zip(&of_large).all(holds));
    }

    #[test]
    fn the_seed_decides() {
        let make = |seed| {
            let mut bench = LinkBench::new(LinkBench::PAGES_MIN, 1.0, seed);
            let mut events = Vec::new();
            for _ in 0..1000 {
                bench.transaction(&mut events);
            }
            events
        };
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
    }
}
