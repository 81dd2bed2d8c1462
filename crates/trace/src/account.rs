//! The outcome of reading a trace beside its events: how many requests it has as it stands, and which data were left out.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Hears it, once the trace was read to its end.
#[derive(Clone, Debug, Default)]
pub struct Account(Arc<Mutex<Told>>);

#[derive(Clone, Debug, Default)]
struct Told {
    requests: Option<u64>,
    dropped: Vec<&'static str>,
}

impl Account {
    /// Reads and writes of the trace, each one however many pages it asks for; `None` where it was not read to its end.
    pub fn requests(&self) -> Option<u64> {
        self.told().requests
    }

    /// Kinds of data that the trace has and no event holds, such as `times`, each once.
    pub fn dropped(&self) -> Vec<&'static str> {
        self.told().dropped.clone()
    }

    /// The last to end has the whole: parts of traces end before the trace that they make up.
    pub(crate) fn set_requests(&self, requests: u64) {
        self.told().requests = Some(requests);
    }

    /// These kinds of data were left out.
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
