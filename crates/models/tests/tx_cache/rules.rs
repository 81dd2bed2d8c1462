//! Ids, limits, conflicts, isolation, and the state after each error.
use crate::tx_cache::support::{PAGES, options, read, run, stamp, write};
use tantalum_base::{ErrorKind, PageDevice, PageNo, PageRange, Stamp, TxId};
use tantalum_models::TxCacheOptions;
use tantalum_models::tx_cache::{HeaderRelease, TxState};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime};

#[test]
fn a_transaction_is_seen_by_itself_until_it_commits() {
    run(Schedule::Fifo, options(16), |_, device| async move {
        write(&device, 1, 1, None).await;
        let (a, b) = (device.begin().await.unwrap(), device.begin().await.unwrap());
        write(&device, 1, 2, Some(a)).await;
        write(&device, 2, 3, Some(b)).await;
        write(&device, 1, 4, Some(a)).await;
        for (tx, expected) in [(None, [1, 0]), (Some(a), [4, 0]), (Some(b), [1, 3])] {
            assert_eq!([read(&device, 1, tx).await, read(&device, 2, tx).await], expected);
        }
        device.commit(a).await.unwrap();
        device.abort(b).await.unwrap();
        assert_eq!([read(&device, 1, None).await, read(&device, 2, None).await], [4, 0]);
        let statistics = device.statistics();
        assert_eq!((statistics.commits, statistics.aborts, statistics.pages_coalesced), (1, 1, 1));
    });
}

#[test]
fn ids_may_be_proposed_and_are_taken_until_written_back() {
    run(Schedule::Fifo, options(16), |runtime, device| async move {
        let seven = device.begin_as(Some(TxId(7))).await.unwrap();
        assert_eq!(seven, TxId(7));
        let other = device.begin_as(Some(TxId(7))).await.unwrap();
        assert_ne!(other, seven, "it is taken: another one is chosen");
        for page in 0..4 {
            write(&device, page, 1, Some(seven)).await;
        }
        device.commit(seven).await.unwrap();
        let header = |state: TxState| {
            let nvram = device.nvram();
            let headers = (0..nvram.tx_headers()).map(|number| nvram.tx_header(number));
            headers.filter(|header| header.id == TxId(7) && header.state() == state).count()
        };
        assert_eq!(header(TxState::Commit), 1, "its pages are in the cache");
        assert_ne!(device.begin_as(Some(TxId(7))).await.unwrap(), TxId(7));
        // Replaced pages need no write-back.
        for page in 0..4 {
            assert_eq!(header(TxState::Commit), 1);
            write(&device, page, 2, None).await;
        }
        assert_eq!(header(TxState::Commit), 0);
        assert_eq!(device.begin_as(Some(TxId(7))).await.unwrap(), TxId(7));
        assert_eq!(device.statistics().pages_written_home, 0);
        runtime.sleep(1).await;
    });
}

#[test]
fn begin_waits_for_write_back_where_committed_transactions_hold_all_headers() {
    run(Schedule::Fifo, options(64), |runtime, device| async move {
        let before_ns = runtime.now_ns();
        for number in 0..40 {
            let tx = device.begin().await.unwrap();
            write(&device, number, 1, Some(tx)).await;
            device.commit(tx).await.unwrap();
        }
        let statistics = device.statistics();
        assert!(statistics.begins_waited > 0, "{statistics:?}");
        assert!(statistics.pages_written_home >= 34, "{statistics:?}");
        assert!(runtime.now_ns() - before_ns > 200_000, "a begin took a program of flash");
    });
    let mapped = TxCacheOptions { header_release: HeaderRelease::Mapped, ..options(64) };
    run(Schedule::Fifo, mapped, |_, device| async move {
        for number in 0..40 {
            let tx = device.begin().await.unwrap();
            write(&device, number, 1, Some(tx)).await;
            device.commit(tx).await.unwrap();
        }
        let statistics = device.statistics();
        assert_eq!((statistics.begins_waited, statistics.pages_written_home), (0, 0));
    });
}

#[test]
fn open_transactions_are_limited() {
    run(Schedule::Fifo, options(16), |_, device| async move {
        let mut open = Vec::new();
        for _ in 0..device.limits().transactions_max {
            open.push(device.begin().await.unwrap());
        }
        let error = device.begin().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooManyTransactions);
        device.abort(open[0]).await.unwrap();
        device.begin().await.unwrap();
    });
}

