//! The requests of clients: the published mix, with a separate power law for each kind of access (`FBWorkload`).
use tantalum_base::Rng;
use tantalum_trace::link_bench::Operation;
use tantalum_trace::zipf::Zipf;

use super::graph::{Graph, LINK_TYPES, List, Scatter, Slot};

/// Zipf exponents: of nodes whose links are read and changed, and of nodes that are themselves read and changed.
const LINK_READS: f64 = 0.8;
const LINK_WRITES: f64 = 0.741;
const NODE_READS: f64 = 0.625;
const NODE_UPDATES: f64 = 0.606;

/// Share of the accesses to links that go to nodes chosen independently of their number of links.
const UNCORRELATED_READS: f64 = 0.995;
const UNCORRELATED_WRITES: f64 = 0.95;

/// For links requested together: the probability that this one is the last, and the maximum number.
const LAST_LINK: f64 = 0.382;
const LINKS_MAX: usize = 128;

/// An operation and its target.
#[derive(Clone, Debug)]
pub(super) enum Request {
    /// Insert a link or update it; it becomes visible.
    PutLink(List, Slot),
    /// Hide a link.
    HideLink(List, Slot),
    /// Read the number of links of a list.
    CountLinks(List),
    /// Read some links of a list.
    GetLinks(List, Vec<Slot>),
    /// Read a list.
    GetList(List),
    /// Read a node.
    GetNode(u64),
    /// Insert a node.
    AddNode,
    /// Update a node if it is there.
    UpdateNode(u64),
    /// Delete a node if it exists.
    DeleteNode(u64),
}

/// The source of requests: one sequence for all clients.
#[derive(Debug)]
pub(super) struct Draws {
    rng: Rng,
    link_reads: Zipf,
    link_writes: Zipf,
    node_reads: Zipf,
    node_updates: Zipf,
}

impl Draws {
    pub(super) fn new(nodes: u64, seed: u64) -> Self {
        Draws {
            rng: Rng::split(seed, "linkbench"),
            link_reads: Zipf::new(nodes, LINK_READS),
            link_writes: Zipf::new(nodes, LINK_WRITES),
            node_reads: Zipf::new(nodes, NODE_READS),
            node_updates: Zipf::new(nodes, NODE_UPDATES),
        }
    }

    /// The next request. Nodes added during a run are not requested, as in the benchmark.
    pub(super) fn draw(&mut self, graph: &Graph) -> (Operation, Request) {
        let operation = Operation::draw(&mut self.rng);
        let request = match operation {
            Operation::AddLink | Operation::UpdateLink => {
                let list = self.list_to_change(graph);
                Request::PutLink(list, self.slot(graph, list))
            }
            Operation::DeleteLink => {
                let list = self.list_to_change(graph);
                let loaded = graph.loaded(list).max(1);
                let first = graph.slots_of(list).start;
                Request::HideLink(list, Slot(first + self.rng.below(loaded)))
            }
            Operation::CountLink => Request::CountLinks(self.list_to_read(graph)),
            Operation::GetLinkList => Request::GetList(self.list_to_read(graph)),
            Operation::MultigetLink => {
                let list = self.list_to_read(graph);
                let links = links_at_once(&mut self.rng);
                let mut slots: Vec<_> = (0..links).map(|_| self.slot(graph, list)).collect();
                slots.sort_unstable();
                slots.dedup();
                Request::GetLinks(list, slots)
            }
            Operation::GetNode => {
                let rank = self.node_reads.next(&mut self.rng) - 1;
                Request::GetNode(graph.by_node_requests.node(rank))
            }
            Operation::AddNode => Request::AddNode,
            Operation::UpdateNode => {
                let rank = self.node_updates.next(&mut self.rng) - 1;
                Request::UpdateNode(graph.by_node_requests.node(rank))
            }
            // Every node is equally likely: otherwise the hot ones would soon be gone.
            Operation::DeleteNode => Request::DeleteNode(self.rng.below(graph.nodes)),
        };
        (operation, request)
    }

    fn list_to_read(&mut self, graph: &Graph) -> List {
        let scatter = self.scatter(graph, UNCORRELATED_READS);
        let rank = self.link_reads.next(&mut self.rng) - 1;
        self.list(scatter.node(rank))
    }

