//! Frames in the order of the use counts of their pages, and among equals in the order of last use.
//!
//! One ring of frames, closed by the sentinel at index 0. Frames with the same count are adjacent and
//! share a group, which stores the newest of them. A use moves a frame past its own group, to the end
//! of the next group if that has the new count. Uses and new pages take constant time; a page that
//! comes in with a higher count is placed by a walk over the groups below it.
use crate::page_table::NO_FRAME;

#[derive(Clone, Copy, Default, Debug)]
struct Node {
    /// The next frame in the order: used later, or more often.
    newer: u32,
    older: u32,
    /// Meaningless while the frame is not in the order.
    group: u32,
}

/// 20 bytes a frame, plus 4 for each frame that can be in the order at once.
#[derive(Debug)]
pub(crate) struct UseOrder {
    nodes: Vec<Node>,
    /// Use count of each frame's page; kept when the frame leaves the order.
    counts: Vec<u64>,
    /// The newest frame of each group; for a free group, the next free group. Index 0 is unused.
    groups: Vec<u32>,
    /// The first free group, 0 for none.
    free: u32,
}

impl UseOrder {
    /// An empty order for at most `frames_max` frames, numbered from 1 and below `frames_end`.
    pub(crate) fn new(frames_max: u32, frames_end: usize) -> Self {
        let next = |group: u32| if group < frames_max { group + 1 } else { 0 };
        UseOrder {
            nodes: vec![Node::default(); frames_end],
            counts: vec![0; frames_end],
            groups: (0..=frames_max).map(next).collect(),
            free: 1,
        }
    }

    /// Use count of the page in `frame`, even if it left the order.
    #[inline]
    pub(crate) fn count(&self, frame: u32) -> u64 {
        self.counts[frame as usize]
    }

    /// The least used frame; of several, the least recently used. [`NO_FRAME`] if there is none.
    #[inline]
    pub(crate) fn least_oldest(&self) -> u32 {
        self.nodes[0].newer
    }

    /// The least used frame; of several, the most recently used. [`NO_FRAME`] if there is none.
    #[inline]
    pub(crate) fn least_newest(&self) -> u32 {
        match self.least_oldest() {
            NO_FRAME => NO_FRAME,
            frame => self.newest_beside(frame),
        }
    }