#[test]
fn unknown_and_finished_ids_are_errors() {
    run(Schedule::Fifo, options(16), |_, device| async move {
        let unknown = |error: tantalum_base::Error| {
            assert_eq!(error.kind(), ErrorKind::UnknownTransaction);
            error.to_string()
        };
        let never = TxId(99);
        let tx = device.begin().await.unwrap();
        write(&device, 1, 1, Some(tx)).await;
        device.commit(tx).await.unwrap();
        for (tx, text) in [(never, "is not open"), (tx, "is committed")] {
            let mut out = [stamp(0, 0)];
            let results = [
                device.commit(tx).await,
                device.abort(tx).await,
                device.write(PageNo(0), &[stamp(0, 1)], Some(tx)).await,
                device.read(PageNo(0), &mut out, Some(tx)).await,
            ];
            for result in results {
                let told = unknown(result.unwrap_err());
                assert!(told.contains(text), "{told}");
            }
        }
        let aborted = device.begin().await.unwrap();
        device.abort(aborted).await.unwrap();
        assert!(unknown(device.abort(aborted).await.unwrap_err()).contains("not open"));
    });
}

#[test]
fn the_first_writer_holds_a_page() {
    run(Schedule::Fifo, options(16), |_, device| async move {
        let (a, b) = (device.begin().await.unwrap(), device.begin().await.unwrap());
        write(&device, 5, 1, Some(a)).await;
        let pages = [stamp(4, 2), stamp(5, 2)];
        let error = device.write(PageNo(4), &pages, Some(b)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert_eq!(read(&device, 4, Some(b)).await, 0, "nothing half done");
        let error = device.write(PageNo(4), &pages, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "outside of transactions, too");
        assert_eq!(read(&device, 5, None).await, 0);
        assert_eq!(read(&device, 5, Some(a)).await, 1);
        device.commit(a).await.unwrap();
        assert_eq!(read(&device, 5, None).await, 1);
        write(&device, 5, 4, Some(b)).await;
        device.commit(b).await.unwrap();
        assert_eq!(read(&device, 5, None).await, 4);
    });
}

#[test]
fn what_is_out_of_limits_is_refused() {
    run(Schedule::Fifo, options(16), |_, device| async move {
        let limits = device.limits().clone();
        let many = vec![Stamp::default(); limits.atomic_write_pages_max as usize + 1];
        let tx = device.begin().await.unwrap();
        for tx in [None, Some(tx)] {
            let error = device.write(PageNo(0), &many, tx).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge);
            let error = device.write(PageNo(PAGES), &many[..1], tx).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfRange, "the extended cache is not the host's");
        }
        let error = device.share(&[(PageNo(1), PageNo(2))]).await.unwrap_err();
        assert_eq!((error.kind(), limits.share_pairs_max), (ErrorKind::Unsupported, 0));
        assert_eq!(limits.pages, PAGES);
    });
}

#[test]
fn trim_reads_as_zeros_in_the_cache_and_at_home() {
    for seed in 0..8 {
        run(Schedule::Shuffled(seed), options(16), |_, device| async move {
            for page in 0..60 {
                write(&device, page, 1, None).await;
            }
            assert!(device.statistics().pages_written_home > 20, "most are at home");
            let tx = device.begin().await.unwrap();
            write(&device, 11, 5, Some(tx)).await;
            let range = PageRange::new(PageNo(10), 48);
            assert_eq!(device.trim(range).await.unwrap_err().kind(), ErrorKind::Conflict);
            assert_eq!(read(&device, 12, None).await, 1, "nothing half done");
            device.commit(tx).await.unwrap();
            device.trim(range).await.unwrap();
            for page in 0..60 {
                let expected = u64::from(!(10..58).contains(&page));
                assert_eq!(read(&device, page, None).await, expected, "page {page}");
            }
            device.trim(PageRange::new(PageNo(0), PAGES)).await.unwrap();
            for page in 0..60 {
                assert_eq!(read(&device, page, None).await, 0);
            }
        });
    }
}

