//! The durable watermark: the version up to which every change is durable.
use std::collections::VecDeque;
use tantalum_base::Version;

/// The progress of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    InFlight,
    Returned,
    Durable,
}

/// One batch of the log.
#[derive(Clone, Copy)]
struct Append {
    last: Version,
    progress: Progress,
}

/// Tracks appends in version order. The watermark passes an append when it and all before it are
/// durable.
pub struct Watermark {
    // In version order; `first_number` counts those that were removed.
    appends: VecDeque<Append>,
    first_number: u64,
    watermark: Version,
}

/// Identifies one append in the tracker.
#[derive(Clone, Copy, Debug)]
pub struct BatchNumber(u64);

impl Watermark {
    /// A tracker with everything up to `watermark` durable.
    pub fn new(watermark: Version) -> Self {
        Watermark { appends: VecDeque::new(), first_number: 0, watermark }
    }

    /// Every version up to this one is durable.
    pub fn version(&self) -> Version {
        self.watermark
    }

    /// Starts a batch whose last version is `last`. Batches start in version order.
    pub fn start(&mut self, last: Version) -> BatchNumber {
        debug_assert!(self.appends.back().is_none_or(|before| before.last < last));
        self.appends.push_back(Append { last, progress: Progress::InFlight });
        BatchNumber(self.first_number + self.appends.len() as u64 - 1)
    }

    /// The last version of the latest batch; the watermark if no batch is under way.
    pub fn last_started(&self) -> Version {
        self.appends.back().map_or(self.watermark, |append| append.last)
    }

    /// Notes that the append returned; `durable`: it survives a power cut already.
    pub fn returned(&mut self, number: BatchNumber, durable: bool) {
        let index = (number.0 - self.first_number) as usize;
        self.appends[index].progress = if durable { Progress::Durable } else { Progress::Returned };
        self.advance();
    }

    /// The batches that have returned, which a sync that starts now will make durable.
    pub fn before_sync(&self) -> Vec<BatchNumber> {
        let returned = |(index, append): (usize, &Append)| {
            (append.progress == Progress::Returned)
                .then_some(BatchNumber(self.first_number + index as u64))
        };
        self.appends.iter().enumerate().filter_map(returned).collect()
    }

    /// Whether a sync would make anything durable.
    pub fn wants_sync(&self) -> bool {
        self.appends.iter().any(|append| append.progress == Progress::Returned)
    }

    /// Notes that a sync has completed which started after these batches had returned.
    pub fn synced(&mut self, numbers: &[BatchNumber]) {
        for number in numbers {
            // The watermark may have passed it with another sync.
            if let Some(index) = number.0.checked_sub(self.first_number) {
                self.appends[index as usize].progress = Progress::Durable;
            }
        }
        self.advance();
    }

    fn advance(&mut self) {
        while let Some(Append { last, progress: Progress::Durable }) = self.appends.front().copied()
        {
            self.appends.pop_front();
            self.first_number += 1;
            self.watermark = last;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watermark_waits_for_the_slowest() {
        let mut tracker = Watermark::new(Version(10));
        assert_eq!(tracker.last_started(), Version(10));
        let first = tracker.start(Version(12));
        let second = tracker.start(Version(13));
        tracker.returned(second, true);
        assert_eq!(tracker.version(), Version(10));
        assert_eq!(tracker.last_started(), Version(13));
        tracker.returned(first, false);
        assert_eq!(tracker.version(), Version(10));
        let syncing = tracker.before_sync();
        let third = tracker.start(Version(14));
        tracker.returned(third, false);
        tracker.synced(&syncing);
        assert_eq!(tracker.version(), Version(13), "the third returned after the sync started");
        tracker.synced(&syncing);
        assert_eq!(tracker.version(), Version(13));
    }
}
