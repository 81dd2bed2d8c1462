//! The tables, with the keys and the sizes that they have in MySQL.
//!
//! ```text
//! node   id                                     -> type, version, time, data
//! link   id1, link type, id2                    -> visibility, data, time, version
//! index  id1, link type, visibility, time, id2  -> version, data: a list with its newest link first
//! count  id, link type                          -> count, time, version
//! ```
//!
//! A value is as long as the columns that are not in the key, plus InnoDB's overhead per row. It contains the identity of its row
//! and its version. A link also contains whether it is visible, and a count the number of links.
use std::sync::LazyLock;
use tantalum_base::Rng;

use super::graph::{Graph, List, Slot};
use crate::values::Tree;
use crate::workload::LoadValue;

/// Number of trees for the tables.
pub const TREES: u32 = 4;

/// A table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// Nodes.
    Node,
    /// Links.
    Link,
    /// The secondary index of links.
    Index,
    /// Number of visible links of a list.
    Count,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; TREES as usize] = [Table::Node, Table::Link, Table::Index, Table::Count];

    /// Its tree.
    pub fn tree(self) -> Tree {
        Tree(self as u32)
    }
}

/// Bits of a count's record that hold the count.
const COUNT_BITS: u32 = 16;

/// InnoDB's: five bytes before a record, the length of its data and its part of the page's directory, less the bytes (2 + 1) that
/// an engine's pages need here.
const RECORD_BYTES: u32 = 4;

/// InnoDB's, in a clustered index: the last transaction that changed the row, and the place of its previous content.
const CHANGED_BYTES: u32 = 6 + 7;

/// Maximum bytes of a node's data, so that a row fits into pages of 4 KiB.
const NODE_DATA_MAX: f64 = 900.0;

/// Maximum bytes of a link's data.
const LINK_DATA_MAX: f64 = 255.0;

/// Number of different lengths of data.
const LENGTHS: usize = 4_096;

/// Samples of e^x for normally distributed x (sigma is 1 for nodes and links alike), to be multiplied by the median.
static LENGTH_FACTORS: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let mut rng = Rng::split(0, "lengths of data");
    let normal = |rng: &mut Rng| {
        let (radius, angle) = (1.0 - rng.unit(), rng.unit());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    };
    (0..LENGTHS).map(|_| normal(&mut rng).exp()).collect()
});

/// Length of the data of this version of a row, in bytes.
fn data_bytes(record: u64, version: u32, median: f64, most: f64) -> u32 {
    let mixed = (record ^ u64::from(version) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let factor = LENGTH_FACTORS[(mixed >> 52) as usize % LENGTHS];
    (median * factor).round().min(most) as u32
}

/// Length of a value in bytes.
fn value_bytes(table: Table, record: u64, version: u32) -> u32 {
    let link_data = || data_bytes(record >> 1, version, 8.0, LINK_DATA_MAX);
    match table {
        Table::Node => {
            let data = data_bytes(record, version, 128.0, NODE_DATA_MAX);
            RECORD_BYTES + CHANGED_BYTES + 4 + 8 + 4 + data
        }
        Table::Link => RECORD_BYTES + CHANGED_BYTES + 1 + 8 + 4 + link_data(),
        // At least the bytes that a value needs to contain its identity.
        Table::Index => (RECORD_BYTES + 4 + link_data()).max(12),
        Table::Count => RECORD_BYTES + CHANGED_BYTES + 4 + 8 + 8,
    }
}

/// This version of a row.
fn made<V: LoadValue>(table: Table, record: u64, version: u32) -> V {
    V::made(record, version, value_bytes(table, record, version))
}

/// Record and version of a row of the table; `None` if the value is not such a row.
fn told<V: LoadValue>(table: Table, value: &V) -> Option<(u64, u32)> {
    let bytes = u32::try_from(value.bytes()).ok()?;
    let (record, version) = value.told(bytes)?;
    (value_bytes(table, record, version) == bytes).then_some((record, version))
}

/// A version of a node.
pub(super) fn node<V: LoadValue>(node: u64, version: u32) -> V {
    made(Table::Node, node, version)
}

/// The node and the version that a row contains.
pub(super) fn told_node<V: LoadValue>(value: &V) -> Option<(u64, u32)> {
    told(Table::Node, value)
}

/// The content of a link's row, in its table or in the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LinkRow {
    pub(super) slot: Slot,
    pub(super) visible: bool,
    pub(super) version: u32,
}

impl LinkRow {
    pub(super) fn made<V: LoadValue>(self, table: Table) -> V {
        made(table, self.slot.0 << 1 | u64::from(self.visible), self.version)
    }

    pub(super) fn told<V: LoadValue>(table: Table, value: &V) -> Option<LinkRow> {
        let (record, version) = told(table, value)?;
        Some(LinkRow { slot: Slot(record >> 1), visible: record & 1 == 1, version })
    }
}

/// The content of a count's row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CountRow {
    pub(super) list: List,
    pub(super) links: u64,
    pub(super) version: u32,
}

