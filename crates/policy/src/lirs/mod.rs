//! LIRS ranks a page by the number of other pages between its last two uses, not by the time since
//! the last one. All but a few frames hold the pages with the shortest such distance.
//!
//! Source: Jiang, Zhang, "LIRS: an efficient low inter-reference recency set replacement policy to
//! improve buffer cache performance", SIGMETRICS 2002, section 3.3. Details are as in Jiang's
//! program of November 2002, with which it agrees miss by miss:
//!
//! - the first pages to come in are LIR, until all frames except the HIR ones are filled;
//! - the number of HIR frames is the share `hir` of the cache, rounded down, and at least two (one
//!   in a cache of two frames, as there must be a LIR page);
//! - a request for the same page as the request before changes nothing;
//! - if the stack would hold more than `stack` times the cache, its oldest HIR page leaves it: one
//!   page per request.
//!
//! Weak if reuse distances change slowly or not at all (LRU-friendly loads), because a new page is
//! kept only if it is used twice within the life of a few frames. Also weak after a change of the
//! working set, until the old one has left the stack. It remembers evicted pages: up to `stack`
//! times the cache, or as many as exist. Blind to the cost of writing back.
mod nodes;

use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use nodes::Nodes;
use std::marker::PhantomData;
use tantalum_base::PageNo;

/// The stack S: LIR pages, and those HIR pages, cached or not, that were used since its oldest LIR
/// page was.
const STACK: usize = 0;
/// The queue Q: the cached HIR pages.
const QUEUE: usize = 1;
/// The HIR pages of the stack, in its order. The oldest is the first to leave a full stack.
const STACK_HIR: usize = 2;

/// Decides which pages get a second chance: a LIR page that would be demoted keeps its rank, a HIR
/// page that would be evicted keeps its frame. A page that stays is cold until its next use.
pub trait Reluctance: Send {
    /// Whether such a page stays. A cold page never does.
    fn stays(is_dirty: bool, is_cold: bool) -> bool;
}

/// LIRS as published: no page stays.
#[derive(Debug)]
pub struct Plain;

impl Reluctance for Plain {
    #[inline]
    fn stays(_is_dirty: bool, _is_cold: bool) -> bool {
        false
    }
}

/// Low inter-reference recency set. A page is LIR if it is in the stack and in neither other list.
/// It is cached if it is LIR or in the queue. Its mark means that it is cold.
#[derive(Debug)]
pub struct Lirs<T, R = Plain> {
    lists: Nodes<T, 3>,
    capacity: u32,
    /// Maximum number of LIR pages.
    lir_max: u32,
    /// LIR pages.
    lirs: u32,
    /// Maximum number of pages in the stack.
    stack_max: u64,
    /// The page of the last request.
    last: Option<PageNo>,
    reluctance: PhantomData<R>,
}

