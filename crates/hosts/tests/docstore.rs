//! Document stores compared with a `BTreeMap`, cut at every operation of small histories, on the worst devices that each
//! durability allows, in both modes, as bytes and as stamps.

use crate::made::Made;
use crate::worst_disk::WorstDisk;
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{Durability, ErrorKind, PageBuf, Payload, Result, Rng, Stamp};
use tantalum_hosts::docstore::{Block, DocStore, DocStoreOptions, Key, Mode, ValueStamp};
use tantalum_hosts::fault_points::Fault;
use tantalum_hosts::records::{ByteCodec, Codec, Remembered};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{JoinHandle, Runtime, Virtual, yield_now};

const DURABILITIES: [Durability; 3] =
    [Durability::OnAck, Durability::OnFlush, Durability::Volatile];

fn options(mode: Mode) -> DocStoreOptions {
    DocStoreOptions { batch_updates: 1_000, compact_at: None, ..DocStoreOptions::new(mode) }
}

type Model<V> = BTreeMap<Key, V>;
type Store<P, V, C> = Rc<DocStore<Virtual, WorstDisk<P>, V, C>>;

fn key(rng: &mut Rng, keys: u64) -> Vec<u8> {
    let number = rng.below(keys);
    let mut key = format!("document {number}").into_bytes();
    // Long keys, so that a small tree has several levels.
    key.resize(200 + (number % 50) as usize, b'.');
    key
}

/// The expected documents after a cut: one of two states.
struct Expected<V> {
    committed: Model<V>,
    /// Including all updates so far, which a commit in progress may have made durable.
    issued: Model<V>,
}

/// Makes random requests until one fails, and runs the compactions that begin meanwhile. `Ok` if none fails.
async fn live<P, V, C>(
    rt: &Virtual,
    store: &Store<P, V, C>,
    expected: &mut Expected<V>,
    rng: &mut Rng,
    requests: u64,
) -> Result<()>
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>>,
{
    let mut compactions = Vec::new();
    let lived = live_beside(rt, store, expected, rng, requests, &mut compactions).await;
    let mut ended = Ok(());
    for compaction in compactions {
        ended = ended.and(compaction.await);
    }
    lived.and(ended)
}

async fn live_beside<P, V, C>(
    rt: &Virtual,
    store: &Store<P, V, C>,
    expected: &mut Expected<V>,
    rng: &mut Rng,
    requests: u64,
    compactions: &mut Vec<JoinHandle<Result<()>>>,
) -> Result<()>
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>>,
{
    for _ in 0..requests {
        let name = key(rng, 40);
        match rng.below(20) {
            0..9 => {
                let bytes = [10, 500, 3_000, 4_000, 9_000][rng.below(5) as usize];
                let value = V::made(rng.next_u64(), bytes);
                match store.set(&name, value.clone()).await {
                    Ok(()) => drop(expected.issued.insert(name.into(), value)),
                    // A commit has made room, if possible.
                    Err(error) if error.kind() == ErrorKind::OutOfSpace => {
                        expected.committed = expected.issued.clone();
                        store.delete(&name).await?;
                        expected.issued.remove(&name[..]);
                    }
                    Err(error) => return Err(error),
                }
            }
            9..12 => {
                store.delete(&name).await?;
                expected.issued.remove(&name[..]);
            }
            12..15 => assert_eq!(store.get(&name).await?, expected.issued.get(&name[..]).cloned()),
            15..16 => {
                let (to, most) = (key(rng, 40), rng.below(10) as usize);
                let found = store.scan(&name, Some(&to), most).await?;
                let all = expected.issued.iter();
                let within = all.filter(|(key, _)| ***key >= *name && ***key < *to).take(most);
                let within: Vec<_> = within.map(|(k, v)| (k.clone(), v.clone())).collect();
                assert_eq!(found, within);
            }
            16..19 => {
                match rng.chance(0.5) {
                    true => store.commit().await?,
                    false => store.commit_header().await?,
                }
                expected.committed = expected.issued.clone();
            }
            _ if rng.chance(0.5) => store.compact().await?,
            _ => {
                let compacted = Rc::clone(store);
                let compaction = async move { compacted.compact().await };
                compactions.push(rt.spawn("compaction beside requests", compaction));
            }
        }
    }
    Ok(())
}

