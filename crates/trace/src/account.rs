//! Facts about a trace beside its events: the number of its requests before reshaping, and the data that were left out.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Receives the facts when the trace has been read to its end.
#[derive(Clone, Debug, Default)]
pub struct Account(Arc<Mutex<Told>>);

#[derive(Clone, Debug, Default)]
struct Told {
    requests: Option<u64>,
    dropped: Vec<&'static str>,
    truncations: u64,
}

impl Account {
    /// Reads and writes of the trace; a request of several pages counts once. `None` if the trace was not read to its
    /// end.
    pub fn requests(&self) -> Option<u64> {
        self.told().requests
    }

    /// Kinds of data of the trace that no event holds, such as `times`, each once.
    pub fn dropped(&self) -> Vec<&'static str> {
        self.told().dropped.clone()
    }

    /// Truncations of files among the data that were left out, if their number is known; 0 for parts of traces, which
    /// are read more than once.
    pub fn truncations(&self) -> u64 {
        self.told().truncations
    }

    /// Sets the number of truncations that were left out. The last call counts, as for the requests.
    pub fn set_truncations(&self, truncations: u64) {
        self.told().truncations = truncations;
    }

    /// Sets the number of reads and writes. The last call counts: parts of a trace end before the whole trace does.
    pub fn set_requests(&self, requests: u64) {
        self.told().requests = Some(requests);
    }

    /// Notes that these kinds of data were left out.
    pub fn add_dropped(&self, kinds: &[&'static str]) {
        let mut told = self.told();
        for kind in kinds {
            if !told.dropped.contains(kind) {
                told.dropped.push(kind);
            }
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
