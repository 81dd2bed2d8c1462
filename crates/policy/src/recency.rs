//! Several lists over numbered items, each in the order in which its items were last pushed.
//!
//! An item carries the time of its last push. So it can also change to another list without being
//! used, and takes the place there that its last use gives it: a dirty page that is written back
//! joins the clean ones in the middle, not at an end.
use crate::page_table::NO_FRAME;

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// The next newer item; the oldest one at a sentinel.
    newer: u32,
    /// The next older item; the newest one at a sentinel.
    older: u32,
    /// When the item was last pushed.
    stamp: u64,
}

/// Lists 0..lists over items 1..=items: 16 bytes an item and a list. Each item is in one list or in
/// none; [`NO_FRAME`] stands for none.
#[derive(Debug)]
pub(crate) struct RecencyLists {
    /// Index 0 is unused; the items; then one sentinel a list, which closes it to a ring.
    nodes: Vec<Node>,
    items: u32,
    clock: u64,
}

impl RecencyLists {
    pub(crate) fn new(lists: u32, items: u32) -> Self {
        let end = u64::from(items) + u64::from(lists) + 1;
        assert!(end <= u64::from(u32::MAX), "{lists} lists of {items} items are too many");
        let mut nodes = vec![Node::default(); end as usize];
        for sentinel in items + 1..end as u32 {
            nodes[sentinel as usize] = Node { newer: sentinel, older: sentinel, stamp: 0 };
        }
        RecencyLists { nodes, items, clock: 0 }
    }

    #[inline]
    fn sentinel(&self, list: u32) -> u32 {
        self.items + 1 + list
    }

    #[inline]
    fn item_or_none(&self, at: u32) -> u32 {
        if at > self.items { NO_FRAME } else { at }
    }

    /// The item of `list` that was pushed first.
    #[inline]
    pub(crate) fn oldest(&self, list: u32) -> u32 {
        self.item_or_none(self.nodes[self.sentinel(list) as usize].newer)
    }

    /// When `item` was last pushed.
    #[inline]
    pub(crate) fn stamp(&self, item: u32) -> u64 {
        self.nodes[item as usize].stamp
    }

    /// Puts `item`, which is in no list, at the newest end of `list`.
    #[inline]
    pub(crate) fn push(&mut self, list: u32, item: u32) {
        self.clock += 1;
        self.nodes[item as usize].stamp = self.clock;
        let sentinel = self.sentinel(list);
        self.link(item, self.nodes[sentinel as usize].older, sentinel);
    }

    /// Takes `item` out of its list.
    #[inline]
    pub(crate) fn remove(&mut self, item: u32) {
        let Node { newer, older, .. } = self.nodes[item as usize];
        self.nodes[newer as usize].older = older;
        self.nodes[older as usize].newer = newer;
    }

    /// Moves `item` to the newest end of `list`.
    #[inline]
    pub(crate) fn renew(&mut self, list: u32, item: u32) {
        self.remove(item);
        self.push(list, item);
    }

    /// Moves `item` to `list`, in the place that its last push gives it. A search from both ends:
    /// one step where it is newer than all that are there, or older.
    #[inline]
    pub(crate) fn transfer(&mut self, list: u32, item: u32) {
        self.remove(item);
        let stamp = self.stamp(item);
        let sentinel = self.sentinel(list);
        let Node { newer: mut low, older: mut high, .. } = self.nodes[sentinel as usize];
        loop {
            if high == sentinel || self.stamp(high) < stamp {
                return self.link(item, high, self.nodes[high as usize].newer);
            }
            if self.stamp(low) > stamp {
                return self.link(item, self.nodes[low as usize].older, low);
            }
            high = self.nodes[high as usize].older;
            low = self.nodes[low as usize].newer;
        }
    }

    /// The items of `list`, the oldest first.
    pub(crate) fn iter(&self, list: u32) -> impl Iterator<Item = u32> + '_ {
        let in_list = |item: &u32| *item != NO_FRAME;
        std::iter::successors(Some(self.oldest(list)).filter(in_list), move |&item| {
            Some(self.item_or_none(self.nodes[item as usize].newer)).filter(in_list)
        })
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.nodes.len() * size_of::<Node>()) as u64
    }

    #[inline]
    fn link(&mut self, item: u32, older: u32, newer: u32) {
        self.nodes[older as usize].newer = item;
        self.nodes[newer as usize].older = item;
        let node = &mut self.nodes[item as usize];
        (node.newer, node.older) = (newer, older);
    }

    /// Checks links and order of `list`, and returns how many items it has.
    #[cfg(test)]
    pub(crate) fn validate(&self, list: u32) -> u32 {
        let sentinel = self.sentinel(list);
        let (mut at, mut seen) = (sentinel, 0);
        loop {
            let newer = self.nodes[at as usize].newer;
            assert_eq!(self.nodes[newer as usize].older, at, "a link leads one way only");
            if newer == sentinel {
                return seen;
            }
            assert!(newer <= self.items && newer != NO_FRAME, "a list runs into another one");
            assert!(at == sentinel || self.stamp(at) < self.stamp(newer), "out of order");
            seen += 1;
            assert!(seen <= self.items, "the list has a loop");
            at = newer;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_finds_its_place_from_either_end() {
        for moved in 1..=7 {
            let mut lists = RecencyLists::new(2, 7);
            (1..=7).for_each(|item| lists.push(u32::from(item == moved), item));
            lists.transfer(0, moved);
            assert_eq!(lists.iter(0).collect::<Vec<_>>(), (1..=7).collect::<Vec<_>>());
            assert_eq!((lists.validate(0), lists.validate(1)), (7, 0));
            assert_eq!(lists.oldest(1), NO_FRAME);
        }
    }
}
