//! A journal: its errors, its reads and writes, and the state after a failed epoch.
use crate::support::contents::content;
use std::rc::Rc;
use tantalum_base::{
    Error, ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Result, Rng, Version,
};
use tantalum_cache::journal::{Applied, Closed, Pair, Run, apply};
use tantalum_cache::{Image, Journal};
use tantalum_media::block_store::{
    Counting, CrashOptions, CrashStore, CutStyle, FileStore, FileStoreOptions, IoFaultKind,
    MemoryStore, StoreCounters,
};
use tantalum_media::{BlockStore, CutPlan, Fate};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Live, Runtime, Virtual};

const PAIR: Pair = Pair { volume_id: 5, pages: 10_000 };
const MIB: u64 = 1 << 20;

fn run<T: 'static>(main: impl Future<Output = Result<T>> + 'static) -> T {
    Virtual::new(Schedule::Fifo).run(main).unwrap().unwrap()
}

fn pages(numbers: impl IntoIterator<Item = u64>) -> Vec<(PageNo, PageBuf)> {
    numbers.into_iter().map(|page| (PageNo(page), content(page + 1))).collect()
}

fn closed(epoch: u64) -> Closed {
    Closed { epoch, unix_ms: 7 * epoch, version: Version(3 * epoch) }
}

/// Writes one epoch of these pages.
async fn fill<S: BlockStore>(
    journal: &Journal<S, PageBuf>,
    epoch: u64,
    numbers: impl IntoIterator<Item = u64>,
) -> Result<()> {
    journal.begin(epoch);
    journal.append(pages(numbers)).await?;
    journal.commit(closed(epoch)).await
}

/// The numbers of the pages read back, each of which must have the content from [`pages`].
async fn page_numbers<S: BlockStore>(journal: &Journal<S, PageBuf>) -> Result<Vec<u64>> {
    let (mut numbers, mut from) = (Vec::new(), PageNo(0));
    while let Some(Run::Contents { first, pages }) = journal.next_run(from, 100).await? {
        for (number, found) in (first.0..).zip(&pages) {
            assert_eq!(*found, content(number + 1), "page {number}");
            numbers.push(number);
        }
        from = PageNo(first.0 + pages.len() as u64);
    }
    Ok(numbers)
}

#[test]
fn what_does_not_fit_is_refused_and_the_rest_can_be_committed() {
    // 300 pages: 298 contents and two index pages.
    let store = MemoryStore::new(MIB + 300 * PAGE_BYTES as u64);
    run(async move {
        let journal = Journal::format(store, PAIR, 0).await?;
        assert_eq!(journal.pages_max(), 298);
        journal.begin(1);
        journal.append(pages(0..290)).await?;
        let refused = journal.append(pages(290..299)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::OutOfSpace);
        journal.append(pages(290..298)).await?;
        assert_eq!(journal.append(pages([298])).await.unwrap_err().kind(), ErrorKind::OutOfSpace);
        journal.commit(closed(1)).await?;
        assert_eq!(page_numbers(&journal).await?, (0..298).collect::<Vec<_>>());

        // Ranges of zeros need only index entries.
        journal.begin(2);
        journal.append(pages(0..298)).await?;
        let range = |at: u64| PageRange::new(PageNo(1000 + 2 * at), 1);
        for at in 0..504 - 298 {
            journal.append_zeros(range(at)).await?;
        }
        let refused = journal.append_zeros(range(504)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::OutOfSpace);
        journal.commit(closed(2)).await
    });
}

#[test]
fn the_smallest_journal_has_one_page() {
    for (blocks, fits) in [(0, false), (1, false), (2, true)] {
        let store = MemoryStore::new(MIB + blocks * PAGE_BYTES as u64);
        run(async move {
            match Journal::<_, PageBuf>::format(store, PAIR, 0).await {
                Ok(journal) => assert_eq!((journal.pages_max(), fits), (1, true)),
                Err(error) => assert_eq!((error.kind(), fits), (ErrorKind::InvalidInput, false)),
            }
            Ok(())
        });
    }
}

