//! The tree: search for documents, and the nodes that a batch of changes rewrites.
//!
//! Nodes are never changed in place. A batch goes down the tree once, level by level, and reads each node on its way once
//! ([`Descent`]). On the way up, each of these nodes whose entries changed is rewritten; so its parent changes too, up to the
//! root: the wandering tree. If the place of a document does not change, neither does its node.
use std::ops::Range;
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, Result};

use super::block::{Block, Entry, Header, NODE_ROOM, Node};
use crate::records::{Codec, Draft, Place, RecordDevice, corrupt};
use crate::values::{Key, Value};

/// The change of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// No change in the tree.
    Keep,
    /// The new place of its document.
    Put(Place),
    /// The key is removed.
    Remove,
}

/// Reads the node at `page`, which must be on `level`.
pub(super) async fn read_node<D, V, C>(
    device: &RecordDevice<D, C>,
    page: PageNo,
    level: u8,
) -> Result<Rc<Node>>
where
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    let place = Place::of_pages(page, 1);
    match &*device.read(place).await? {
        Block::Node(node) if node.at == page && node.level == level && !node.entries.is_empty() => {
            Ok(Rc::clone(node))
        }
        Block::Node(_) => Err(corrupt(place, &format!("another node than that of level {level}"))),
        _ => Err(corrupt(place, "something else than a node")),
    }
}

impl Node {
    /// The index of the child that covers `key`.
    pub(super) fn child_for(&self, key: &[u8]) -> usize {
        self.entries.partition_point(|entry| &*entry.key <= key).saturating_sub(1)
    }

    /// The document `key`, in a leaf.
    fn find(&self, key: &[u8]) -> Option<Place> {
        let at = self.entries.binary_search_by(|entry| (*entry.key).cmp(key)).ok()?;
        Some(self.entries[at].place)
    }
}

/// The place of the document `key`.
pub(super) async fn find<D, V, C>(
    device: &RecordDevice<D, C>,
    header: &Header,
    key: &[u8],
) -> Result<Option<Place>>
where
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    let Some(mut page) = header.root else { return Ok(None) };
    for level in (1..header.depth).rev() {
        let node = read_node(device, page, level).await?;
        page = node.entries[node.child_for(key)].place.page;
    }
    Ok(read_node(device, page, 0).await?.find(key))
}

/// A node on the path of some keys of a batch.
struct Touched {
    node: Rc<Node>,
    /// Its index in the level above, and the index of its entry in that node.
    parent: usize,
    slot: usize,
    /// The range of the keys that lead to it.
    keys: Range<usize>,
}

/// The paths of a batch's keys down the tree.
pub(super) struct Descent {
    /// The levels from the root down.
    levels: Vec<Vec<Touched>>,
    keys: Vec<Key>,
    found: Vec<Option<Place>>,
}

/// A tree, as a header describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tree {
    pub(super) root: Option<PageNo>,
    pub(super) depth: u8,
    pub(super) nodes: u64,
}

impl Descent {
    /// Reads all nodes on the paths to `keys`, which ascend.
    pub(super) async fn new<D, V, C>(
        device: &RecordDevice<D, C>,
        header: &Header,
        keys: Vec<Key>,
    ) -> Result<Descent>
    where
        D: PageDevice,
        V: Value,
        C: Codec<Page = D::Page, Record = Block<V>>,
    {
        debug_assert!(keys.is_sorted_by(|key, next| key < next));
        let mut levels: Vec<Vec<Touched>> = Vec::new();
        if let Some(root) = header.root.filter(|_| !keys.is_empty()) {
            let node = read_node(device, root, header.depth - 1).await?;
            levels.push(vec![Touched { node, parent: 0, slot: 0, keys: 0..keys.len() }]);
        }
        while let Some(above) = levels.last()
            && let Some(level) = above[0].node.level.checked_sub(1)
        {
            let mut below = Vec::new();
            for (parent, touched) in above.iter().enumerate() {
                let mut at = touched.keys.start;
                while at < touched.keys.end {
                    let entries = &touched.node.entries;
                    let slot = touched.node.child_for(&keys[at]);
                    let end = entries.get(slot + 1).map_or(touched.keys.end, |next| {
                        at + keys[at..touched.keys.end].partition_point(|key| *key < next.key)
                    });
                    let node = read_node(device, entries[slot].place.page, level).await?;
                    below.push(Touched { node, parent, slot, keys: at..end });
                    at = end;
                }
            }
            levels.push(below);
        }
        let mut found = vec![None; keys.len()];
        for leaf in levels.last().into_iter().flatten() {
            for at in leaf.keys.clone() {
                found[at] = leaf.node.find(&keys[at]);
            }
        }
        Ok(Descent { levels, keys, found })
    }

    /// The place of the document of key number `at`.
    pub(super) fn found(&self, at: usize) -> Option<Place> {
        self.found[at]
    }

