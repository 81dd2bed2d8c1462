//! The index of the log: the newest committed version of each page, and its transaction.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tantalum_base::{FastMap, PageNo, SlotNo};

/// A committed version in the log.
#[derive(Clone, Debug)]
pub(super) struct Logged<P> {
    /// The number of its transaction.
    pub number: u64,
    /// Its place in the log.
    pub slot: SlotNo,
    /// The expected checksum of the content when it is read from there.
    pub checksum: u32,
    /// The content, while memory has room for it.
    pub content: Option<P>,
}

/// The controller's index of the log. Its memory is lost at a power cut.
pub(super) struct Index<P> {
    newest: FastMap<PageNo, Logged<P>>,
    /// The pages of each committed transaction that is not home.
    transactions: BTreeMap<u64, Vec<PageNo>>,
    in_flight: BTreeSet<u64>,
    /// Contents in memory, oldest first; some may have been replaced since.
    kept: VecDeque<(PageNo, u64)>,
    kept_max: usize,
}

impl<P: Clone> Index<P> {
    /// An empty index that keeps at most `kept_max` contents.
    pub(super) fn new(kept_max: usize) -> Self {
        Index {
            newest: FastMap::default(),
            transactions: BTreeMap::new(),
            in_flight: BTreeSet::new(),
            kept: VecDeque::new(),
            kept_max,
        }
    }

    /// Transaction `number` starts to be logged. Returns the number up to which all transactions
    /// have ended.
    pub(super) fn start(&mut self, number: u64) -> u64 {
        self.in_flight.insert(number);
        self.in_flight.first().unwrap_or(&number) - 1
    }

    /// Whether a transaction up to `last` is still being logged.
    pub(super) fn is_in_flight(&self, last: u64) -> bool {
        self.in_flight.first().is_some_and(|first| *first <= last)
    }

    /// Transaction `number` is committed with these versions.
    pub(super) fn committed(
        &mut self,
        number: u64,
        logged: impl Iterator<Item = (PageNo, Logged<P>)>,
    ) {
        let mut pages = Vec::new();
        for (page, logged) in logged {
            pages.push(page);
            // A later transaction may have finished earlier.
            if self.newest.get(&page).is_none_or(|known| known.number < number) {
                if logged.content.is_some() {
                    self.kept.push_back((page, number));
                }
                self.newest.insert(page, logged);
            }
        }
        self.transactions.insert(number, pages);
        self.in_flight.remove(&number);
        while self.kept.len() > self.kept_max {
            let Some((page, number)) = self.kept.pop_front() else { break };
            if let Some(logged) = self.newest.get_mut(&page).filter(|now| now.number == number) {
                logged.content = None;
            }
        }
    }

    /// The newest committed version of `page`, if it is in the log.
    pub(super) fn get(&self, page: PageNo) -> Option<&Logged<P>> {
        self.newest.get(&page)
    }

    /// For transactions up to `last`: their versions that no newer version in the log replaces,
    /// sorted by page.
    pub(super) fn oldest(&self, last: u64) -> Vec<(PageNo, Logged<P>)> {
        let mut oldest = Vec::new();
        for (number, pages) in self.transactions.range(..=last) {
            let newest = pages.iter().filter_map(|page| {
                let logged = self.newest.get(page).filter(|logged| logged.number == *number)?;
                Some((*page, logged.clone()))
            });
            oldest.extend(newest);
        }
        oldest.sort_unstable_by_key(|(page, _)| *page);
        oldest
    }

    /// Removes all transactions up to `last`, which are home.
    pub(super) fn forget(&mut self, last: u64) {
        let behind = self.transactions.split_off(&(last + 1));
        for (number, pages) in std::mem::replace(&mut self.transactions, behind) {
            for page in pages {
                if self.newest.get(&page).is_some_and(|logged| logged.number == number) {
                    self.newest.remove(&page);
                }
            }
        }
        // Removed contents must not count towards the limit.
        while let Some((page, number)) = self.kept.front() {
            if self.newest.get(page).is_some_and(|logged| logged.number == *number) {
                break;
            }
            self.kept.pop_front();
        }
    }
}
