//! The queue of a personality's writes.
use std::collections::VecDeque;
use tantalum_base::PageNo;

/// Maximum number of writes in one turn.
const RUN_PAGES_MAX: usize = 256;

/// Writes in the order of arrival. The request with the turn takes the oldest one and those after
/// it with consecutive pages, so that sequential writes use all planes of a zone.
pub(super) struct Writes<P> {
    waiting: VecDeque<(PageNo, P)>,
    /// Total number of writes that left the queue; also the number of the oldest one in it.
    pub taken: u64,
    /// The first write that failed; it and all later ones are refused.
    pub failed_from: Option<u64>,
}

impl<P> Default for Writes<P> {
    fn default() -> Self {
        Writes { waiting: VecDeque::new(), taken: 0, failed_from: None }
    }
}

impl<P> Writes<P> {
    /// Queues a write. Returns its number.
    pub fn push(&mut self, page: PageNo, content: P) -> u64 {
        self.waiting.push_back((page, content));
        self.taken + self.waiting.len() as u64 - 1
    }

    /// Takes the oldest write and those after it with consecutive pages.
    pub fn take_run(&mut self) -> Option<(PageNo, Vec<P>)> {
        let (first, content) = self.waiting.pop_front()?;
        let mut contents = vec![content];
        let follows = |contents: &Vec<P>, page: PageNo| page.0 == first.0 + contents.len() as u64;
        while contents.len() < RUN_PAGES_MAX
            && self.waiting.front().is_some_and(|(page, _)| follows(&contents, *page))
        {
            contents.extend(self.waiting.pop_front().map(|(_, content)| content));
        }
        self.taken += contents.len() as u64;
        Some((first, contents))
    }
}
