//! A set of pages as ranges that neither overlap nor touch.
use std::collections::BTreeMap;
use tantalum_base::{PageNo, PageRange};

/// The first page of each range, with the page after its last.
#[derive(Debug, Default)]
pub(crate) struct Ranges(BTreeMap<PageNo, PageNo>);

impl Ranges {
    /// Adds the pages of `range`.
    pub(crate) fn insert(&mut self, range: PageRange) {
        if range.pages == 0 {
            return;
        }
        let (mut first, mut end) = (range.first, range.end());
        // The ranges that overlap or touch it, starting with the last.
        while let Some((&other, &other_end)) = self.0.range(..=end).next_back()
            && other_end >= first
        {
            self.0.remove(&other);
            (first, end) = (first.min(other), end.max(other_end));
        }
        self.0.insert(first, end);
    }

    /// The ranges, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PageRange> + Clone {
        self.0.iter().map(|(first, end)| PageRange::new(*first, end.0 - first.0))
    }

    /// If there are more than `most` ranges, merges all into one, including the gaps between them.
    pub(crate) fn limit(&mut self, most: usize) {
        if self.0.len() > most
            && let (Some((&first, _)), Some((_, &end))) =
                (self.0.first_key_value(), self.0.last_key_value())
        {
            self.0 = BTreeMap::from([(first, end)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tantalum_base::Rng;

    #[test]
    fn ranges_have_the_pages_that_were_added_and_no_more_ranges_than_they_need() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let (mut ranges, mut pages) = (Ranges::default(), BTreeSet::new());
            for _ in 0..40 {
                let range = PageRange::new(PageNo(rng.below(100)), rng.below(6));
                ranges.insert(range);
                pages.extend(range.iter());
                let found: Vec<PageNo> = ranges.iter().flat_map(|range| range.iter()).collect();
                assert_eq!(found, Vec::from_iter(pages.iter().copied()), "seed {seed}");
                let begins = |page: &&PageNo| page.0 == 0 || !pages.contains(&PageNo(page.0 - 1));
                assert_eq!(ranges.0.len(), pages.iter().filter(begins).count(), "seed {seed}");
            }
            let (first, last) = (pages.first().unwrap().0, pages.last().unwrap().0);
            ranges.limit(1);
            let all: Vec<PageRange> = ranges.iter().collect();
            assert_eq!(all, [PageRange::new(PageNo(first), last + 1 - first)], "seed {seed}");
        }
    }
}