#[test]
fn pages_outside_the_home_and_pages_that_change_twice_are_refused() {
    let store = MemoryStore::new(4 * MIB);
    run(async move {
        let journal = Journal::format(store, PAIR, 0).await?;
        journal.begin(1);
        let outside = journal.append(pages([3, 10_000])).await.unwrap_err();
        assert_eq!(outside.kind(), ErrorKind::OutOfRange);
        let outside = journal.append_zeros(PageRange::new(PageNo(9_999), 2)).await.unwrap_err();
        assert_eq!(outside.kind(), ErrorKind::OutOfRange);
        journal.append(pages([5, 9_999])).await?;
        journal.append_zeros(PageRange::new(PageNo(4), 2)).await?;
        let twice = journal.commit(closed(1)).await.unwrap_err();
        assert_eq!(twice.kind(), ErrorKind::InvalidInput);
        assert!(twice.to_string().contains("page 5"), "{twice}");
        fill(&journal, 1, [7]).await?;
        assert_eq!(page_numbers(&journal).await?, [7]);
        Ok(())
    });
}

async fn kind_of_opening(store: MemoryStore, pair: Pair) -> Option<(ErrorKind, String)> {
    let opened = Journal::<_, PageBuf>::open(store, pair, 0).await;
    opened.err().map(|error| (error.kind(), error.to_string()))
}

#[test]
fn another_journal_is_refused_and_what_is_damaged_is_an_error() {
    let store = MemoryStore::new(4 * MIB);
    run(async move {
        let empty = kind_of_opening(store.clone(), PAIR).await;
        assert!(matches!(empty, Some((ErrorKind::Format, _))), "{empty:?}");
        let tiny = kind_of_opening(MemoryStore::new(4096), PAIR).await;
        assert!(matches!(tiny, Some((ErrorKind::Format, _))), "{tiny:?}");
        let journal = Journal::format(store.clone(), PAIR, 0).await?;
        assert_eq!(kind_of_opening(store.clone(), PAIR).await, None);
        fill(&journal, 3, 0..300).await?;

        for other in [Pair { volume_id: 6, ..PAIR }, Pair { pages: 9_999, ..PAIR }] {
            let refused = kind_of_opening(store.clone(), other).await;
            let Some((ErrorKind::Format, told)) = refused else { panic!("{refused:?}") };
            assert!(told.contains(&format!("{other}")) && told.contains(&format!("{PAIR}")));
        }
        let cut_off = MemoryStore::with_image(&store.image()[..2 * MIB as usize]);
        let cut_off = kind_of_opening(cut_off, PAIR).await;
        assert!(matches!(cut_off, Some((ErrorKind::Corrupt, _))), "{cut_off:?}");
        for head in [0, 512 << 10] {
            store.flip_bit(head + 50, 0);
        }
        let damaged = kind_of_opening(store.clone(), PAIR).await;
        assert!(matches!(damaged, Some((ErrorKind::Checksum, _))), "{damaged:?}");
        for head in [0, 512 << 10] {
            store.wipe_block(head);
        }
        let wiped = kind_of_opening(store, PAIR).await;
        assert!(matches!(wiped, Some((ErrorKind::Format, _))), "{wiped:?}");
        Ok(())
    });
}

#[test]
fn a_journal_made_over_another_one_has_nothing_of_it() {
    let store = MemoryStore::new(4 * MIB);
    run(async move {
        let journal = Journal::format(store.clone(), PAIR, 0).await?;
        for epoch in 1..=4 {
            fill(&journal, epoch, 0..300).await?;
        }
        let other = Pair { volume_id: 6, ..PAIR };
        let journal = Journal::<_, PageBuf>::format(store.clone(), other, 0).await?;
        assert!(journal.next_run(PageNo(0), 1).await?.is_none());
        let (journal, none) = Journal::open(store.clone(), other, 0).await?;
        assert_eq!((none, journal.last_committed()), (None, None));
        fill(&journal, 1, [9]).await?;
        let (journal, found) = Journal::open(store, other, 0).await?;
        assert_eq!((found, page_numbers(&journal).await?), (Some(closed(1)), vec![9]));
        Ok(())
    });
}

