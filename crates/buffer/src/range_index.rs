//! Ranges of pages by position, to find those that overlap another range without checking all.
use std::collections::BTreeSet;
use tantalum_base::PageRange;

/// Ranges. The caller gives each one a number, as several may be at the same position.
///
/// They are grouped by length, in powers of two. If a range of up to `n` pages overlaps another
/// one, it begins less than `n` pages before it. So a search checks few ranges that do not overlap.
#[derive(Debug, Default)]
pub(crate) struct RangeIndex {
    /// Length class, first page, number.
    places: BTreeSet<(u32, u64, u64)>,
}

impl RangeIndex {
    pub(crate) fn insert(&mut self, range: PageRange, number: u64) {
        self.places.insert((class_of(range), range.first.0, number));
    }

    pub(crate) fn remove(&mut self, range: PageRange, number: u64) {
        self.places.remove(&(class_of(range), range.first.0, number));
    }

    /// The numbers of all ranges that may overlap `range`, including some that end shortly before
    /// it.
    pub(crate) fn near(&self, range: PageRange) -> impl Iterator<Item = u64> {
        let begin_of_class = |class| self.places.range((class, 0, 0)..).next().map(|place| place.0);
        let classes =
            std::iter::successors(begin_of_class(0), move |class| begin_of_class(class + 1));
        classes.flat_map(move |class| {
            let pages_max = u64::MAX >> (63 - class);
            let first = range.first.0.saturating_sub(pages_max - 1);
            let places = self.places.range((class, first, 0)..(class, range.end().0, 0));
            places.map(|(_, _, number)| *number)
        })
    }
}

/// The binary logarithm of the length, rounded down: 0 for one page, 1 for two and three.
fn class_of(range: PageRange) -> u32 {
    range.pages.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::{PageNo, Rng};

    #[test]
    fn what_meets_a_range_is_found_and_what_was_removed_is_not() {
        let mut rng = Rng::new(1);
        let (mut index, mut all) = (RangeIndex::default(), Vec::new());
        for number in 0..2_000 {
            let pages = 1 << rng.below(8);
            let range = PageRange::new(PageNo(rng.below(4_000)), pages + rng.below(pages));
            index.insert(range, number);
            all.push((range, number));
            if rng.below(3) > 0 {
                let (range, number) = all.swap_remove(rng.below(all.len() as u64) as usize);
                index.remove(range, number);
            }
            let asked = PageRange::new(PageNo(rng.below(4_000)), 1 + rng.below(40));
            let mut found: Vec<u64> = index.near(asked).collect();
            found.retain(|found| {
                all.iter().any(|(range, number)| number == found && range.overlaps(asked))
            });
            let mut meet: Vec<u64> = all
                .iter()
                .filter(|(range, _)| range.overlaps(asked))
                .map(|(_, number)| *number)
                .collect();
            found.sort_unstable();
            meet.sort_unstable();
            assert_eq!(found, meet, "{asked}");
            assert!(index.near(asked).all(|near| all.iter().any(|(_, number)| *number == near)));
        }
    }
}