#[test]
fn nv_cache_has_the_same_cache_and_no_transactions() {
    let nv_cache = TxCacheOptions {
        write_pages_max: 4,
        free_frames: 2,
        write_backs_in_flight: 2,
        ..TxCacheOptions::nv_cache(16)
    };
    run(Schedule::Fifo, nv_cache, |_, device| async move {
        assert_eq!(device.begin().await.unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(device.limits().transactions_max, 0);
        for round in 1..=3 {
            for page in 0..40 {
                write(&device, page, round, None).await;
                write(&device, 50, 100 * round + page, None).await;
            }
        }
        for page in 0..40 {
            assert_eq!(read(&device, page, None).await, 3);
        }
        let statistics = device.statistics();
        assert!(statistics.pages_coalesced > 100, "page 50 stays: {statistics:?}");
        assert!(statistics.pages_written_home > 80, "{statistics:?}");
        device.close().await.unwrap();
        assert_eq!(read(&device, 50, None).await, 339);
    });
}

/// Headers are held until everything is written back, but nothing is written back early to release them: there is one for every
/// second page.
#[test]
fn a_pool_of_headers_by_the_size_of_the_cache_does_not_run_out() {
    let of_the_cache = TxCacheOptions::new(1024);
    assert_eq!((of_the_cache.transactions_max, of_the_cache.headers), (128, 512));
    assert_eq!(of_the_cache.header_release, HeaderRelease::WrittenBack);
    for headers in [512, 128] {
        let options = TxCacheOptions { headers, extended_pages: 0, ..of_the_cache };
        run(Schedule::Fifo, options, move |_, device| async move {
            for number in 0..200 {
                let tx = device.begin().await.unwrap();
                write(&device, number % 150, number + 1, Some(tx)).await;
                device.commit(tx).await.unwrap();
            }
            let counts = device.statistics();
            assert_eq!(counts.pages_written_home > 0, headers == 128, "{headers}: {counts:?}");
        });
    }
}

/// The accesses of the paper's NVCache per page; it has no transactions to chain pages to.
#[test]
fn nv_cache_pays_for_frame_header_and_mapping_of_each_page() {
    let nv_cache = TxCacheOptions { write_pages_max: 4, ..TxCacheOptions::nv_cache(64) };
    run(Schedule::Fifo, nv_cache, |runtime, device| async move {
        for pages in 1..=4u64 {
            let before_ns = runtime.now_ns();
            let contents: Vec<Stamp> = (0..pages).map(|page| stamp(10 + page, 1)).collect();
            device.write(PageNo(10), &contents, None).await.unwrap();
            assert_eq!(runtime.now_ns() - before_ns, 3 * 150 * pages);
        }
    });
}

/// The table in `docs/devices/txcache.md`.
#[test]
fn nvram_costs_time_once_a_command() {
    run(Schedule::Fifo, options(64), |runtime, device| async move {
        let at = || (runtime.now_ns(), device.statistics().nvram_stores);
        let check = |(ns, stores): (u64, u64), accesses: u64| {
            let now = at();
            assert_eq!((now.0 - ns, now.1 - stores), (150 * accesses, accesses));
        };
        let mut before = at();
        write(&device, 0, 1, None).await;
        check(before, 3);
        for pages in 2..=4u64 {
            before = at();
            let contents: Vec<Stamp> = (0..pages).map(|page| stamp(10 + page, 1)).collect();
            device.write(PageNo(10), &contents, None).await.unwrap();
            check(before, 4 * pages + 4);
        }
        write(&device, 4, 1, None).await;
        before = at();
        let tx = device.begin().await.unwrap();
        check(before, 1);
        for page in 0..5 {
            before = at();
            write(&device, page, 2, Some(tx)).await;
            check(before, 3);
        }
        before = at();
        write(&device, 3, 3, Some(tx)).await;
        check(before, 1);
        before = at();
        device.commit(tx).await.unwrap();
        check(before, 5 + 2);
        let tx = device.begin().await.unwrap();
        before = at();
        device.abort(tx).await.unwrap();
        check(before, 1);
        before = at();
        read(&device, 1, None).await;
        assert_eq!(
            (runtime.now_ns(), device.statistics().nvram_stores),
            (before.0 + 150, before.1)
        );
    });
}