#[test]
fn contents_are_written_and_read_in_large_pieces() {
    let counters = StoreCounters::default();
    let store = Counting::new(MemoryStore::new(8 * MIB), counters.clone());
    run(async move {
        let journal = Journal::format(store.clone(), PAIR, 0).await?;
        let formatted = counters.snapshot();
        journal.begin(1);
        // No two neighbours, in the order of page numbers.
        for page in 0..1000 {
            journal.append(pages([page * 3])).await?;
        }
        journal.commit(closed(1)).await?;
        let written = counters.snapshot().since(&formatted);
        // 1000 contents in four writes, an index of four pages in one, two copies of the head.
        assert_eq!((written.writes, written.durable_writes, written.syncs), (4 + 1 + 2, 2, 1));
        assert_eq!(written.bytes_written, (1000 + 4 + 2) * PAGE_BYTES as u64);

        let before = counters.snapshot();
        let (journal, _) = Journal::open(store, PAIR, 0).await?;
        assert_eq!(page_numbers(&journal).await?, (0..3000).step_by(3).collect::<Vec<_>>());
        let read = counters.snapshot().since(&before);
        // Two copies of the head, the index, and the contents.
        assert_eq!((read.reads, read.writes), (2 + 1 + 4, 0));

        // The committed epoch must first be given up: two more durable writes.
        let before = counters.snapshot();
        fill(&journal, 2, [1]).await?;
        assert_eq!(counters.snapshot().since(&before).durable_writes, 4);
        Ok(())
    });
}

#[test]
fn what_memory_keeps_is_not_read_back() {
    let counters = StoreCounters::default();
    let store = Counting::new(MemoryStore::new(8 * MIB), counters.clone());
    run(async move {
        let journal = Journal::format(store, PAIR, 600).await?;
        fill(&journal, 1, 0..1000).await?;
        let before = counters.snapshot();
        assert_eq!(page_numbers(&journal).await?.len(), 1000);
        let read = counters.snapshot().since(&before);
        assert_eq!((read.reads, read.bytes_read), (2, 400 * PAGE_BYTES as u64));
        Ok(())
    });
}

#[test]
fn what_is_forgotten_stays_on_the_store_until_something_is_appended() {
    let store = MemoryStore::new(4 * MIB);
    run(async move {
        let journal = Journal::format(store.clone(), PAIR, 100).await?;
        fill(&journal, 1, 0..300).await?;
        journal.forget();
        assert!(journal.next_run(PageNo(0), 9).await?.is_none());
        journal.begin(2);
        let (again, found) = Journal::<_, PageBuf>::open(store.clone(), PAIR, 0).await?;
        assert_eq!((found, page_numbers(&again).await?.len()), (Some(closed(1)), 300));
        // This fills a write.
        journal.append(pages(0..256)).await?;
        let (again, found) = Journal::<_, PageBuf>::open(store, PAIR, 0).await?;
        assert_eq!((found, again.last_committed()), (None, Some(closed(1))));
        Ok(())
    });
}

#[test]
fn a_damaged_content_is_an_error_with_its_page() {
    let store = MemoryStore::new(4 * MIB);
    run(async move {
        let journal = Journal::format(store.clone(), PAIR, 0).await?;
        fill(&journal, 1, 100..400).await?;
        store.flip_bit(MIB + 77 * PAGE_BYTES as u64, 3);
        let (journal, _) = Journal::<_, PageBuf>::open(store, PAIR, 0).await?;
        assert!(journal.next_run(PageNo(178), 100).await?.is_some());
        let error = journal.next_run(PageNo(177), 1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Checksum);
        assert!(error.to_string().contains("page 177 of epoch 1"), "{error}");
        let home = Image::new(MemoryStore::new(10_000 * PAGE_BYTES as u64), 10_000)?;
        let error = apply(&journal, &home, 3).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Checksum);
        Ok(())
    });
}

