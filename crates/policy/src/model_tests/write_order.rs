//! Write candidates of the policies made for flash: if only updates of unknown pages follow, the
//! candidates are written in exactly that order.
use super::{evicts_its_candidates, steps};
use proptest::prelude::*;

proptest! {
    #[test]
    fn candidates_are_in_the_order_of_writing(
        text in prop::sample::select(vec![
            "cflru:window=0.25", "cflru:window=0.75,form=walk", "lru_wsr", "ccflru", "fab:block=4",
            "fab:block=100", "ref:window=1,block=4,victims=2",
        ]),
        frames in 1u32..16,
        steps in steps(24),
    ) {
        let stayed = evicts_its_candidates(text, frames, &steps, true);
        prop_assert!(stayed.is_empty(), "{}: {:?} stay", text, stayed);
    }

    /// Hot pages stay for good if only new ones come.
    #[test]
    fn candidates_of_ad_lru_are_in_the_order_of_writing(
        text in prop::sample::select(vec!["ad_lru", "ad_lru:min_lc=0.5", "ad_lru:min_lc=0.99"]),
        frames in 1u32..16,
        steps in steps(24),
    ) {
        evicts_its_candidates(text, frames, &steps, true);
    }
}
