//! Independent runs on all cores. Each is a world of its own, so that what comes out does not depend
//! on how many there are at a time.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tantalum_base::{ErrorKind, Result};
use tantalum_runtime::supervision;

use crate::work::Work;

/// Cores of this machine.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `run` on each of `jobs`, with up to `threads` threads; the results in the order of the
/// jobs. `work` is told of each that ends. Where runs are asked to end ([`supervision`]), no other job is begun, and
/// those that were not done are `None`.
///
/// # Errors
/// The first of the jobs' own, in their order; all are run.
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

/// The results of jobs of which all must be done.
///
/// # Errors
/// `Interrupted` where one of them is not.
pub fn all_done<T>(results: Vec<Option<T>>) -> Result<Vec<T>> {
    let jobs = results.len();
    let done: Vec<T> = results.into_iter().flatten().collect();
    if done.len() < jobs {
        supervision::check_stop()?;
    }
    Ok(done)
}
