//! Abandoned commands: their future is dropped after some polls.
use crate::tx_cache::support::{Device, Zones, device_on, options, read, run, stamp, write, zones};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use tantalum_base::{ErrorKind, PageDevice, PageNo, PageRange, Stamp, TxId};
use tantalum_ftl::Ftl;
use tantalum_media::{ErasedZones, Fate};
use tantalum_models::{TxCache, TxCacheOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};

/// Polls `future` up to `polls` times and drops it. Returns its result if it ended by then.
async fn give_up<T>(polls: u32, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut polled = 0;
    std::future::poll_fn(|context| {
        polled += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if polled >= polls => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Runs `load` on a new device, cuts the power, recovers, and runs `check`. Returns the result of
/// `load`.
fn with_a_cut<T: Copy + 'static>(
    options: TxCacheOptions,
    load: impl AsyncFnOnce(&Device) -> T + 'static,
    check: impl AsyncFnOnce(&Device, T) + 'static,
) -> T {
    let runtime = Virtual::new(Schedule::Fifo);
    let handle = runtime.clone();
    let load = async move {
        let device = device_on(&handle, zones(&handle), options).await;
        let said = load(&device).await;
        (said, device.nvram(), Rc::clone(device.ftl()))
    };
    let (said, nvram, ftl) = runtime.run(load).unwrap();
    runtime.drop_tasks();
    let cut = ftl.media().downcast_ref::<Zones>().expect("the device is on simulated flash");
    cut.nand().power_cut(runtime.now_ns(), |_| Fate::Vanish);
    let runtime = Virtual::new(Schedule::Fifo);
    let handle = runtime.clone();
    let (zones, ftl_options) = (ErasedZones::new(cut.reopen(runtime.clone())), *ftl.options());
    let recovered = async move {
        let (ftl, _) = Ftl::recover(zones, ftl_options).await.unwrap();
        let (device, _) = TxCache::recover(handle.clone(), ftl, options, nvram).await.unwrap();
        let device = Rc::new(device);
        device.validate_cache();
        device.start(&handle);
        check(&device, said).await;
        device.close().await.unwrap();
    };
    runtime.run(recovered).unwrap();
    runtime.drop_tasks();
    said
}

/// Drops a command after one poll, then after two, and so on until it ends by itself: `life`
/// returns whether it did.
fn at_every_poll(mut life: impl FnMut(u32) -> bool) {
    let ended = (1..200).find(|polls| life(*polls));
    assert!(ended.is_some_and(|polls| polls > 1), "it never waits: {ended:?}");
}

#[test]
fn a_trim_that_is_given_up_takes_nothing_that_was_written_later() {
    at_every_poll(|polls| {
        let load = async move |device: &Device| {
            for page in 0..40 {
                write(device, page, 1, None).await;
            }
            let range = PageRange::new(PageNo(0), 38);
            let trimmed = give_up(polls, device.trim(range)).await;
            let tx = device.begin().await.unwrap();
            write(device, 6, 2, Some(tx)).await;
            write(device, 5, 2, None).await;
            device.commit(tx).await.unwrap();
            device.flush().await.unwrap();
            device.validate_cache();
            trimmed.is_some()
        };
        let check = async |device: &Device, trimmed: bool| {
            let first = read(device, 0, None).await;
            assert!(first == 0 || !trimmed);
            for page in 0..40 {
                let expected = match page {
                    5 | 6 => 2,
                    38.. => 1,
                    _ => first,
                };
                assert_eq!(read(device, page, None).await, expected, "page {page}");
            }
        };
        with_a_cut(options(16), load, check)
    });
}

#[test]
fn a_trim_that_is_given_up_lets_the_next_one_through() {
    at_every_poll(|polls| {
        let load = async move |device: &Device| {
            for page in 0..40 {
                write(device, page, 1, None).await;
            }
            let trimmed = give_up(polls, device.trim(PageRange::new(PageNo(0), 20))).await;
            device.trim(PageRange::new(PageNo(10), 20)).await.unwrap();
            trimmed.is_some()
        };
        let check = async |device: &Device, trimmed: bool| {
            let first = read(device, 0, None).await;
            assert!(first == 0 || !trimmed);
            for page in 0..40 {
                let expected = match page {
                    0..10 => first,
                    10..30 => 0,
                    _ => 1,
                };
                assert_eq!(read(device, page, None).await, expected, "page {page}");
            }
        };
        with_a_cut(options(16), load, check)
    });
}

#[test]
fn a_begin_that_is_given_up_leaves_no_transaction() {
    at_every_poll(|polls| {
        let load = async move |device: &Device| {
            let mut ended = true;
            for count in 1..=10 {
                // While the headers are held, some of these wait for write-back.
                let begun = give_up(polls, device.begin_as(Some(TxId(77)))).await;
                ended &= begun.is_some();
                if let Some(begun) = begun {
                    device.abort(begun.unwrap()).await.unwrap();
                }
                let tx = device.begin().await.unwrap();
                write(device, count, count, Some(tx)).await;
                device.commit(tx).await.unwrap();
                device.validate_cache();
            }
            assert_eq!(
                device.commit(TxId(77)).await.unwrap_err().kind(),
                ErrorKind::UnknownTransaction
            );
            for _ in 0..device.limits().transactions_max {
                device.begin().await.unwrap();
            }
            ended
        };
        let check = async |device: &Device, _| {
            for count in 1..=10 {
                assert_eq!(read(device, count, None).await, count);
            }
        };
        with_a_cut(options(16), load, check)
    });
}

#[test]
fn a_write_commit_or_abort_that_is_given_up_is_whole_or_not_there() {
    for step in ["write", "commit", "abort"] {
        at_every_poll(|polls| {
            let load = async move |device: &Device| {
                for page in 0..40 {
                    write(device, page, 1, None).await;
                }
                let tx = device.begin().await.unwrap();
                let pages: Vec<Stamp> = (2..6).map(|page| stamp(page, 2)).collect();
                let ended = if step == "write" {
                    give_up(polls, device.write(PageNo(2), &pages, None)).await
                } else {
                    device.write(PageNo(2), &pages, Some(tx)).await.unwrap();
                    let ending = async {
                        match step {
                            "commit" => device.commit(tx).await,
                            _ => device.abort(tx).await,
                        }
                    };
                    give_up(polls, ending).await
                };
                device.validate_cache();
                write(device, 5, 3, None).await;
                ended.is_some()
            };
            let check = async move |device: &Device, ended: bool| {
                let count = read(device, 2, None).await;
                let done = if step == "abort" { 1 } else { 2 };
                assert!(count == done || !ended && count == 1, "{step}: {count}");
                for (page, count) in [(3, count), (4, count), (5, 3), (6, 1)] {
                    assert_eq!(read(device, page, None).await, count, "{step}, page {page}");
                }
            };
            with_a_cut(options(16), load, check)
        });
    }
}

#[test]
fn a_close_that_is_given_up_leaves_the_device_as_lazy_as_before() {
    run(Schedule::Fifo, options(16), |runtime, device| async move {
        for page in 0..8 {
            write(&device, page, 1, None).await;
        }
        assert!(give_up(1, device.close()).await.is_none());
        runtime.sleep(1_000_000_000).await;
        let before = device.statistics().pages_written_home;
        for page in 100..104 {
            write(&device, page, 1, None).await;
        }
        runtime.sleep(1_000_000_000).await;
        assert_eq!(device.statistics().pages_written_home, before, "there is room enough");
        device.close().await.unwrap();
    });
}

#[test]
fn commands_that_are_given_up_while_they_wait_leave_nothing() {
    run(Schedule::Fifo, options(16), |_, device| async move {
        for page in 100..130 {
            write(&device, page, 1, None).await;
        }
        let (a, b) = (device.begin().await.unwrap(), device.begin().await.unwrap());
        for page in 0..12 {
            write(&device, page, 1, Some(a)).await;
        }
        // The cache is full of uncommitted pages, so this write waits for the extended cache.
        let waiting = give_up(1, device.write(PageNo(20), &[stamp(20, 1)], Some(b))).await;
        assert!(waiting.is_none());
        {
            // Page 100 is at home: its read takes a while, and the commit waits for it.
            let mut out = [Stamp::default()];
            let mut reading = pin!(device.read(PageNo(100), &mut out, Some(a)));
            let pending = std::future::poll_fn(|context| {
                Poll::Ready(reading.as_mut().poll(context).is_pending())
            });
            assert!(pending.await);
            assert!(give_up(1, device.commit(a)).await.is_none());
            assert!(give_up(1, device.abort(a)).await.is_none());
        }
        device.validate_cache();
        write(&device, 21, 2, Some(b)).await;
        assert_eq!(read(&device, 20, Some(b)).await, 0);
        device.commit(b).await.unwrap();
        device.commit(a).await.unwrap();
        assert_eq!([read(&device, 11, None).await, read(&device, 21, None).await], [1, 2]);
        device.close().await.unwrap();
        device.validate_cache();
    });
}
