//! Lists with ghosts. A ghost is a page that was evicted lately and is still remembered. The cached
//! pages are in lists 0 and 1; the ghosts, which are clean, are in other lists.
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::Effect;
use tantalum_base::PageNo;

impl<T: PageTable> FrameLists<T> {
    /// Number of cached pages.
    pub(crate) fn cached(&self) -> u32 {
        self.len(0) + self.len(1)
    }

    /// The frame of `page` if it is cached, else [`NO_FRAME`].
    pub(crate) fn find_cached(&self, page: PageNo) -> u32 {
        let frame = self.find(page);
        if frame != NO_FRAME && self.list_of(frame) <= 1 { frame } else { NO_FRAME }
    }

    /// Evicts the page in `frame`, which becomes the newest ghost of `list`. The list has at most
    /// `ghosts_max` ghosts.
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