#[test]
fn a_check_names_damaged_contents_and_the_damaged_copy_of_the_head() {
    let store = MemoryStore::new(4 * MIB);
    run(async move {
        let journal = Journal::format(store.clone(), PAIR, 0).await?;
        fill(&journal, 1, 100..400).await?;
        let check =
            async || Journal::<_, PageBuf>::open(store.clone(), PAIR, 0).await?.0.check().await;
        assert_eq!(check().await?, []);
        for content in [77, 200] {
            store.flip_bit(MIB + content * PAGE_BYTES as u64, 3);
        }
        store.flip_bit((512 << 10) + 2000, 5);
        let found = check().await?;
        let told: Vec<_> = found.iter().map(|it| (it.place.as_str(), it.in_force)).collect();
        let head = ("journal's head, second copy", false);
        assert_eq!(told, [("journal, page 177", true), ("journal, page 300", true), head]);
        Ok(())
    });
}

#[test]
fn an_epoch_goes_home_in_order_and_in_long_writes() {
    let counters = StoreCounters::default();
    let store = Counting::new(MemoryStore::new(10_000 * PAGE_BYTES as u64), counters.clone());
    run(async move {
        let journal = Journal::format(MemoryStore::new(8 * MIB), PAIR, 100).await?;
        let home = Image::new(store, 10_000)?;
        home.write(PageNo(5000), &vec![content(1); 50], None).await?;
        journal.begin(1);
        journal.append(pages((0..700).rev())).await?;
        journal.append(pages([2000, 9999])).await?;
        journal.append_zeros(PageRange::new(PageNo(5010), 20)).await?;
        journal.append_zeros(PageRange::new(PageNo(700), 1)).await?;
        journal.commit(closed(1)).await?;
        let applied = Applied { pages: 702, writes: 5, zeroed_pages: 21 };
        for _ in 0..2 {
            let before = counters.snapshot();
            assert_eq!(apply(&journal, &home, 8).await?, applied);
            let done = counters.snapshot().since(&before);
            assert_eq!((done.writes, done.zeroings, done.syncs), (5, 2, 1));
            assert_eq!((done.bytes_written, done.bytes_zeroed), (702 * 4096, 21 * 4096));
        }
        let mut out = vec![content(0); 10_000];
        home.read(PageNo(0), &mut out, None).await?;
        for (page, found) in (0..).zip(&out) {
            let expected = match page {
                0..700 | 2000 | 9999 => page + 1,
                5000..5010 | 5030..5050 => 1,
                _ => 0,
            };
            assert_eq!(*found, content(expected), "page {page}");
        }
        journal.forget();
        assert_eq!(apply(&journal, &home, 1).await?, Applied::default());
        Ok(())
    });
}

#[test]
fn a_home_that_fails_is_told_and_can_be_tried_again() {
    let runtime = Virtual::new(Schedule::Fifo);
    let memory = MemoryStore::new(10_000 * PAGE_BYTES as u64);
    let store = CrashStore::new(runtime.clone(), memory, CrashOptions::default());
    let main = async move {
        let journal = Journal::format(MemoryStore::new(8 * MIB), PAIR, 0).await?;
        let home = Image::new(store.clone(), 10_000)?;
        fill(&journal, 1, (0..1000).step_by(2)).await?;
        for operation in [0, 9, 499, 500] {
            store.fail_operation(operation, IoFaultKind::Io);
            assert_eq!(apply(&journal, &home, 4).await.unwrap_err().kind(), ErrorKind::Io);
        }
        let applied = Applied { pages: 500, writes: 500, zeroed_pages: 0 };
        assert_eq!(apply(&journal, &home, 4).await?, applied);
        Ok::<_, Error>(())
    };
    runtime.run(main).unwrap().unwrap();
}

