//! Transactions larger than the page cache, and the case that the extended cache is full as well.
use crate::tx_cache::support::{PAGES, options, read, run, stamp, write};
use tantalum_base::{ErrorKind, PageDevice, PageNo};
use tantalum_models::TxCacheOptions;
use tantalum_runtime::LifeCycle;
use tantalum_runtime::virtual_time::Schedule;

#[test]
fn a_transaction_larger_than_the_cache_commits_and_comes_home() {
    for seed in 0..4 {
        let options = TxCacheOptions { extended_pages: 60, ..options(16) };
        run(Schedule::Shuffled(seed), options, |_, device| async move {
            let tx = device.begin().await.unwrap();
            for page in 0..60 {
                write(&device, page, 1, Some(tx)).await;
            }
            // Again, wherever the pages are by now.
            for page in (0..60).step_by(3) {
                write(&device, page, 2, Some(tx)).await;
            }
            let expected = |page: u64| if page.is_multiple_of(3) { 2 } else { 1 };
            for page in 0..60 {
                assert_eq!(read(&device, page, None).await, 0, "page {page} went home");
                assert_eq!(read(&device, page, Some(tx)).await, expected(page));
            }
            assert!(device.statistics().pages_spilled >= 48);
            device.commit(tx).await.unwrap();
            for page in 0..60 {
                assert_eq!(read(&device, page, None).await, expected(page));
            }
            device.close().await.unwrap();
            assert!(device.statistics().pages_copied_home > 0);
            for page in 0..60 {
                assert_eq!(read(&device, page, None).await, expected(page));
            }
        });
    }
}

#[test]
fn a_full_extended_cache_refuses_the_write_and_the_transaction_can_be_aborted() {
    let options = TxCacheOptions { extended_pages: 20, ..options(16) };
    run(Schedule::Fifo, options, |_, device| async move {
        write(&device, 100, 1, None).await;
        let (a, b) = (device.begin().await.unwrap(), device.begin().await.unwrap());
        for page in 0..16 {
            write(&device, page, 1, Some(a)).await;
        }
        let mut written = 0;
        let refused = loop {
            let page = 20 + written;
            let pages = [stamp(page, 1), stamp(page + 1, 1)];
            match device.write(PageNo(page), &pages, Some(b)).await {
                Ok(()) => written += 2,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), ErrorKind::OutOfSpace);
        assert_eq!(written, 12 + 20 - 16, "all places but those for plain writes");
        let next = 20 + written;
        assert_eq!(read(&device, next, Some(b)).await, 0, "nothing half done");
        // Plain writes still work.
        for page in 100..140 {
            write(&device, page, 2, None).await;
        }
        device.abort(b).await.unwrap();
        for page in 16..28 {
            write(&device, page, 1, Some(a)).await;
        }
        device.commit(a).await.unwrap();
        for page in 0..28 {
            assert_eq!(read(&device, page, None).await, 1);
        }
        for page in 28..PAGES {
            assert_eq!(
                read(&device, page, None).await,
                if (100..140).contains(&page) { 2 } else { 0 }
            );
        }
        device.close().await.unwrap();
    });
}

#[test]
fn a_transaction_over_both_limits_is_too_large() {
    let options = TxCacheOptions { extended_pages: 20, ..options(16) };
    run(Schedule::Fifo, options, |_, device| async move {
        let most = u64::from(device.limits().transaction_pages_max);
        assert_eq!(most, 12 + 20);
        let tx = device.begin().await.unwrap();
        for page in 0..most {
            write(&device, page, 1, Some(tx)).await;
        }
        let error = device.write(PageNo(most), &[stamp(most, 1)], Some(tx)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        device.commit(tx).await.unwrap();
        for page in 0..most {
            assert_eq!(read(&device, page, None).await, 1);
        }
    });
}

#[test]
fn a_full_transaction_can_write_its_own_pages_again() {
    for seed in 0..8 {
        let options = TxCacheOptions { extended_pages: 20, ..options(16) };
        run(Schedule::Shuffled(seed), options, |_, device| async move {
            let most = u64::from(device.limits().transaction_pages_max);
            let (a, b) = (device.begin().await.unwrap(), device.begin().await.unwrap());
            for page in 0..most - 2 {
                write(&device, page, 1, Some(a)).await;
            }
            write(&device, 100, 1, Some(b)).await;
            write(&device, 101, 1, Some(b)).await;
            assert_eq!(device.statistics().pages_spilled, 20, "no place is free");
            // One by one, and as many as a write may have, wherever the pages are by now.
            for page in (0..most - 2).rev() {
                write(&device, page, 2, Some(a)).await;
            }
            for first in (0..most - 3).step_by(3) {
                let pages: Vec<_> = (first..first + 3).map(|page| stamp(page, 3)).collect();
                device.write(PageNo(first), &pages, Some(a)).await.unwrap();
                device.validate_cache();
                // There is always room for these.
                write(&device, 110 + first, 3, None).await;
            }
            write(&device, 100, 2, Some(b)).await;
            // One of its own pages, and one for which there is no place.
            let pages = [stamp(101, 9), stamp(102, 9)];
            let error = device.write(PageNo(101), &pages, Some(b)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfSpace);
            assert_eq!(
                [read(&device, 101, Some(b)).await, read(&device, 102, Some(b)).await],
                [1, 0]
            );
            for page in 0..most - 2 {
                assert_eq!(read(&device, page, Some(a)).await, 3, "page {page}");
                assert_eq!(read(&device, page, None).await, 0);
            }
            device.commit(a).await.unwrap();
            write(&device, 102, 9, Some(b)).await;
            device.commit(b).await.unwrap();
            for page in 0..most - 2 {
                assert_eq!(read(&device, page, None).await, 3, "page {page}");
            }
            assert_eq!([read(&device, 100, None).await, read(&device, 102, None).await], [2, 9]);
            device.close().await.unwrap();
            device.validate_cache();
        });
    }
}

#[test]
fn pages_written_again_leave_room_for_plain_writes() {
    // A write has more pages than a batch of the spiller.
    let options = TxCacheOptions { extended_pages: 20, write_pages_max: 11, ..options(24) };
    run(Schedule::Fifo, options, |_, device| async move {
        let most = u64::from(device.limits().transaction_pages_max);
        let tx = device.begin().await.unwrap();
        for page in 0..most {
            write(&device, page, 1, Some(tx)).await;
        }
        for count in 2..6 {
            for first in [0, 11, 22] {
                let of = |first, count| -> Vec<_> {
                    (first..first + 11).map(|page| stamp(page, count)).collect()
                };
                device.write(PageNo(first), &of(first, count), Some(tx)).await.unwrap();
                device.write(PageNo(100), &of(100, count), None).await.unwrap();
                device.validate_cache();
            }
        }
        device.commit(tx).await.unwrap();
        for page in 0..33 {
            assert_eq!(read(&device, page, None).await, 5, "page {page}");
        }
        device.close().await.unwrap();
    });
}
