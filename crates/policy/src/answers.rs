//! What a policy answers from its frames alone, written once.

/// Those methods of a [`Policy`](crate::Policy) that are named, as `self.$frames` answers them: frames in
/// lists, in a ring or without an order. Those of `ghost_lists` are for lists of which the first
/// two alone are of cached pages.
macro_rules! answers_of {
    (@contains $frames:ident) => {
        fn contains(&self, page: tantalum_base::PageNo) -> bool {
            self.$frames.find(page) != crate::page_table::NO_FRAME
        }
    };
    (@cleaned $frames:ident) => {
        fn cleaned(&mut self, page: tantalum_base::PageNo) {
            self.$frames.clean(page);
        }
    };
    (@forget $frames:ident) => {
        fn forget(&mut self, page: tantalum_base::PageNo) -> bool {
            self.$frames.forget(page)
        }
    };
    (@capacity_pages $frames:ident) => {
        fn capacity_pages(&self) -> u32 {
            self.$frames.capacity()
        }
    };
    (@dirty_pages $frames:ident) => {
        fn dirty_pages(&self) -> u32 {
            self.$frames.dirty()
        }
    };
    (@memory_bytes $frames:ident) => {
        fn memory_bytes(&self) -> u64 {
            self.$frames.memory_bytes()
        }
    };
    (@validate $frames:ident) => {
        #[cfg(test)]
        fn validate(&self) {
            self.$frames.validate();
        }
    };
    (@contains_cached $lists:ident) => {
        fn contains(&self, page: tantalum_base::PageNo) -> bool {
            self.$lists.find_cached(page) != crate::page_table::NO_FRAME
        }
    };
    (@forget_cached $lists:ident) => {
        fn forget(&mut self, page: tantalum_base::PageNo) -> bool {
            let frame = self.$lists.find_cached(page);
            if frame != crate::page_table::NO_FRAME {
                self.$lists.remove(frame);
            }
            frame != crate::page_table::NO_FRAME
        }
    };
    ($frames:ident: $($method:ident)+) => {
        $(crate::answers::answers_of!(@$method $frames);)+
    };
}
pub(crate) use answers_of;