#[test]
fn an_epoch_of_which_a_write_failed_is_not_committed_and_may_be_begun_anew() {
    // Formatting makes two writes. The first epoch makes seven operations: two of contents, one of
    // its index, a sync, two of the head. The second begins with two writes of the head.
    for failing in 0..8 {
        for kind in [IoFaultKind::Io, IoFaultKind::NoSpace] {
            let runtime = Virtual::new(Schedule::Fifo);
            let memory = MemoryStore::new(4 * MIB);
            let store = CrashStore::new(runtime.clone(), memory.clone(), CrashOptions::default());
            let main = async move {
                let journal = Journal::format(store.clone(), PAIR, 0).await?;
                fill(&journal, 1, 0..300).await?;
                store.fail_operation(failing, kind);
                let failed = fill(&journal, 2, 100..400).await.unwrap_err();
                let expected =
                    if kind == IoFaultKind::Io { ErrorKind::Io } else { ErrorKind::OutOfSpace };
                assert_eq!(failed.kind(), expected, "{failing}");
                assert!(journal.append(pages([1])).await.is_err(), "{failing}");
                assert!(journal.commit(closed(2)).await.is_err(), "{failing}");
                // The head may have been written before the failure.
                let (_, found) = Journal::<_, PageBuf>::open(store.clone(), PAIR, 0).await?;
                let may_be = [None, Some(closed(1)), Some(closed(2))];
                let may_be = &may_be[..if failing < 6 { 2 } else { 3 }];
                assert!(may_be.contains(&found), "{failing}: {found:?}");
                fill(&journal, 2, 200..500).await?;
                let (again, found) = Journal::<_, PageBuf>::open(store, PAIR, 0).await?;
                let numbers = page_numbers(&again).await?;
                assert_eq!((found, numbers), (Some(closed(2)), (200..500).collect()));
                Ok::<_, Error>(())
            };
            runtime.run(main).unwrap().unwrap();
        }
    }
}

/// Commits while four appends are in flight, and cuts power.
fn commit_beside_appends(seed: u64) {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let options = CrashOptions { seed, write_ns: (1000, 900_000), ..CrashOptions::default() };
    let memory = MemoryStore::new(8 * MIB);
    let store = CrashStore::new(runtime.clone(), memory.clone(), options);
    let handle = runtime.clone();
    let main = async move {
        let journal = Rc::new(Journal::format(store.clone(), PAIR, 0).await?);
        journal.begin(1);
        let append = |part: u64| {
            let journal = Rc::clone(&journal);
            let append = async move { journal.append(pages(part * 300..part * 300 + 300)).await };
            handle.spawn("append", append)
        };
        let appends: Vec<_> = (0..4).map(append).collect();
        handle.sleep(500).await;
        journal.commit(closed(1)).await?;
        store.cut(&mut Rng::new(seed), CutStyle::DropAll).await?;
        for append in appends {
            append.await?;
        }
        let (journal, found) = Journal::open(memory, PAIR, 0).await?;
        let numbers = page_numbers(&journal).await?;
        assert_eq!((found, numbers), (Some(closed(1)), (0..1200).collect()));
        Ok::<_, Error>(())
    };
    runtime.run(main).unwrap().unwrap();
}

#[test]
fn a_commit_waits_for_what_is_being_appended() {
    (0..30).for_each(commit_beside_appends);
}

