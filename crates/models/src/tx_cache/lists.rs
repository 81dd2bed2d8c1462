//! Lists of page headers, newest at the head. Links are `u32` indexes into one array, and each list
//! is a ring closed by its sentinel. A header is in at most one list.

/// The list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// Committed versions in frames, by last use: candidates for replacement.
    Committed,
    /// Committed versions in the extended cache, which must be copied home.
    Extended,
    /// Uncommitted versions in frames, by last write: candidates for the extended cache.
    Uncommitted,
}

const LISTS: u32 = 3;

#[derive(Clone, Copy)]
struct Node {
    newer: u32,
    older: u32,
    list: Option<List>,
}

pub(super) struct Lists {
    nodes: Vec<Node>,
    headers: u32,
    lens: [u32; LISTS as usize],
}

impl Lists {
    pub(super) fn new(headers: u32) -> Self {
        let node = |at| Node { newer: at, older: at, list: None };
        Lists { nodes: (0..headers + LISTS).map(node).collect(), headers, lens: [0; 3] }
    }

    pub(super) fn len(&self, list: List) -> u32 {
        self.lens[list as usize]
    }

    fn sentinel(&self, list: List) -> u32 {
        self.headers + list as u32
    }

    /// The oldest header of `list`.
    pub(super) fn oldest(&self, list: List) -> Option<u32> {
        self.inside(self.nodes[self.sentinel(list) as usize].newer)
    }

    /// The next newer header after `header`, which must be in a list.
    pub(super) fn newer(&self, header: u32) -> Option<u32> {
        self.inside(self.nodes[header as usize].newer)
    }

    fn inside(&self, at: u32) -> Option<u32> {
        (at < self.headers).then_some(at)
    }

    /// Moves `header` to the head of `list`, from any list.
    pub(super) fn push(&mut self, list: List, header: u32) {
        self.remove(header);
        let sentinel = self.sentinel(list);
        let second = self.nodes[sentinel as usize].older;
        self.nodes[header as usize] = Node { newer: sentinel, older: second, list: Some(list) };
        self.nodes[second as usize].newer = header;
        self.nodes[sentinel as usize].older = header;
        self.lens[list as usize] += 1;
    }

    /// Removes `header` from its list, if it is in one.
    pub(super) fn remove(&mut self, header: u32) {
        let Node { newer, older, list } = self.nodes[header as usize];
        let Some(list) = list else { return };
        self.nodes[newer as usize].older = older;
        self.nodes[older as usize].newer = newer;
        self.nodes[header as usize].list = None;
        self.lens[list as usize] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lists: &Lists, list: List) -> Vec<u32> {
        std::iter::successors(lists.oldest(list), |at| lists.newer(*at)).collect()
    }

    #[test]
    fn a_header_is_in_one_list_in_order() {
        let mut lists = Lists::new(4);
        (0..4).for_each(|header| lists.push(List::Committed, header));
        lists.push(List::Committed, 1);
        assert_eq!(all(&lists, List::Committed), [0, 2, 3, 1]);
        lists.push(List::Uncommitted, 2);
        lists.remove(0);
        lists.remove(0);
        assert_eq!(
            (all(&lists, List::Committed), all(&lists, List::Uncommitted)),
            (vec![3, 1], vec![2])
        );
        assert_eq!(
            [List::Committed, List::Extended, List::Uncommitted].map(|list| lists.len(list)),
            [2, 0, 1]
        );
    }
}
