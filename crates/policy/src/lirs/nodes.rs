//! Nodes that can be in several lists at once, with the page table that finds them. Unlike
//! [`FrameLists`](crate::frame_lists::FrameLists) they grow in number, because they also stand for
//! pages that are not cached, and there can be many of these.
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Key, Request};
use tantalum_base::PageNo;

/// Marks a node that is not in the list: no node has this number.
const UNLINKED: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    /// Next node towards the head; [`UNLINKED`] if the node is not in the list.
    prev: u32,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node<const LISTS: usize> {
    key: Key,
    links: [Link; LISTS],
}

/// Nodes, each in any of `LISTS` lists; node 0 is the sentinel of all.
#[derive(Debug)]
pub(super) struct Nodes<T, const LISTS: usize> {
    nodes: Vec<Node<LISTS>>,
    table: T,
    pages_end: u64,
    /// The first node without a page; the `next` of its first link is the next one; [`NO_FRAME`]
    /// ends the chain.
    free: u32,
    /// Nodes in each list.
    lens: [u32; LISTS],
    /// Number of nodes for which the table has room.
    room: u32,
}

impl<T: PageTable, const LISTS: usize> Nodes<T, LISTS> {
    /// Room for `nodes` pages at first, numbered below `pages_end`.
    pub(super) fn new(nodes: u32, pages_end: u64) -> Self {
        let sentinel =
            Node { key: Key::default(), links: [Link { prev: NO_FRAME, next: NO_FRAME }; LISTS] };
        let mut all = Vec::with_capacity(nodes as usize + 1);
        all.push(sentinel);
        Nodes {
            nodes: all,
            table: T::new(nodes, pages_end),
            pages_end,
            free: NO_FRAME,
            lens: [0; LISTS],
            room: nodes,
        }
    }

    /// The node of `page`, or [`NO_FRAME`].
    #[inline]
    pub(super) fn find(&self, page: PageNo) -> u32 {
        self.table.find(page, |node| self.nodes[node as usize].key.page())
    }

    #[inline]
    pub(super) fn key(&self, node: u32) -> Key {
        self.nodes[node as usize].key
    }

    #[inline]
    pub(super) fn key_mut(&mut self, node: u32) -> &mut Key {
        &mut self.nodes[node as usize].key
    }

    #[inline]
    pub(super) fn is_in(&self, node: u32, list: usize) -> bool {
        self.nodes[node as usize].links[list].prev != UNLINKED
    }

    #[inline]
    pub(super) fn len(&self, list: usize) -> u32 {
        self.lens[list]
    }

    /// The oldest node; [`NO_FRAME`] if the list is empty.
    #[inline]
    pub(super) fn tail(&self, list: usize) -> u32 {
        self.nodes[0].links[list].prev
    }

    /// Returns a node for the page of `request`; it is not in any list yet.
    pub(super) fn add(&mut self, request: Request) -> u32 {
        let links = [Link { prev: UNLINKED, next: NO_FRAME }; LISTS];
        let filled = Node { key: Key::new(request), links };
        let node = self.free;
        if node == NO_FRAME {
            if self.nodes.len() as u32 > self.room {
                self.grow();
            }
            self.nodes.push(filled);
            self.table.insert(request.page(), self.nodes.len() as u32 - 1);
            return self.nodes.len() as u32 - 1;
        }
        self.free = self.nodes[node as usize].links[0].next;
        self.nodes[node as usize] = filled;
        self.table.insert(request.page(), node);
        node
    }

    /// Forgets the page of `node`, which must not be in any list.
    pub(super) fn drop_page(&mut self, node: u32) {
        debug_assert!((0..LISTS).all(|list| !self.is_in(node, list)), "still in a list");
        let nodes = &self.nodes;
        let page_of = |node: u32| nodes[node as usize].key.page();
        self.table.remove(page_of(node), node, page_of);
        self.nodes[node as usize].links[0].next = self.free;
        self.free = node;
    }

    /// Removes `node` from `list` if it is in it.
    #[inline]
    pub(super) fn unlink(&mut self, node: u32, list: usize) {
        let Link { prev, next } = self.nodes[node as usize].links[list];
        if prev != UNLINKED {
            self.nodes[prev as usize].links[list].next = next;
            self.nodes[next as usize].links[list].prev = prev;
            self.nodes[node as usize].links[list].prev = UNLINKED;
            self.lens[list] -= 1;
        }
    }

    /// Makes `node` the newest of `list`, whether it is in it or not.
    #[inline]
    pub(super) fn link_at_head(&mut self, node: u32, list: usize) {
        self.unlink(node, list);
        let head = std::mem::replace(&mut self.nodes[0].links[list].next, node);
        self.nodes[head as usize].links[list].prev = node;
        self.nodes[node as usize].links[list] = Link { prev: NO_FRAME, next: head };
        self.lens[list] += 1;
    }

    /// The nodes of `list`, oldest first.
    pub(super) fn oldest_first(&self, list: usize) -> impl Iterator<Item = u32> + '_ {
        let in_list = |node: &u32| *node != NO_FRAME;
        std::iter::successors(Some(self.tail(list)).filter(in_list), move |&node| {
            Some(self.nodes[node as usize].links[list].prev).filter(in_list)
        })
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        (self.nodes.capacity() * size_of::<Node<LISTS>>()) as u64 + self.table.memory_bytes()
    }

    /// Doubles the room. Called only while every node has a page, so all nodes are in the table.
    fn grow(&mut self) {
        self.room *= 2;
        self.nodes.reserve_exact(self.room as usize + 1 - self.nodes.len());
        self.table = T::new(self.room, self.pages_end);
        for (node, filled) in self.nodes.iter().enumerate().skip(1) {
            self.table.insert(filled.key.page(), node as u32);
        }
    }

    #[cfg(test)]
    pub(super) fn validate(&self) {
        for list in 0..LISTS {
            let mut seen = 0;
            for node in self.oldest_first(list) {
                let Link { prev, next } = self.nodes[node as usize].links[list];
                assert_eq!(self.nodes[prev as usize].links[list].next, node);
                assert_eq!(self.nodes[next as usize].links[list].prev, node);
                assert_eq!(self.find(self.key(node).page()), node, "the table has another node");
                seen += 1;
            }
            assert_eq!(seen, self.lens[list]);
        }
    }
}