/// Power is cut at the first write of a head when one of its copies had decayed.
fn cut_beside_a_damaged_copy(damaged: u64, seed: u64) {
    let runtime = Virtual::new(Schedule::Fifo);
    let memory = MemoryStore::new(4 * MIB);
    let store = CrashStore::new(runtime.clone(), memory.clone(), CrashOptions::default());
    let main = async move {
        fill(&Journal::format(memory.clone(), PAIR, 0).await?, 1, 0..300).await?;
        memory.flip_bit(damaged + 99, 2);
        let (journal, found) = Journal::open(store.clone(), PAIR, 0).await?;
        assert_eq!(found, Some(closed(1)));
        store.plan_cut(CutPlan { after_operations: 0, fate: Fate::Tear });
        let cut = fill(&journal, 2, 0..300).await.unwrap_err();
        assert_eq!(cut.kind(), ErrorKind::PowerCut);
        store.cut(&mut Rng::new(seed), CutStyle::TearAll).await?;
        let (journal, found) = Journal::<_, PageBuf>::open(memory, PAIR, 0).await?;
        assert!([None, Some(closed(1))].contains(&found));
        assert_eq!(journal.last_committed(), Some(closed(1)));
        Ok::<_, Error>(())
    };
    runtime.run(main).unwrap().unwrap();
}

#[test]
fn where_one_copy_of_the_head_is_damaged_it_is_written_before_the_other_one() {
    for seed in 0..10 {
        cut_beside_a_damaged_copy(0, seed);
        cut_beside_a_damaged_copy(512 << 10, seed);
    }
}

#[test]
fn an_append_that_was_given_up_keeps_its_epoch_from_being_committed() {
    let runtime = Virtual::new(Schedule::Fifo);
    let options = CrashOptions { write_ns: (1000, 1000), ..CrashOptions::default() };
    let store = CrashStore::new(runtime.clone(), MemoryStore::new(4 * MIB), options);
    let main = async move {
        let journal = Rc::new(Journal::format(store, PAIR, 0).await?);
        journal.begin(1);
        {
            let mut append = std::pin::pin!(journal.append(pages(0..300)));
            std::future::poll_fn(|context| {
                assert!(append.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
        }
        let error = journal.commit(closed(1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        Ok::<_, Error>(())
    };
    runtime.run(main).unwrap().unwrap();
}

#[test]
#[should_panic(expected = "epoch 3 does not come after epoch 3")]
fn a_committed_epoch_is_not_begun_again() {
    run(async {
        let journal = Journal::format(MemoryStore::new(4 * MIB), PAIR, 0).await?;
        fill(&journal, 3, [1]).await?;
        journal.begin(3);
        Ok(())
    });
}

#[test]
fn files_keep_an_epoch_and_a_home() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::new(LiveOptions::default()).unwrap();
    let file = |name: &str, bytes: u64| {
        let options = FileStoreOptions::default();
        FileStore::create(&live, &dir.path().join(name), bytes, options).unwrap()
    };
    let (beside, home) = (file("journal", 4 * MIB), file("home", 10_000 * PAGE_BYTES as u64));
    live.run(async move {
        let journal = Journal::format(beside.clone(), PAIR, 0).await.unwrap();
        let image = Image::new(home, 10_000).unwrap();
        image.write(PageNo(20), &vec![content(99); 9], None).await.unwrap();
        journal.begin(1);
        journal.append(pages((0..300).rev().map(|half| 2 * half))).await.unwrap();
        journal.append_zeros(PageRange::new(PageNo(25), 1)).await.unwrap();
        journal.commit(closed(1)).await.unwrap();
        let (journal, found) = Journal::<_, PageBuf>::open(beside, PAIR, 0).await.unwrap();
        assert_eq!(found, Some(closed(1)));
        apply(&journal, &image, 8).await.unwrap();
        let mut out = vec![content(0); 30];
        image.read(PageNo(0), &mut out, None).await.unwrap();
        for (page, found) in (0..).zip(&out) {
            let expected = match page {
                25 => 0,
                page if page % 2 == 0 => page + 1,
                21.. if page < 29 => 99,
                _ => 0,
            };
            assert_eq!(*found, content(expected), "page {page}");
        }
    });
}
