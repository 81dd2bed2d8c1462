//! Compares ACE with batches built by hand from a naive policy.
use super::basic::Naive as NaiveBase;
use super::{Model, agree, steps};
use crate::{Effect, Request};
use proptest::prelude::*;
use tantalum_base::PageNo;

struct Naive<'a> {
    base: NaiveBase<'a>,
    write: usize,
    evict: usize,
}

impl Model for Naive<'_> {
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>) {
        let (hit, mut effects) = self.base.access(request);
        let Some(Effect::Evicted { dirty: true, .. }) = effects.first() else {
            return (hit, effects);
        };
        for (page, dirty) in self.base.pages() {
            if !dirty || page == request.page() || effects.len() == self.write {
                continue;
            }
            let leaves = effects.len() < self.evict;
            if leaves {
                self.base.forget(page);
                effects.push(Effect::Evicted { page, dirty: true });
            } else {
                self.base.cleaned(page);
                effects.push(Effect::Cleaned { page });
            }
        }
        (hit, effects)
    }

    fn cleaned(&mut self, page: PageNo) {
        self.base.cleaned(page);
    }

    fn forget(&mut self, page: PageNo) -> bool {
        self.base.forget(page)
    }

    fn pages(&self) -> Vec<(PageNo, bool)> {
        self.base.pages()
    }
}

proptest! {
    #[test]
    fn ace_writes_the_next_ones_along(
        base in prop::sample::select(vec!["lru", "fifo", "clock"]),
        frames in 1u32..16,
        (write, evict) in (1usize..6).prop_flat_map(|write| (Just(write), 1..=write)),
        steps in steps(30),
    ) {
        let text = format!("ace:write={write},evict={evict},base={base}");
        let mut naive = Naive { base: NaiveBase::new(base, frames), write, evict };
        agree(&text, frames, 30, &mut naive, &steps);
    }
}
