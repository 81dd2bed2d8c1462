//! Methods of [`Policy`](crate::Policy) that only delegate to the policy's frames or to the policy
//! that it wraps.

/// Implements the named methods of [`Policy`](crate::Policy) by calling the same method of
/// `self.$inner`: frames in lists, in a ring or without an order, or another policy. `contains_cached`
/// and `forget_cached` are for [lists with ghosts](crate::ghost_lists).
macro_rules! answers_of {
    (@contains $inner:ident) => {
        fn contains(&self, page: tantalum_base::PageNo) -> bool {
            self.$inner.contains(page)
        }
    };
    (@write_candidates $inner:ident) => {
        fn write_candidates(&self, pages_max: usize, pages: &mut Vec<tantalum_base::PageNo>) {
            self.$inner.write_candidates(pages_max, pages);
        }
    };
    (@cleaned $inner:ident) => {
        fn cleaned(&mut self, page: tantalum_base::PageNo) {
            self.$inner.cleaned(page);
        }
    };
    (@forget $inner:ident) => {
        fn forget(&mut self, page: tantalum_base::PageNo) -> bool {
            self.$inner.forget(page)
        }
    };
    (@measured $inner:ident) => {
        fn measured(&mut self, operation: crate::Physical, time_ns: u64) {
            self.$inner.measured(operation, time_ns);
        }
    };
    (@gauges $inner:ident) => {
        fn gauges(&self) -> Vec<crate::Gauge> {
            self.$inner.gauges()
        }
    };
    (@search_steps $inner:ident) => {
        fn search_steps(&self) -> u64 {
            self.$inner.search_steps()
        }
    };
    (@capacity_pages $inner:ident) => {
        fn capacity_pages(&self) -> u32 {
            self.$inner.capacity_pages()
        }
    };
    (@dirty_pages $inner:ident) => {
        fn dirty_pages(&self) -> u32 {
            self.$inner.dirty_pages()
        }
    };
    (@memory_bytes $inner:ident) => {
        fn memory_bytes(&self) -> u64 {
            self.$inner.memory_bytes()
        }
    };
    (@validate $inner:ident) => {
        #[cfg(test)]
        fn validate(&self) {
            self.$inner.validate();
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
    ($inner:ident: $($method:ident)+) => {
        $(crate::answers::answers_of!(@$method $inner);)+
    };
}
pub(crate) use answers_of;
