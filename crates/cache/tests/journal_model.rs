//! A journal compared with a sorted map: pages appended in any order, and in pieces of any size,
//! are read back from memory, from the store, and after reopening the journal.
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{Error, PageNo, PageRange, Stamp, Version};
use tantalum_cache::Journal;
use tantalum_cache::journal::{Closed, Pair, Run};
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const PAIR: Pair = Pair { volume_id: 77, pages: 1 << 30 };

/// An epoch: content numbers, and ranges of zeros that cover none of the pages.
#[derive(Clone, Debug)]
struct Epoch {
    contents: Vec<(u64, u64)>,
    zeros: Vec<PageRange>,
    /// Lengths of the pieces that are appended.
    pieces: Vec<usize>,
}

fn epochs() -> impl Strategy<Value = Epoch> {
    let area = prop_oneof![Just(0u64), Just(5000), Just(1 << 29)];
    let runs = prop::collection::vec((area, 0u64..900, 1u64..200), 0..6);
    let zeros = prop::collection::vec((0u64..1 << 30, 1u64..1 << 20), 0..4);
    let pieces = prop::collection::vec(1usize..400, 1..5);
    (runs, zeros, pieces, any::<u64>(), any::<bool>()).prop_map(|parts| {
        let (runs, zeros, pieces, seed, sorted) = parts;
        let mut contents = BTreeMap::new();
        for (area, first, length) in runs {
            contents.extend((area + first..area + first + length).map(|page| (page, seed ^ page)));
        }
        let mut contents: Vec<_> = contents.into_iter().collect();
        let mut free: Vec<PageRange> = Vec::new();
        for (first, length) in zeros {
            let length = length.min((1 << 30) - first);
            let range = PageRange::new(PageNo(first), length);
            let is_free = contents.iter().all(|(page, _)| !range.contains(PageNo(*page)))
                // Neighbours would be read as one range.
                && free.iter().all(|other| range.end() < other.first || other.end() < range.first);
            if is_free {
                free.push(range);
            }
        }
        if !sorted {
            tantalum_base::Rng::new(seed).shuffle(&mut contents);
        }
        Epoch { contents, zeros: free, pieces }
    })
}

type Read = (Vec<(u64, Stamp)>, Vec<PageRange>);

async fn read(
    journal: &Journal<MemoryStore, Stamp>,
    from: u64,
    pages_max: usize,
) -> Result<Read, Error> {
    let (mut contents, mut zeros, mut from) = (Vec::new(), Vec::new(), PageNo(from));
    while let Some(run) = journal.next_run(from, pages_max).await? {
        assert!(run.range().first >= from);
        from = run.range().end();
        match run {
            Run::Contents { first, pages } => {
                assert!((1..=pages_max).contains(&pages.len()));
                contents.extend((first.0..).zip(pages));
            }
            Run::Zeros(range) => zeros.push(range),
        }
    }
    Ok((contents, zeros))
}

/// The expected result of reading an epoch from this page on.
fn expected(epoch: &Epoch, from: u64) -> Read {
    let mut contents: Vec<_> = epoch.contents.clone();
    contents.sort_unstable();
    contents.retain(|(page, _)| *page >= from);
    let mut zeros = epoch.zeros.clone();
    zeros.retain(|range| range.end().0 > from);
    zeros.sort_unstable_by_key(|range| range.first);
    for range in &mut zeros {
        let first = range.first.0.max(from);
        *range = PageRange::new(PageNo(first), range.end().0 - first);
    }
    let contents = contents.into_iter().map(|(page, of)| (page, Stamp::new(PageNo(page), of)));
    (contents.collect(), zeros)
}

async fn write(
    runtime: &Virtual,
    journal: &Rc<Journal<MemoryStore, Stamp>>,
    number: u64,
    epoch: &Epoch,
) -> Result<(), Error> {
    journal.begin(number);
    let (mut rest, mut pieces) = (&epoch.contents[..], epoch.pieces.iter().cycle());
    let mut appends = Vec::new();
    while !rest.is_empty() {
        let length = pieces.next().map_or(1, |length| *length).min(rest.len());
        let (piece, behind) = rest.split_at(length);
        rest = behind;
        let pages = piece.iter().map(|(page, of)| (PageNo(*page), Stamp::new(PageNo(*page), *of)));
        let (pages, journal): (Vec<_>, _) = (pages.collect(), Rc::clone(journal));
        appends.push(runtime.spawn("append", async move { journal.append(pages).await }));
    }
    for range in &epoch.zeros {
        journal.append_zeros(*range).await?;
    }
    for append in appends {
        append.await?;
    }
    journal.commit(closed(number)).await
}

fn closed(number: u64) -> Closed {
    Closed { epoch: number, unix_ms: number, version: Version(number) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn what_was_appended_is_what_is_read(
        epochs in prop::collection::vec(epochs(), 1..4),
        memory_pages_max in prop_oneof![Just(0u32), 1u32..700, Just(1 << 20)],
        pages_max in 1usize..300,
        from in prop_oneof![Just(0u64), 0u64..6000],
        seed in any::<u64>(),
    ) {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let handle = runtime.clone();
        let main = async move {
            let store = MemoryStore::new(16 << 20);
            let journal = Journal::format(store.clone(), PAIR, memory_pages_max).await?;
            let mut journal = Rc::new(journal);
            for (number, epoch) in (1..).zip(&epochs) {
                write(&handle, &journal, number, epoch).await?;
                assert_eq!(read(&journal, 0, pages_max).await?, expected(epoch, 0));
                assert_eq!(read(&journal, from, pages_max).await?, expected(epoch, from));
                let (again, found) =
                    Journal::open(store.clone(), PAIR, memory_pages_max).await?;
                assert_eq!(found, Some(closed(number)));
                assert_eq!(read(&again, 0, pages_max).await?, expected(epoch, 0));
                if number % 2 == 1 {
                    journal = Rc::new(again);
                }
            }
            Ok::<_, Error>(())
        };
        runtime.run(main).unwrap().unwrap();
    }
}
