//! The choice of an operation's record.
use std::collections::BTreeSet;
use tantalum_base::Rng;
use tantalum_trace::ycsb::{Requests, THETA};
use tantalum_trace::zipf::Zipf;

use super::keys::scattered;

/// Ranks of YCSB's scattered Zipf distribution, for any number of records.
const SCATTERED_RANKS: u64 = 10_000_000_000;

/// The existing records. A new record may be requested once its insert, and the inserts of all earlier ones, were acknowledged.
#[derive(Debug)]
pub(super) struct Known {
    next: u64,
    inserting: BTreeSet<u64>,
}

impl Known {
    pub(super) fn new() -> Self {
        Known { next: 0, inserting: BTreeSet::new() }
    }

    /// Records that may be requested: all below this.
    pub(super) fn end(&self) -> u64 {
        self.inserting.first().copied().unwrap_or(self.next)
    }

    /// Records that exist or are being inserted: all below this.
    pub(super) fn begun(&self) -> u64 {
        self.next
    }

    /// The number of a new record.
    pub(super) fn insert(&mut self) -> u64 {
        let record = self.next;
        self.next += 1;
        self.inserting.insert(record);
        record
    }

    /// The record was inserted.
    pub(super) fn inserted(&mut self, record: u64) {
        self.inserting.remove(&record);
    }
}

/// Draws records.
#[derive(Debug)]
pub(super) struct Chooser {
    requests: Requests,
    zipf: Zipf,
    /// Number of records that `zipf` covers, or is scattered over.
    records: u64,
}

impl Chooser {
    /// A chooser for a run that begins with `records` records and inserts about `inserts`. As in YCSB, the hot records of a run are
    /// scattered over twice as many new ones, so that inserts do not move them; a record that does not exist yet is drawn again.
    pub(super) fn new(requests: Requests, records: u64, inserts: u64) -> Self {
        match requests {
            Requests::Zipfian => {
                let zipf = Zipf::new(SCATTERED_RANKS, THETA);
                Chooser { requests, zipf, records: records + 2 * inserts }
            }
            Requests::Latest | Requests::Uniform => {
                Chooser { requests, zipf: Zipf::new(records, THETA), records }
            }
        }
    }

    /// A record below `end`.
    pub(super) fn draw(&mut self, end: u64, rng: &mut Rng) -> u64 {
        match self.requests {
            Requests::Zipfian => loop {
                let record = scattered(self.zipf.next(rng) - 1) % self.records;
                if record < end {
                    return record;
                }
            },
            Requests::Latest => {
                if self.records != end {
                    (self.zipf, self.records) = (Zipf::new(end, THETA), end);
                }
                end - self.zipf.next(rng)
            }
            Requests::Uniform => rng.below(self.records.min(end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDS: u64 = 1_000;
    const DRAWS: u64 = 200_000;

    fn drawn(requests: Requests, end: u64) -> Vec<f64> {
        let (mut chooser, rng) = (Chooser::new(requests, RECORDS, 0), &mut Rng::new(4));
        let mut counts = vec![0.0; end as usize];
        (0..DRAWS).for_each(|_| counts[chooser.draw(end, rng) as usize] += 1.0 / DRAWS as f64);
        counts
    }

    /// YCSB has the sum of all weights as a constant, 26.469 for ten thousand million ranks: the first rank has one part of it, and
    /// every record gets the ranks that are scattered to it.
    #[test]
    fn the_hottest_record_is_as_hot_as_ycsbs() {
        let counts = drawn(Requests::Zipfian, RECORDS);
        let hottest = scattered(0) % RECORDS;
        let share = counts[hottest as usize];
        let (first, chance) = (1.0 / 26.469_028_201_783_02, 1.0 / RECORDS as f64);
        assert!((share - first).abs() < 2.0 * chance, "{share} beside {first}");
        let second = counts[(scattered(1) % RECORDS) as usize];
        assert!((second - first / 2f64.powf(0.99)).abs() < 2.0 * chance, "{second}");
        assert!(counts.iter().all(|count| *count > 0.0 && *count <= share));
    }

    #[test]
    fn the_latest_record_is_asked_for_most() {
        let counts = drawn(Requests::Latest, RECORDS + 500);
        let weights: f64 = (1..=RECORDS + 500).map(|rank| (rank as f64).powf(-THETA)).sum();
        for (rank, count) in (1..=5).zip(counts.iter().rev()) {
            let expected = f64::from(rank).powf(-THETA) / weights;
            assert!((count / expected - 1.0).abs() < 0.1, "rank {rank}: {count}, {expected}");
        }
    }

    #[test]
    fn uniform_requests_are_for_any_record_that_was_loaded() {
        let counts = drawn(Requests::Uniform, RECORDS + 10);
        let share = 1.0 / RECORDS as f64;
        assert!(counts[..RECORDS as usize].iter().all(|count| (count / share - 1.0).abs() < 0.4));
        assert!(counts[RECORDS as usize..].iter().all(|count| *count == 0.0));
    }

    #[test]
    fn a_record_is_asked_for_when_all_before_it_are_there() {
        let mut known = Known::new();
        let records = [known.insert(), known.insert(), known.insert()];
        assert_eq!((records, known.end()), ([0, 1, 2], 0));
        known.inserted(1);
        assert_eq!(known.end(), 0);
        known.inserted(0);
        assert_eq!(known.end(), 2);
        known.inserted(2);
        assert_eq!(known.end(), 3);
    }
}
