use super::{CrashOptions, CrashStore, CutStyle, IoFaultKind, LostBlocks};
use crate::block_store::{BlockStore, MemoryStore};
use crate::cut::{CutPlan, Fate};
use tantalum_base::{ErrorKind, Result, Rng};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

type Store = CrashStore<MemoryStore, Virtual>;

fn store() -> (Virtual, Store) {
    let runtime = Virtual::new(Schedule::Fifo);
    let store =
        CrashStore::new(runtime.clone(), MemoryStore::new(1 << 20), CrashOptions::default());
    (runtime, store)
}

async fn write(store: &Store, block: u64, blocks: usize, fill: u8, durable: bool) -> Result<()> {
    let mut buf = store.buffer(blocks * 4096);
    buf.fill(fill);
    store.recycle(store.write(block * 4096, buf, durable).await?);
    Ok(())
}

/// The first byte of each of `blocks` blocks.
async fn first_bytes<S: BlockStore>(store: &S, block: u64, blocks: usize) -> Vec<u8> {
    let buf = store.read(block * 4096, store.buffer(blocks * 4096)).await.unwrap();
    buf.chunks(4096).map(|block| block[0]).collect()
}

#[test]
fn unsynced_writes_are_read_but_not_kept() {
    let (runtime, store) = store();
    runtime
        .run(async move {
            write(&store, 0, 4, 1, false).await.unwrap();
            store.sync().await.unwrap();
            write(&store, 1, 1, 2, false).await.unwrap();
            write(&store, 3, 1, 3, true).await.unwrap();
            assert_eq!(first_bytes(&store, 0, 5).await, [1, 2, 1, 3, 0]);
            assert_eq!(store.pending_writes(), 1);
            store.cut(&mut Rng::new(1), CutStyle::DropAll).await.unwrap();
            assert_eq!(first_bytes(store.inner(), 0, 5).await, [1, 1, 1, 3, 0]);
            let refused = write(&store, 0, 1, 9, true).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::PowerCut);
            assert_eq!(store.sync().await.unwrap_err().kind(), ErrorKind::PowerCut);
        })
        .unwrap();
}

#[test]
fn an_older_write_never_lands_over_a_durable_one() {
    for seed in 0..20 {
        let (runtime, store) = store();
        let landed = runtime
            .run(async move {
                write(&store, 0, 3, 1, false).await.unwrap();
                write(&store, 1, 1, 2, true).await.unwrap();
                assert_eq!(first_bytes(&store, 0, 3).await, [1, 2, 1]);
                let style = if seed == 0 { CutStyle::LandAll } else { CutStyle::Random };
                store.cut(&mut Rng::new(seed), style).await.unwrap();
                first_bytes(store.inner(), 0, 3).await
            })
            .unwrap();
        assert_eq!(landed[1], 2, "seed {seed}");
        assert!(seed > 0 || landed == [1, 2, 1]);
    }
}

#[test]
fn overlapping_writes_land_in_either_order() {
    let mut seen = [false; 3];
    for seed in 0..64 {
        let (runtime, store) = store();
        let landed = runtime
            .run(async move {
                write(&store, 0, 1, 1, false).await.unwrap();
                write(&store, 0, 1, 2, false).await.unwrap();
                store.cut(&mut Rng::new(seed), CutStyle::Random).await.unwrap();
                first_bytes(store.inner(), 0, 1).await[0]
            })
            .unwrap();
        seen[landed as usize] = true;
    }
    assert_eq!(seen, [true; 3]);
}

#[test]
fn a_tear_leaves_some_sectors_and_loses_some() {
    for seed in 0..50 {
        let (runtime, store) = store();
        let sectors = runtime
            .run(async move {
                write(&store, 2, 2, 7, false).await.unwrap();
                store.cut(&mut Rng::new(seed), CutStyle::TearAll).await.unwrap();
                let inner = store.inner();
                let buf = inner.read(2 * 4096, inner.buffer(8192)).await.unwrap();
                buf.chunks(512).map(|sector| sector[0]).collect::<Vec<_>>()
            })
            .unwrap();
        assert!(sectors.contains(&0) && sectors.contains(&7), "seed {seed}: {sectors:?}");
    }
}

#[test]
fn a_write_whose_future_was_dropped_can_still_land() {
    let runtime = Virtual::new(Schedule::Fifo);
    let options = CrashOptions { write_ns: (100, 100), ..CrashOptions::default() };
    let store = CrashStore::new(runtime.clone(), MemoryStore::new(1 << 20), options);
    let writer = store.clone();
    runtime.spawn("writer", async move { write(&writer, 0, 1, 5, true).await });
    let sleeper = runtime.sleep(50);
    runtime.run(sleeper).unwrap();
    runtime.drop_tasks();
    let landed = runtime
        .run(async move {
            assert_eq!(first_bytes(&store, 0, 1).await, [0], "in flight, so not read yet");
            store.cut(&mut Rng::new(1), CutStyle::LandAll).await.unwrap();
            first_bytes(store.inner(), 0, 1).await
        })
        .unwrap();
    assert_eq!(landed, [5]);
}