    /// Drafts the nodes that change with `changes`, one for each key: leaves first, the root last.
    pub(super) fn apply<V: Value>(
        &self,
        header: &Header,
        changes: &[Change],
        draft: &mut Draft<Block<V>>,
    ) -> Tree {
        let mut tree = Tree { root: header.root, depth: header.depth, nodes: header.nodes };
        if self.levels.is_empty() {
            tree.set_root(self.merged(&[], 0..self.keys.len(), changes), 0, draft);
        }
        let mut below: &[Touched] = &[];
        // The entries that replace each node of the level below, if it changed.
        let mut replaced: Vec<Option<Vec<Entry>>> = Vec::new();
        for (depth, level) in self.levels.iter().enumerate().rev() {
            let mut children = below.iter().zip(replaced).peekable();
            let mut here = Vec::with_capacity(level.len());
            for (index, touched) in level.iter().enumerate() {
                let mut own = Vec::new();
                while let Some((child, entries)) =
                    children.next_if(|(child, _)| child.parent == index)
                {
                    own.extend(entries.map(|entries| (child.slot, entries)));
                }
                let entries = match touched.node.level {
                    0 => self.leaf_entries(touched, changes),
                    _ => inner_entries(&touched.node, own),
                };
                let node_level = touched.node.level;
                here.push(entries.map(|entries| {
                    tree.nodes -= 1;
                    match depth {
                        0 => {
                            tree.set_root(entries, node_level, draft);
                            Vec::new()
                        }
                        _ => tree.write_level(entries, node_level, draft),
                    }
                }));
            }
            (below, replaced) = (level, here);
        }
        tree
    }

    fn leaf_entries(&self, leaf: &Touched, changes: &[Change]) -> Option<Vec<Entry>> {
        let keys = leaf.keys.clone();
        let stays = changes[keys.clone()].iter().all(|change| *change == Change::Keep);
        (!stays).then(|| self.merged(&leaf.node.entries, keys, changes))
    }

    /// The entries of a leaf with the changes of `keys`.
    fn merged(&self, entries: &[Entry], keys: Range<usize>, changes: &[Change]) -> Vec<Entry> {
        let mut merged = Vec::with_capacity(entries.len() + keys.len());
        let mut old = entries.iter().peekable();
        for at in keys {
            let key = &self.keys[at];
            while let Some(entry) = old.next_if(|entry| entry.key < *key) {
                merged.push(entry.clone());
            }
            let entry = old.next_if(|entry| entry.key == *key);
            match changes[at] {
                Change::Keep => merged.extend(entry.cloned()),
                Change::Put(place) => merged.push(Entry { key: key.clone(), place }),
                Change::Remove => {}
            }
        }
        merged.extend(old.cloned());
        merged
    }
}

/// The entries of an inner node some of whose children, given by their slots, are replaced; `None` if none are.
fn inner_entries(node: &Node, replaced: Vec<(usize, Vec<Entry>)>) -> Option<Vec<Entry>> {
    if replaced.is_empty() {
        return None;
    }
    let mut replaced = replaced.into_iter().peekable();
    let mut entries = Vec::with_capacity(node.entries.len() + 1);
    for (slot, entry) in node.entries.iter().enumerate() {
        match replaced.next_if(|(at, _)| *at == slot) {
            Some((_, children)) => entries.extend(children),
            None => entries.push(entry.clone()),
        }
    }
    Some(entries)
}

impl Tree {
    /// Makes the root from entries of a root on `level`, with as many levels above as necessary.
    fn set_root<V: Value>(
        &mut self,
        mut entries: Vec<Entry>,
        mut level: u8,
        draft: &mut Draft<Block<V>>,
    ) {
        loop {
            match &entries[..] {
                [] => (self.root, self.depth) = (None, 0),
                // A root with a single child is replaced by that child.
                [child] if level > 0 => (self.root, self.depth) = (Some(child.place.page), level),
                _ => {
                    entries = self.write_level(entries, level, draft);
                    level += 1;
                    continue;
                }
            }
            return;
        }
    }

    /// Drafts nodes that hold `entries`, evenly filled; returns their entries in the parents.
    fn write_level<V: Value>(
        &mut self,
        entries: Vec<Entry>,
        level: u8,
        draft: &mut Draft<Block<V>>,
    ) -> Vec<Entry> {
        let bytes: usize = entries.iter().map(Entry::bytes).sum();
        let share = bytes.div_ceil(bytes.div_ceil(NODE_ROOM).max(1));
        let mut parents = Vec::new();
        let mut builder = NodeBuilder::new(level, share);
        for entry in entries {
            parents.extend(builder.push(entry, draft));
        }
        parents.extend(builder.finish(draft));
        self.nodes += parents.len() as u64;
        parents
    }
}

/// Fills the nodes of a level one after the other.
pub(super) struct NodeBuilder {
    level: u8,
    /// Bytes of entries at which a node counts as full.
    full_bytes: usize,
    bytes: usize,
    entries: Vec<Entry>,
}

impl NodeBuilder {
    /// Makes nodes of `level` with `full_bytes` of entries each, at most as many entries as fit.
    pub(super) fn new(level: u8, full_bytes: usize) -> Self {
        NodeBuilder { level, full_bytes, bytes: 0, entries: Vec::new() }
    }

    /// Adds the next entry. If the node is full without it, drafts that node and returns its entry for the parent.
    pub(super) fn push<V: Value>(
        &mut self,
        entry: Entry,
        draft: &mut Draft<Block<V>>,
    ) -> Option<Entry> {
        let full = self.bytes >= self.full_bytes || self.bytes + entry.bytes() > NODE_ROOM;
        let parent = if full { self.finish(draft) } else { None };
        self.bytes += entry.bytes();
        self.entries.push(entry);
        parent
    }

    /// Drafts the last node; returns its entry for the parent, if there is one.
    pub(super) fn finish<V: Value>(&mut self, draft: &mut Draft<Block<V>>) -> Option<Entry> {
        let key = self.entries.first()?.key.clone();
        let entries = std::mem::take(&mut self.entries);
        self.bytes = 0;
        let node = Node { at: draft.next(), level: self.level, entries };
        let place = draft.align(Rc::new(Block::Node(Rc::new(node))));
        Some(Entry { key, place })
    }
}
