//! A read of cached and uncached pages returns all as of one moment.
#[path = "../../models/tests/reads/check.rs"]
mod check;
mod support;

use check::{Load, Seen, check};
use std::rc::Rc;
use support::{Memory, policy, run};
use tantalum_buffer::Buffered;
use tantalum_runtime::virtual_time::Schedule;

#[test]
fn mixed_reads_show_one_moment() {
    let mut all = Seen::default();
    for seed in 0..40 {
        let load = Load { seed, commands: 150, others: 60, pause_ns: 3_000, trims: 0 };
        let seen = run(Schedule::Shuffled(seed), move |runtime| async move {
            let device = Memory::new(&runtime, 72, 4_000, seed);
            device.reorders.set(true);
            // Some of the pages stay cached, others are evicted.
            let buffered = Rc::new(Buffered::new(device, Some(policy("lru", 8, 72))));
            let seen = check(&runtime, &buffered, load).await;
            let cache = buffered.statistics().unwrap();
            assert!(cache.hits > 50 && cache.misses > 50, "{cache:?}");
            buffered.validate_cache();
            seen
        });
        all.reads += seen.reads;
        all.overlapped += seen.overlapped;
    }
    assert!(all.overlapped > 1_000, "few reads met a command: {all:?}");
}
