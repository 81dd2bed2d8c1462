//! Independent runs on all cores. Each is a world of its own, so that what comes out does not depend
//! on how many there are at a time.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tantalum_base::Result;

/// Cores of this machine.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `run` on each of `jobs`, with up to `threads` threads; the results in the order of the
/// jobs. `progress` is told (jobs done, jobs in all) after each, from any thread.
///
/// # Errors
/// The first of the jobs' own, in their order; all are run.
pub fn side_by_side<J: Sync, T: Send>(
    jobs: &[J],
    threads: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
    run: impl Fn(&J) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let threads = threads.clamp(1, jobs.len().max(1));
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Mutex<Vec<Option<Result<T>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { break };
            let result = run(job);
            results.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(result);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().flatten().collect()
}
