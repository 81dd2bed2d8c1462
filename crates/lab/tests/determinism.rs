//! The same scenario twice takes the same decisions at the same times.
use std::rc::Rc;
use tantalum_base::{PageNo, Rng, Stamp};
use tantalum_ftl::{Ftl, FtlOptions, FtlStatistics};
use tantalum_lab::crash::{NandRig, Rig};
use tantalum_media::wrappers::Recorder;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

/// Operations, their hash, and the counters after a load of `seed` by `clients`.
fn load(seed: u64, schedule: Schedule, clients: u64) -> (u64, u64, u64, FtlStatistics) {
    let runtime = Virtual::new(schedule);
    let media = NandRig::<Stamp>::new(seed).open(&runtime);
    let media = Recorder::new(Rc::new(media), 0);
    let options = FtlOptions { checkpoint_interval_slots: 100, ..FtlOptions::new(120) };
    let ftl = runtime.run(async move { Ftl::format(media, options).await }).unwrap().unwrap();
    let cleaner = Rc::clone(&ftl);
    runtime.spawn("cleaner", async move { cleaner.run_cleaner().await });
    let checkpointer = Rc::clone(&ftl);
    runtime.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let ftl = Rc::clone(&ftl);
            runtime.spawn("client", async move {
                let mut rng = Rng::split(seed, &format!("client {client}"));
                for count in 0..300 {
                    let page = PageNo(rng.below(120));
                    ftl.write(&[(page, Stamp::new(page, count))], rng.chance(0.5)).await.unwrap();
                }
            })
        })
        .collect();
    let all = async move {
        for task in tasks {
            task.await;
        }
    };
    runtime.run(all).unwrap();
    ftl.validate();
    (ftl.media().count(), ftl.media().hash(), runtime.now_ns(), ftl.statistics())
}

#[test]
fn the_same_scenario_twice_is_the_same() {
    for seed in 0..10 {
        let once = load(seed, Schedule::Shuffled(seed), 3);
        assert!(once.3.zones_cleaned > 0 && once.3.checkpoints > 1, "the load reaches every part");
        assert_eq!(once, load(seed, Schedule::Shuffled(seed), 3), "seed {seed}");
    }
    let other = |seed| load(seed, Schedule::Shuffled(seed), 3).1;
    assert_ne!(other(1), other(2), "the hash tells loads apart");
}