impl CountRow {
    pub(super) fn made<V: LoadValue>(self) -> V {
        made(Table::Count, self.list.0 << COUNT_BITS | self.links, self.version)
    }

    pub(super) fn told<V: LoadValue>(value: &V) -> Option<CountRow> {
        let (record, version) = told(Table::Count, value)?;
        let (list, links) = (List(record >> COUNT_BITS), record & ((1 << COUNT_BITS) - 1));
        Some(CountRow { list, links, version })
    }
}

/// Ids are numbered from 1 on, as in the benchmark.
fn id_of(node: u64) -> [u8; 8] {
    (node + 1).to_be_bytes()
}

/// The key of a node.
pub(super) fn node_key(node: u64) -> [u8; 8] {
    id_of(node)
}

/// The key of a list's count, which is also the prefix of the keys of its links.
pub(super) fn list_key(list: List) -> [u8; 16] {
    let (node, kind) = list.node_and_kind();
    let mut key = [0; 16];
    key[..8].copy_from_slice(&id_of(node));
    key[8..].copy_from_slice(&u64::from(kind + 1).to_be_bytes());
    key
}

/// The key of a link. The link in the first slot of a list leads to the node itself, the next one to the next node, and so on.
pub(super) fn link_key(graph: &Graph, list: List, slot: Slot) -> [u8; 24] {
    let mut key = [0; 24];
    key[..16].copy_from_slice(&list_key(list));
    key[16..].copy_from_slice(&other_end(graph, list, slot));
    key
}

fn other_end(graph: &Graph, list: List, slot: Slot) -> [u8; 8] {
    id_of(list.node_and_kind().0 + slot.0 - graph.slots_of(list).start)
}

/// The key of a link in the index.
pub(super) fn index_key(graph: &Graph, list: List, link: LinkRow, time_ms: u32) -> [u8; 33] {
    let mut key = [0; 33];
    key[..16].copy_from_slice(&list_key(list));
    key[16] = u8::from(link.visible);
    // The newest one first.
    key[17..25].copy_from_slice(&(!u64::from(time_ms)).to_be_bytes());
    key[25..].copy_from_slice(&other_end(graph, list, link.slot));
    key
}

/// The begin and the end of a list's visible links in the index.
pub(super) fn visible_links(list: List) -> [[u8; 17]; 2] {
    [1, 2].map(|visibility| {
        let mut key = [visibility; 17];
        key[..16].copy_from_slice(&list_key(list));
        key
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::ValueStamp;
    use std::rc::Rc;

    #[test]
    fn rows_tell_what_they_are_in_stamps_and_in_bytes() {
        let link = LinkRow { slot: Slot(1_234_567), visible: true, version: 3 };
        let count = CountRow { list: List(4_321), links: 11_251, version: 9 };
        for table in [Table::Link, Table::Index] {
            assert_eq!(LinkRow::told(table, &link.made::<ValueStamp>(table)), Some(link));
            assert_eq!(LinkRow::told(table, &link.made::<Rc<[u8]>>(table)), Some(link));
        }
        assert_eq!(CountRow::told(&count.made::<ValueStamp>()), Some(count));
        assert_eq!(CountRow::told(&count.made::<Rc<[u8]>>()), Some(count));
        assert_eq!(told_node(&node::<Rc<[u8]>>(5, 6)), Some((5, 6)));
        let long = ValueStamp { bytes: 1_000, ..node(5, 6) };
        assert_eq!(told_node(&long), None, "of another length");
    }

    /// A million nodes occupy about a gigabyte according to the benchmark; its data have a median of 128 and 8 bytes.
    #[test]
    fn data_are_as_long_as_the_benchmarks() {
        let lengths = |table, fixed| {
            let mut lengths: Vec<u32> =
                (0..10_000).map(|record| value_bytes(table, 2 * record, 1) - fixed).collect();
            lengths.sort_unstable();
            (lengths[5_000], lengths.iter().sum::<u32>() / 10_000)
        };
        let (median, mean) = lengths(Table::Node, 33);
        assert!((120..136).contains(&median) && (185..215).contains(&mean), "{median}, {mean}");
        let (median, mean) = lengths(Table::Link, 30);
        assert!((7..=9).contains(&median) && (12..=14).contains(&mean), "{median}, {mean}");
    }

    #[test]
    fn a_list_has_its_newest_link_first_and_hidden_ones_elsewhere() {
        let graph = Graph::new(100).unwrap();
        let list = (0..graph.lists()).map(List).find(|list| graph.loaded(*list) > 2).unwrap();
        let first = graph.slots_of(list).start;
        let key = |place, visible, time_ms| {
            let link = LinkRow { slot: Slot(first + place), visible, version: 1 };
            index_key(&graph, list, link, time_ms)
        };
        let [from, to] = visible_links(list);
        assert!(key(0, true, 9) < key(1, true, 8) && key(1, true, 8) < key(2, true, 8));
        assert!(from[..] < key(0, true, u32::MAX)[..] && key(2, true, 0)[..] < to[..]);
        assert!(key(0, false, 5)[..] < from[..]);
    }
}
