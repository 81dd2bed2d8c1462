//! Progress of runs that report to a [`Work`].
use std::sync::Arc;
use tantalum_console::progress::{Progress, Seen};
use tantalum_replay::work::{Done, Work};
use tantalum_report::number::thousands;

/// Follows runs that report their progress to `work`.
pub fn follow(work: &Arc<Work>) -> Progress {
    let work = Arc::clone(work);
    Progress::of(move || {
        let done = work.done();
        Seen { done: done.requests, of: done.requests_in_all, words: in_words(&done) }
    })
}

/// The progress, in words.
fn in_words(done: &Done) -> String {
    let Done { doing, runs, runs_in_all, requests, requests_in_all } = done;
    match runs_in_all {
        0 => (*doing).to_owned(),
        _ => format!(
            "{doing}: {runs} of {runs_in_all} runs, {} of {} requests",
            thousands(*requests),
            thousands(*requests_in_all),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_runs_are_is_told_where_it_is_known() {
        let measuring = Done { doing: "measuring the device", ..Done::default() };
        assert_eq!(in_words(&measuring), "measuring the device");
        let (runs, requests) = (3, 12_000);
        let counting =
            Done { doing: "counting", runs, runs_in_all: 85, requests, requests_in_all: 85_000 };
        assert_eq!(in_words(&counting), "counting: 3 of 85 runs, 12,000 of 85,000 requests");
    }
}