#[test]
fn a_planned_cut_gives_the_operation_its_fate() {
    // Operations: 0 a write, 1 a durable write, 2 a sync, 3 a durable write.
    let expected = [
        (0, Fate::Land, [1, 0, 0]),
        (0, Fate::Vanish, [0, 0, 0]),
        (1, Fate::Land, [0, 2, 0]),
        (1, Fate::Vanish, [0, 0, 0]),
        (2, Fate::Land, [1, 2, 0]),
        (2, Fate::Vanish, [0, 2, 0]),
        (3, Fate::Land, [1, 2, 3]),
        (3, Fate::Vanish, [1, 2, 0]),
    ];
    for (after_operations, fate, blocks) in expected {
        let (runtime, store) = store();
        store.plan_cut(CutPlan { after_operations, fate });
        let landed = runtime
            .run(async move {
                let work = async {
                    write(&store, 0, 1, 1, false).await?;
                    write(&store, 1, 1, 2, true).await?;
                    store.sync().await?;
                    write(&store, 2, 1, 3, true).await
                };
                assert_eq!(work.await.unwrap_err().kind(), ErrorKind::PowerCut);
                assert_eq!(store.operations(), after_operations + 1);
                store.until_cut().await;
                store.cut(&mut Rng::new(1), CutStyle::DropAll).await.unwrap();
                first_bytes(store.inner(), 0, 3).await
            })
            .unwrap();
        assert_eq!(landed, blocks, "cut at operation {after_operations}, {fate:?}");
    }
}

#[test]
fn a_sync_covers_only_what_had_returned() {
    let runtime = Virtual::new(Schedule::Fifo);
    let options =
        CrashOptions { write_ns: (100, 100), sync_ns: (500, 500), ..CrashOptions::default() };
    let store = CrashStore::new(runtime.clone(), MemoryStore::new(1 << 20), options);
    let late = store.clone();
    let landed = runtime
        .run({
            let runtime = runtime.clone();
            async move {
                write(&store, 0, 1, 1, false).await.unwrap();
                let late = runtime.spawn("late", async move { write(&late, 1, 1, 2, false).await });
                store.sync().await.unwrap();
                late.await.unwrap();
                store.cut(&mut Rng::new(1), CutStyle::DropAll).await.unwrap();
                first_bytes(store.inner(), 0, 2).await
            }
        })
        .unwrap();
    assert_eq!(landed, [1, 0]);
}

#[test]
fn a_lost_write_is_reported_done_and_never_there() {
    for (durable, lost, there) in [
        (true, LostBlocks::All, [1, 1]),
        (true, LostBlocks::First, [1, 7]),
        (false, LostBlocks::All, [1, 1]),
        (false, LostBlocks::First, [1, 7]),
    ] {
        let (runtime, store) = store();
        let landed = runtime
            .run(async move {
                write(&store, 0, 3, 1, true).await.unwrap();
                store.lose_next_write(lost);
                write(&store, 0, 2, 7, durable).await.unwrap();
                // The next write is not affected.
                write(&store, 2, 1, 9, durable).await.unwrap();
                assert_eq!(first_bytes(&store, 0, 3).await, [there[0], there[1], 9]);
                store.sync().await.unwrap();
                store.cut(&mut Rng::new(1), CutStyle::LandAll).await.unwrap();
                first_bytes(store.inner(), 0, 3).await
            })
            .unwrap();
        assert_eq!(landed, [there[0], there[1], 9], "{lost:?}, durable: {durable}");
    }
}

