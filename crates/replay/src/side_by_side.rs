//! Independent runs on all cores. They share nothing, so the results do not depend on the number of concurrent runs.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tantalum_base::{ErrorKind, Result};
use tantalum_runtime::supervision;

use crate::work::Work;

/// Number of cores of this machine.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `run` on each of `jobs`, with up to `threads` threads; the results are in the order of the jobs. Reports
/// each finished job to `work`. If runs are requested to end ([`supervision`]), no further job begins, and the
/// results of unfinished jobs are `None`.
///
/// # Errors
/// The first error of the jobs, in their order; all of them run.
pub fn side_by_side<J: Sync, T: Send>(
    jobs: &[J],
    threads: usize,
    work: &Work,
    run: impl Fn(&J) -> Result<T> + Sync,
) -> Result<Vec<Option<T>>> {
    let threads = threads.clamp(1, jobs.len().max(1));
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Result<Option<T>>>> =
        Mutex::new(jobs.iter().map(|_| Ok(None)).collect());
    let serve = || {
        while !supervision::is_stopped() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { break };
            let result = match run(job) {
                Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
                result => result.map(Some),
            };
            if !matches!(result, Ok(None)) {
                work.end_run();
            }
            results.lock().unwrap_or_else(PoisonError::into_inner)[at] = result;
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(serve);
        }
        serve();
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect()
}

/// The results of jobs that all must be finished.
///
/// # Errors
/// `Interrupted` if one of them is not.
pub fn all_done<T>(results: Vec<Option<T>>) -> Result<Vec<T>> {
    let jobs = results.len();
    let done: Vec<T> = results.into_iter().flatten().collect();
    if done.len() < jobs {
        supervision::check_stop()?;
    }
    Ok(done)
}
