//! Traces for tests over real page requests.
use std::path::Path;
use tantalum_policy::Request;
use tantalum_trace::{OpenOptions, PageEvent, open_pages};

/// The reads and writes of the trace at `path`.
pub fn load(path: &Path) -> Vec<Request> {
    let events = open_pages(path, &OpenOptions::default()).unwrap();
    let requests = events.filter_map(|event| match event.unwrap() {
        PageEvent::Read { page, .. } => Some(Request::new(page, false)),
        PageEvent::Write { page, .. } => Some(Request::new(page, true)),
        PageEvent::Trim { .. } | PageEvent::Commit => None,
    });
    requests.collect()
}

/// One past the highest page number.
pub fn pages_end(requests: &[Request]) -> u64 {
    requests.iter().map(|request| request.page().0 + 1).max().unwrap_or(0)
}