    /// All frames, the least used first; among equals, the least recently used first.
    pub(crate) fn least_first(&self) -> impl Iterator<Item = u32> + '_ {
        self.walk(|node| node.newer)
    }

    /// All frames, the least used first; among equals, the most recently used first.
    pub(crate) fn least_newest_first(&self) -> impl Iterator<Item = u32> + '_ {
        let is_frame = |frame: &u32| *frame != NO_FRAME;
        let oldest = Some(self.least_oldest()).filter(is_frame);
        let groups = std::iter::successors(oldest, move |&oldest| {
            Some(self.nodes[self.newest_beside(oldest) as usize].newer).filter(is_frame)
        });
        groups.flat_map(move |oldest| {
            std::iter::successors(Some(self.newest_beside(oldest)), move |&frame| {
                (frame != oldest).then(|| self.nodes[frame as usize].older)
            })
        })
    }

    fn walk(&self, next: impl Fn(&Node) -> u32) -> impl Iterator<Item = u32> {
        let mut at = 0;
        std::iter::from_fn(move || {
            at = next(&self.nodes[at as usize]);
            Some(at).filter(|&frame| frame != 0)
        })
    }

    /// Inserts `frame`, which must not be in the order, as the newest of the frames with `count`
    /// uses.
    pub(crate) fn insert(&mut self, frame: u32, count: u64) {
        self.counts[frame as usize] = count;
        let mut older = 0;
        loop {
            let next = self.nodes[older as usize].newer;
            if next == 0 || self.count(next) > count {
                self.nodes[frame as usize].group = self.new_group(frame);
                return self.link_behind(older, frame);
            }
            older = self.newest_beside(next);
            if self.count(next) == count {
                return self.join(frame, older);
            }
        }
    }

    /// The page in `frame` is used once more.
    #[inline]
    pub(crate) fn used(&mut self, frame: u32) {
        let count = self.count(frame) + 1;
        let newest = self.newest_beside(frame);
        let Node { older, group, .. } = self.nodes[frame as usize];
        let next = self.nodes[newest as usize].newer;
        let joins = next != 0 && self.count(next) == count;
        let is_alone = newest == frame && (older == 0 || self.nodes[older as usize].group != group);
        self.counts[frame as usize] = count;
        if joins {
            let last = self.newest_beside(next);
            self.leave(frame);
            self.join(frame, last);
        } else if !is_alone {
            self.leave(frame);
            self.nodes[frame as usize].group = self.new_group(frame);
            self.link_behind(if newest == frame { older } else { newest }, frame);
        }
    }

    /// Removes `frame`, which must be in the order.
    #[inline]
    pub(crate) fn remove(&mut self, frame: u32) {
        self.leave(frame);
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let a_frame = size_of::<Node>() + size_of::<u64>();
        (self.nodes.len() * a_frame + self.groups.len() * size_of::<u32>()) as u64
    }

    /// The newest frame of the group of `frame`.
    #[inline]
    fn newest_beside(&self, frame: u32) -> u32 {
        self.groups[self.nodes[frame as usize].group as usize]
    }

    /// Links `frame` after `newest`, the newest of its group, as the new newest.
    #[inline]
    fn join(&mut self, frame: u32, newest: u32) {
        let group = self.nodes[newest as usize].group;
        self.nodes[frame as usize].group = group;
        self.groups[group as usize] = frame;
        self.link_behind(newest, frame);
    }

    /// Removes `frame` from the ring and from its group; a group ends with its last frame.
    #[inline]
    fn leave(&mut self, frame: u32) {
        let Node { newer, older, group } = self.nodes[frame as usize];
        self.nodes[newer as usize].older = older;
        self.nodes[older as usize].newer = newer;
        if self.groups[group as usize] != frame {
            return;
        }
        if older != 0 && self.nodes[older as usize].group == group {
            self.groups[group as usize] = older;
        } else {
            self.groups[group as usize] = self.free;
            self.free = group;
        }
    }

    #[inline]
    fn new_group(&mut self, frame: u32) -> u32 {
        let group = self.free;
        debug_assert!(group != 0, "as many groups as frames");
        self.free = std::mem::replace(&mut self.groups[group as usize], frame);
        group
    }

    #[inline]
    fn link_behind(&mut self, older: u32, frame: u32) {
        let newer = self.nodes[older as usize].newer;
        self.nodes[older as usize].newer = frame;
        self.nodes[newer as usize].older = frame;
        let node = &mut self.nodes[frame as usize];
        (node.newer, node.older) = (newer, older);
    }

    /// Checks the ring and the groups. Returns the number of frames in the order.
    #[cfg(test)]
    pub(crate) fn validate(&self) -> u32 {
        let frames: Vec<u32> = self.least_first().take(self.nodes.len()).collect();
        let mut groups = 0;
        for (at, &frame) in frames.iter().enumerate() {
            let next = frames.get(at + 1).copied();
            let newer = self.nodes[frame as usize].newer;
            assert_eq!(newer, next.unwrap_or(0), "the ring is not closed");
            assert_eq!(self.nodes[newer as usize].older, frame, "the ring differs by direction");
            let is_last = next.is_none_or(|next| self.count(next) != self.count(frame));
            assert_eq!(self.newest_beside(frame) == frame, is_last, "a group ends elsewhere");
            assert!(next.is_none_or(|next| self.count(next) >= self.count(frame)), "out of order");
            groups += u32::from(is_last);
        }
        let free = std::iter::successors(Some(self.free), |&at| Some(self.groups[at as usize]));
        let free = free.take_while(|&group| group != 0).take(self.groups.len()).count();
        assert_eq!(groups as usize + free, self.groups.len() - 1, "a group is lost");
        frames.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Insert(u32, u64),
        Used(u32),
        Remove(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => (1u32..9, 1u64..6).prop_map(|(frame, count)| Step::Insert(frame, count)),
            4 => (1u32..9).prop_map(Step::Used),
            1 => (1u32..9).prop_map(Step::Remove),
        ]
    }

    proptest! {
        /// Compared with a list of (uses, time of the last, frame) that is sorted each time.
        #[test]
        fn frames_stand_in_the_order_of_uses_then_time(
            steps in prop::collection::vec(step(), 1..200),
        ) {
            let mut order = UseOrder::new(8, 9);
            let mut sorted: Vec<(u64, usize, u32)> = Vec::new();
            for (now, step) in steps.into_iter().enumerate() {
                let place = |of: u32| sorted.iter().position(|&(.., frame)| frame == of);
                match step {
                    Step::Insert(frame, count) if place(frame).is_none() => {
                        order.insert(frame, count);
                        sorted.push((count, now, frame));
                    }
                    Step::Used(frame) => if let Some(at) = place(frame) {
                        order.used(frame);
                        (sorted[at].0, sorted[at].1) = (sorted[at].0 + 1, now);
                    },
                    Step::Remove(frame) => if let Some(at) = place(frame) {
                        order.remove(frame);
                        prop_assert_eq!(order.count(frame), sorted.remove(at).0);
                    },
                    Step::Insert(..) => {}
                }
                sorted.sort_unstable();
                prop_assert_eq!(order.validate() as usize, sorted.len());
                let frames: Vec<u32> = sorted.iter().map(|&(.., frame)| frame).collect();
                prop_assert_eq!(order.least_first().collect::<Vec<_>>(), frames.clone());
                prop_assert_eq!(order.least_oldest(), frames.first().copied().unwrap_or(NO_FRAME));
                let mut newest_first = sorted.clone();
                newest_first.sort_unstable_by_key(|&(count, last, _)| (count, Reverse(last)));
                let frames: Vec<u32> = newest_first.iter().map(|&(.., frame)| frame).collect();
                prop_assert_eq!(order.least_newest_first().collect::<Vec<_>>(), frames.clone());
                prop_assert_eq!(order.least_newest(), frames.first().copied().unwrap_or(NO_FRAME));
            }
        }
    }
}