impl<T: PageTable, R: Reluctance> Lirs<T, R> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`. The share `hir_share`
    /// (0 to 1) of the frames is for HIR pages. The stack has at most `stack` times as many pages
    /// as the cache.
    pub fn new(frames: u32, pages_end: u64, hir_share: f64, stack: u32) -> Self {
        assert!(frames > 0 && (0.0..=1.0).contains(&hir_share) && stack > 0);
        let hirs = ((hir_share * f64::from(frames)) as u32).max(2).min(frames - 1);
        let lir_max = if frames == 1 { 0 } else { frames - hirs };
        let stack_max = u64::from(frames) * u64::from(stack);
        let room = (2 * u64::from(frames)).min(stack_max + u64::from(frames)).min(pages_end);
        Lirs {
            lists: Nodes::new(room.max(1) as u32, pages_end),
            capacity: frames,
            lir_max,
            lirs: 0,
            stack_max,
            last: None,
            reluctance: PhantomData,
        }
    }

    fn cached(&self) -> u32 {
        self.lirs + self.lists.len(QUEUE)
    }

    #[inline]
    fn is_lir(&self, node: u32) -> bool {
        self.lists.is_in(node, STACK) && !self.lists.is_in(node, STACK_HIR)
    }

    #[inline]
    fn is_cached(&self, node: u32) -> bool {
        node != NO_FRAME && (self.lists.is_in(node, QUEUE) || self.is_lir(node))
    }

    /// Removes a HIR page from the stack. If the page is not cached, it is forgotten.
    fn leave_stack(&mut self, node: u32) {
        self.lists.unlink(node, STACK);
        self.lists.unlink(node, STACK_HIR);
        if !self.lists.is_in(node, QUEUE) {
            self.lists.drop_page(node);
        }
    }

    /// Stack pruning: makes the oldest page of the stack a LIR page.
    #[inline]
    fn prune(&mut self) {
        loop {
            let oldest = self.lists.tail(STACK);
            if oldest == NO_FRAME || self.is_lir(oldest) {
                break;
            }
            self.leave_stack(oldest);
        }
    }

    /// Whether the page stays once more; if so, marks it cold.
    #[inline]
    fn stays(&mut self, node: u32) -> bool {
        let key = self.lists.key_mut(node);
        let stays = R::stays(key.is_dirty(), key.is_marked());
        if stays {
            key.mark();
        }
        stays
    }

    /// Evicts the oldest HIR page. If it is in the stack, it is remembered there.
    fn evict(&mut self, effects: &mut Vec<Effect>) {
        let mut victim = self.lists.tail(QUEUE);
        while self.stays(victim) {
            self.lists.link_at_head(victim, QUEUE);
            victim = self.lists.tail(QUEUE);
        }
        effects.push(self.lists.key(victim).evicted());
        self.lists.unlink(victim, QUEUE);
        if self.lists.is_in(victim, STACK) {
            let key = self.lists.key_mut(victim);
            key.clean();
            key.unmark();
        } else {
            self.lists.drop_page(victim);
        }
    }

    /// Makes the page, which is at the head of the stack, LIR. If there are too many LIR pages, the
    /// oldest becomes HIR.
    fn promote(&mut self, node: u32) {
        self.lists.unlink(node, STACK_HIR);
        self.lirs += 1;
        if self.lirs <= self.lir_max {
            return;
        }
        while self.stays(self.lists.tail(STACK)) {
            self.lists.link_at_head(self.lists.tail(STACK), STACK);
            self.prune();
        }
        let oldest = self.lists.tail(STACK);
        self.lists.unlink(oldest, STACK);
        self.lists.link_at_head(oldest, QUEUE);
        self.lirs -= 1;
        self.prune();
    }

    /// A request for a page that is not LIR: cached (in the queue), remembered or unknown.
    fn access_hir(&mut self, mut node: u32, request: Request, effects: &mut Vec<Effect>) -> bool {
        let hit = self.is_cached(node);
        let fills = !hit && self.cached() < self.capacity && self.lirs < self.lir_max;
        if !hit && self.cached() == self.capacity {
            self.evict(effects);
        }
        let was_in_stack = node != NO_FRAME && self.lists.is_in(node, STACK);
        if node == NO_FRAME {
            node = self.lists.add(request);
        } else {
            self.lists.key_mut(node).touch(request);
            self.lists.key_mut(node).unmark();
        }
        self.lists.link_at_head(node, STACK);
        if fills || was_in_stack {
            self.lists.unlink(node, QUEUE);
            self.promote(node);
        } else {
            self.lists.link_at_head(node, STACK_HIR);
            self.lists.link_at_head(node, QUEUE);
            if self.lirs == 0 {
                self.prune();
            }
        }
        if u64::from(self.lists.len(STACK)) > self.stack_max && self.lists.len(STACK_HIR) > 0 {
            self.leave_stack(self.lists.tail(STACK_HIR));
        }
        hit
    }
}

impl<T: PageTable, R: Reluctance> Policy for Lirs<T, R> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let node = self.lists.find(request.page());
        let repeated = self.last == Some(request.page());
        self.last = Some(request.page());
        if node == NO_FRAME || !(repeated || self.is_lir(node)) {
            return self.access_hir(node, request, effects);
        }
        self.lists.key_mut(node).touch(request);
        self.lists.key_mut(node).unmark();
        if !repeated {
            let was_oldest = self.lists.tail(STACK) == node;
            self.lists.link_at_head(node, STACK);
            if was_oldest {
                self.prune();
            }
        }
        true
    }

    fn contains(&self, page: PageNo) -> bool {
        self.is_cached(self.lists.find(page))
    }

    /// The order in which pages would leave if only unknown pages came: HIR pages, oldest first,
    /// then LIR pages in the order in which they would become HIR. Within each of the two, pages
    /// that would stay come last.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let of = |list: usize, stay: bool| {
            self.lists
                .oldest_first(list)
                .map(|node| (node, self.lists.key(node)))
                .filter(move |(_, key)| R::stays(key.is_dirty(), key.is_marked()) == stay)
        };
        let lirs = of(STACK, false).chain(of(STACK, true)).filter(|(node, _)| self.is_lir(*node));
        let queue = of(QUEUE, false).chain(of(QUEUE, true));
        let keys = queue.chain(lirs).map(|(_, key)| key);
        pages.extend(keys.filter(|key| key.is_dirty()).take(pages_max).map(|key| key.page()));
    }

    fn cleaned(&mut self, page: PageNo) {
        match self.lists.find(page) {
            NO_FRAME => {}
            node => self.lists.key_mut(node).clean(),
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let node = self.lists.find(page);
        if !self.is_cached(node) {
            return false;
        }
        self.lirs -= u32::from(self.is_lir(node));
        for list in [STACK, QUEUE, STACK_HIR] {
            self.lists.unlink(node, list);
        }
        self.lists.drop_page(node);
        self.prune();
        self.last = self.last.filter(|last| *last != page);
        true
    }

    fn memory_bytes(&self) -> u64 {
        self.lists.memory_bytes()
    }

    fn capacity_pages(&self) -> u32 {
        self.capacity
    }

    fn dirty_pages(&self) -> u32 {
        let lirs = self.lists.oldest_first(STACK).filter(|&node| self.is_lir(node));
        let cached = self.lists.oldest_first(QUEUE).chain(lirs);
        cached.filter(|&node| self.lists.key(node).is_dirty()).count() as u32
    }

    #[cfg(test)]
    fn validate(&self) {
        self.lists.validate();
        assert!(self.cached() <= self.capacity && self.lirs <= self.lir_max.max(1));
        let stack = || self.lists.oldest_first(STACK);
        assert_eq!(stack().filter(|&node| self.is_lir(node)).count() as u32, self.lirs);
        assert!(stack().next().is_none_or(|node| self.is_lir(node)), "the stack is not pruned");
        assert!(u64::from(self.lists.len(STACK)) <= self.stack_max);
        let hirs = stack().filter(|&node| !self.is_lir(node));
        assert!(hirs.eq(self.lists.oldest_first(STACK_HIR)), "the stack's HIR pages are in order");
        assert!(self.lists.oldest_first(QUEUE).all(|node| !self.is_lir(node)));
    }
}