/// A history with a cut after `operations`, another cut in the recovery, and a complete recovery; returns whether it was cut
/// at all.
fn cut_history<P, V, C>(mode: Mode, durability: Durability, seed: u64, operations: u64) -> bool
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>> + Default,
{
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let rt = runtime.clone();
    let name = format!("{mode:?}, {durability:?}, seed {seed}, cut after {operations}");
    let ran = runtime.run(async move {
        let rng = &mut Rng::split(seed, "history");
        let cuts = &mut Rng::split(seed ^ operations << 8, "cuts");
        let (disk, codec) = (WorstDisk::<P>::new(durability, 220), Rc::new(C::default()));
        let mut store = DocStore::create(&rt, &disk, &codec, options(mode)).await.unwrap();
        let mut expected = Expected { committed: Model::new(), issued: Model::new() };
        let mut cut = false;
        for life in 0..3 {
            let left = if life == 0 { operations } else { cuts.below(200) };
            disk.cut_after(left);
            let ended = live(&rt, &store, &mut expected, rng, 30).await;
            assert!(ended.is_ok() || disk.is_off(), "{name}: {ended:?}");
            cut |= disk.is_off();
            // A commit beside a compaction may learn of the cut later than the caller.
            for _ in 0..20 {
                yield_now().await;
            }
            match cuts.chance(0.3) {
                true => disk.killed(),
                false => disk.power_on(cuts),
            }
            disk.cut_after(cuts.below(12));
            let cut_opening = DocStore::open(&rt, &disk, &codec, options(mode)).await;
            assert!(cut_opening.is_ok() || disk.is_off(), "{name}: {:?}", cut_opening.err());
            disk.power_on(cuts);
            store = DocStore::open(&rt, &disk, &codec, options(mode)).await.expect(&name);
            let found: Model<V> =
                store.scan(&[], None, usize::MAX).await.expect(&name).into_iter().collect();
            let whole = found == expected.committed || found == expected.issued;
            assert!(whole, "{name}: neither the last commit nor the next one");
            assert_eq!(store.statistics().documents, found.len() as u64, "{name}");
            expected = Expected { committed: found.clone(), issued: found };
        }
        cut
    });
    let cut = ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"));
    runtime.drop_tasks();
    cut
}

/// Cuts each history at each of its operations.
fn cut_everywhere<P, V, C>(mode: Mode, durability: Durability, seeds: u64)
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>> + Default,
{
    let of = |seed| (0..).take_while(move |at| cut_history::<P, V, C>(mode, durability, seed, *at));
    let cuts: usize = (0..seeds).map(|seed| of(seed).count()).sum();
    assert!(cuts as u64 > 10 * seeds, "{cuts} cuts: little happens in these histories");
}

fn seeds() -> u64 {
    if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 200 } else { 4 }
}

type Bytes = ByteCodec<Block<Rc<[u8]>>>;
type Stamps = Remembered<Block<ValueStamp>>;

#[test]
fn a_cut_anywhere_leaves_the_last_commit_or_the_next_in_bytes() {
    for mode in Mode::ALL {
        for durability in DURABILITIES {
            cut_everywhere::<PageBuf, _, Bytes>(mode, durability, seeds());
        }
    }
}

#[test]
fn a_cut_anywhere_leaves_the_last_commit_or_the_next_in_stamps() {
    for mode in Mode::ALL {
        for durability in DURABILITIES {
            cut_everywhere::<Stamp, _, Stamps>(mode, durability, seeds());
        }
    }
}

/// Every flush is needed, and so is the flush that a share includes.
#[test]
fn each_protection_left_out_is_noticed() {
    let search = |mode, durability: Durability| {
        move || {
            cut_everywhere::<Stamp, _, Stamps>(mode, durability, 12);
            None
        }
    };
    let original = search(Mode::Original, Durability::Volatile);
    for fault in [
        Fault::NoFlushBeforeHeader,
        Fault::NoFlushAfterHeader,
        Fault::NoFlushBeforeSwitch,
        Fault::NoFlushBeforeDeletion,
    ] {
        assert_noticed(fault, original);
    }
    assert_noticed(Fault::NoFlushAfterHeader, search(Mode::Original, Durability::OnFlush));
    let share = search(Mode::Share, Durability::OnAck);
    for fault in [Fault::SharesCutShort, Fault::SharesSeenBeforeTheHeader] {
        assert_noticed(fault, share);
    }
}

/// A compaction beside commits has all their changes.
#[test]
fn a_compaction_that_does_not_catch_up_is_noticed() {
    for mode in Mode::ALL {
        assert_noticed(Fault::NoCatchUp, || {
            cut_everywhere::<Stamp, _, Stamps>(mode, Durability::OnAck, 12);
            None
        });
    }
}

/// A few histories show the fault.
#[test]
fn a_directory_that_is_not_durable_in_time_is_noticed() {
    assert_noticed(Fault::NoFlushBetweenDirectories, || {
        cut_everywhere::<Stamp, _, Stamps>(Mode::Original, Durability::Volatile, 40);
        None
    });
}