    fn list_to_change(&mut self, graph: &Graph) -> List {
        let scatter = self.scatter(graph, UNCORRELATED_WRITES);
        let rank = self.link_writes.next(&mut self.rng) - 1;
        self.list(scatter.node(rank))
    }

    fn scatter(&mut self, graph: &Graph, uncorrelated: f64) -> Scatter {
        if self.rng.chance(uncorrelated) { graph.by_list_requests } else { graph.by_links }
    }

    fn list(&mut self, node: u64) -> List {
        List::new(node, self.rng.below(u64::from(LINK_TYPES)) as u32)
    }

    /// A slot of a list: half of them had a link when the graph was loaded.
    fn slot(&mut self, graph: &Graph, list: List) -> Slot {
        let slots = graph.slots_of(list);
        Slot(slots.start + self.rng.below(slots.end - slots.start))
    }
}

/// The number of links requested together.
fn links_at_once(rng: &mut Rng) -> usize {
    let mut links = 1;
    while links < LINKS_MAX && !rng.chance(LAST_LINK) {
        links += 1;
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: u64 = 1_000;
    const DRAWS: usize = 300_000;

    /// The share of each node in the requests, in descending order.
    fn shares(of: impl Fn(&Request) -> Option<u64>) -> Vec<f64> {
        let graph = Graph::new(NODES).unwrap();
        let mut draws = Draws::new(NODES, 7);
        let mut counts = vec![0.0; NODES as usize];
        for _ in 0..DRAWS {
            if let Some(node) = of(&draws.draw(&graph).1) {
                counts[node as usize] += 1.0;
            }
        }
        let all: f64 = counts.iter().sum();
        counts.sort_by(|a, b| f64::total_cmp(b, a));
        counts.into_iter().map(|count| count / all).collect()
    }

    fn expected(rank: i32, exponent: f64) -> f64 {
        let weight = |rank: i32| f64::from(rank).powf(-exponent);
        weight(rank) / (1..=NODES as i32).map(weight).sum::<f64>()
    }

    /// The hottest node of each kind of access, compared with its power law.
    #[test]
    fn each_kind_of_access_has_its_own_power_law() {
        let hottest = shares(|request| match request {
            Request::GetList(list) => Some(list.node_and_kind().0),
            _ => None,
        })[0];
        let of_reads = expected(1, LINK_READS);
        assert!((hottest / of_reads - 1.0).abs() < 0.06, "{hottest} beside {of_reads}");
        let hottest = shares(|request| match request {
            Request::PutLink(list, _) => Some(list.node_and_kind().0),
            _ => None,
        })[0];
        let of_writes = UNCORRELATED_WRITES * expected(1, LINK_WRITES);
        assert!((hottest / of_writes - 1.0).abs() < 0.08, "{hottest} beside {of_writes}");
        let hottest = shares(|request| match request {
            Request::GetNode(node) => Some(*node),
            _ => None,
        })[0];
        let of_nodes = expected(1, NODE_READS);
        assert!((hottest / of_nodes - 1.0).abs() < 0.15, "{hottest} beside {of_nodes}");
        let hottest = shares(|request| match request {
            Request::DeleteNode(node) => Some(*node),
            _ => None,
        })[0];
        assert!(hottest < 6.0 / NODES as f64, "{hottest}: any node is as likely to be taken out");
    }

    /// The benchmark's mean is 2.6.
    #[test]
    fn links_are_asked_for_by_two_or_three() {
        let rng = &mut Rng::new(1);
        let links: usize = (0..DRAWS).map(|_| links_at_once(rng)).sum();
        let mean = links as f64 / DRAWS as f64;
        assert!((mean - 1.0 / LAST_LINK).abs() < 0.02, "{mean}");
    }

    #[test]
    fn links_that_are_hidden_were_loaded() {
        let graph = Graph::new(NODES).unwrap();
        let mut draws = Draws::new(NODES, 7);
        for _ in 0..DRAWS {
            if let Request::HideLink(list, slot) = draws.draw(&graph).1 {
                let place = slot.0 - graph.slots_of(list).start;
                assert!(place < graph.loaded(list).max(1));
            }
        }
    }
}