#[test]
fn a_failing_write_leaves_any_of_its_blocks() {
    let mut seen = [false; 2];
    for seed in 0..20 {
        let runtime = Virtual::new(Schedule::Fifo);
        let options = CrashOptions { seed, ..CrashOptions::default() };
        let store = CrashStore::new(runtime.clone(), MemoryStore::new(1 << 20), options);
        let block = runtime
            .run(async move {
                store.fail_operation(1, IoFaultKind::Io);
                store.fail_operation(2, IoFaultKind::NoSpace);
                write(&store, 0, 2, 1, true).await.unwrap();
                let error = write(&store, 0, 1, 2, true).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Io);
                let error = write(&store, 1, 1, 2, true).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::OutOfSpace);
                write(&store, 2, 1, 3, true).await.unwrap();
                let bytes = first_bytes(&store, 0, 3).await;
                assert_eq!(bytes[1..], [1, 3], "nothing was written where there was no space");
                bytes[0]
            })
            .unwrap();
        seen[usize::from(block) - 1] = true;
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn a_failing_sync_drops_what_was_not_durable_and_the_next_succeeds() {
    let mut seen = [false; 2];
    for seed in 0..20 {
        let runtime = Virtual::new(Schedule::Fifo);
        let options = CrashOptions { seed, ..CrashOptions::default() };
        let store = CrashStore::new(runtime.clone(), MemoryStore::new(1 << 20), options);
        let landed = runtime
            .run(async move {
                write(&store, 0, 1, 1, true).await.unwrap();
                write(&store, 0, 1, 2, false).await.unwrap();
                store.fail_operation(0, IoFaultKind::Io);
                assert_eq!(store.sync().await.unwrap_err().kind(), ErrorKind::Io);
                assert_eq!(store.pending_writes(), 0);
                let seen = first_bytes(&store, 0, 1).await[0];
                store.sync().await.unwrap();
                store.cut(&mut Rng::new(1), CutStyle::DropAll).await.unwrap();
                assert_eq!(first_bytes(store.inner(), 0, 1).await, [seen]);
                seen
            })
            .unwrap();
        seen[usize::from(landed) - 1] = true;
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn a_zeroing_is_read_at_once_and_lands_vanishes_or_tears() {
    for seed in 0..30 {
        for style in [CutStyle::DropAll, CutStyle::LandAll, CutStyle::TearAll, CutStyle::Random] {
            let (runtime, store) = store();
            let bytes = runtime
                .run(async move {
                    write(&store, 0, 6, 7, true).await.unwrap();
                    store.zero(4096, 4 * 4096).await.unwrap();
                    assert_eq!(first_bytes(&store, 0, 6).await, [7, 0, 0, 0, 0, 7]);
                    assert_eq!((store.operations(), store.pending_writes()), (2, 1));
                    store.cut(&mut Rng::new(seed), style).await.unwrap();
                    store.inner().image()
                })
                .unwrap();
            let zeroed = bytes[4096..5 * 4096].chunks(512).filter(|sector| sector[0] == 0).count();
            let possible = match style {
                CutStyle::DropAll => 0..=0,
                CutStyle::LandAll => 32..=32,
                CutStyle::TearAll => 1..=31,
                CutStyle::Random => 0..=32,
            };
            assert!(possible.contains(&zeroed), "seed {seed}, {style:?}: {zeroed} sectors");
            assert_eq!((bytes[4095], bytes[5 * 4096]), (7, 7));
        }
    }
}

#[test]
fn a_synced_zeroing_stays_and_a_durable_write_over_it_too() {
    let (runtime, store) = store();
    let landed = runtime
        .run(async move {
            write(&store, 0, 4, 1, true).await.unwrap();
            store.zero(0, 2 * 4096).await.unwrap();
            store.sync().await.unwrap();
            store.zero(2 * 4096, 2 * 4096).await.unwrap();
            write(&store, 3, 1, 5, true).await.unwrap();
            store.cut(&mut Rng::new(1), CutStyle::LandAll).await.unwrap();
            first_bytes(store.inner(), 0, 4).await
        })
        .unwrap();
    assert_eq!(landed, [0, 0, 0, 5]);
}

#[test]
fn a_long_zeroing_takes_little_memory() {
    let runtime = Virtual::new(Schedule::Fifo);
    let memory = MemoryStore::new(8 << 30);
    let store = CrashStore::new(runtime.clone(), memory.clone(), CrashOptions::default());
    let kept = runtime.run(async move {
        for at in [0, 3 << 30, (8 << 30) - 4096] {
            write(&store, at / 4096, 1, 7, true).await.unwrap();
        }
        store.zero(0, 8 << 30).await.unwrap();
        assert_eq!(first_bytes(&store, 3 << 18, 1).await, [0]);
        store.sync().await.unwrap();
    });
    kept.unwrap();
    assert_eq!(memory.allocated_bytes(), 0);
}

#[test]
fn a_zeroing_fails_as_a_write_does() {
    for (kind, expected) in
        [(IoFaultKind::Io, ErrorKind::Io), (IoFaultKind::NoSpace, ErrorKind::OutOfSpace)]
    {
        let (runtime, store) = store();
        runtime
            .run(async move {
                write(&store, 0, 64, 7, true).await.unwrap();
                store.fail_operation(0, kind);
                let error = store.zero(0, 64 * 4096).await.unwrap_err();
                assert_eq!(error.kind(), expected);
                let bytes = first_bytes(&store, 0, 64).await;
                assert_eq!(bytes.contains(&0), kind == IoFaultKind::Io);
                assert!(bytes.contains(&7));
            })
            .unwrap();
    }
}
