//! Lists with ghosts: of pages that were evicted lately, and of which a policy remembers that it had
//! them. The cached pages are in lists 0 and 1, the ghosts, which are clean, in others.
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::Effect;
use tantalum_base::PageNo;

impl<T: PageTable> FrameLists<T> {
    /// Pages that are cached.
    pub(crate) fn cached(&self) -> u32 {
        self.len(0) + self.len(1)
    }

    /// The frame of `page` where it is cached, or [`NO_FRAME`].
    pub(crate) fn find_cached(&self, page: PageNo) -> u32 {
        let frame = self.find(page);
        if frame != NO_FRAME && self.list_of(frame) <= 1 { frame } else { NO_FRAME }
    }

    /// Evicts the page in `frame`, which becomes the newest ghost of `list`, where there are
    /// `ghosts_max` at most.
    pub(crate) fn evict_to(&mut self, frame: u32, list: u32, ghosts_max: u32) -> Effect {
        let evicted = self.key(frame).evicted();
        if ghosts_max == 0 {
            self.remove(frame);
            return evicted;
        }
        if self.len(list) == ghosts_max {
            self.remove(self.tail(list));
        }
        self.key_mut(frame).clean();
        self.move_to_head(frame, list);
        evicted
    }
}
