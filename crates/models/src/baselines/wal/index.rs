//! What the log holds: the newest committed version of each page, and whose it is.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tantalum_base::{FastMap, PageNo, SlotNo};

/// A committed version in the log.
#[derive(Clone, Debug)]
pub(super) struct Logged<P> {
    /// Its transaction.
    pub number: u64,
    /// Where in the log.
    pub slot: SlotNo,
    /// What the content's checksum must be when it is read from there.
    pub checksum: u32,
    /// The content, as long as memory has room for it.
    pub content: Option<P>,
}

/// The controller's index of the log, in memory that a power cut empties.
pub(super) struct Index<P> {
    newest: FastMap<PageNo, Logged<P>>,
    /// Pages of the committed transactions that are not home.
    transactions: BTreeMap<u64, Vec<PageNo>>,
    in_flight: BTreeSet<u64>,
    /// Contents in memory, from the oldest on; some may have been replaced since.
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

    /// Transaction `number` is being logged. The number up to which none is any more.
    pub(super) fn start(&mut self, number: u64) -> u64 {
        self.in_flight.insert(number);
        self.in_flight.first().unwrap_or(&number) - 1
    }

    /// Whether a transaction up to `last` is being logged.
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
            // A later transaction may have been quicker.
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

    /// The versions of transactions up to `last` of which no newer one is in the log, by page.
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

    /// Everything of transactions up to `last` is home.
    pub(super) fn forget(&mut self, last: u64) {
        let behind = self.transactions.split_off(&(last + 1));
        for (number, pages) in std::mem::replace(&mut self.transactions, behind) {
            for page in pages {
                if self.newest.get(&page).is_some_and(|logged| logged.number == number) {
                    self.newest.remove(&page);
                }
            }
        }
        // Contents that are gone must not count against those that are there.
        while let Some((page, number)) = self.kept.front() {
            if self.newest.get(page).is_some_and(|logged| logged.number == *number) {
                break;
            }
            self.kept.pop_front();
        }
    }
}
