//! Properties of both implementations, and those that only virtual time promises.
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use tantalum_runtime::live::{EngineChoice, LiveOptions};
use tantalum_runtime::sync::{Semaphore, channel};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Live, Runtime, Virtual, yield_now};

type Log = Rc<RefCell<Vec<u64>>>;

async fn sleeps_are_ordered(runtime: impl Runtime) {
    let log = Log::default();
    let tasks: Vec<_> = [3, 1, 2]
        .map(|rank| {
            let (log, sleep) = (log.clone(), runtime.sleep(rank * 2_000_000));
            runtime.spawn("sleeper", async move {
                sleep.await;
                log.borrow_mut().push(rank);
                rank
            })
        })
        .into();
    let mut sum = 0;
    for task in tasks {
        sum += task.await;
    }
    assert_eq!((sum, log.take()), (6, vec![1, 2, 3]));
}

/// If a waiter gives up, nobody overtakes the waiters before it.
async fn semaphore_is_fifo(runtime: impl Runtime) {
    let semaphore = Semaphore::new("permits", 1);
    let held = semaphore.acquire(1).await;
    let log = Log::default();
    let waiter = |rank: u64| {
        let (log, semaphore, runtime2) = (log.clone(), semaphore.clone(), runtime.clone());
        runtime.spawn("waiter", async move {
            let _permit = semaphore.acquire(1).await;
            log.borrow_mut().push(rank);
            runtime2.sleep(1000).await;
        })
    };
    let first = waiter(1);
    runtime.sleep(100_000).await;
    {
        let mut given_up = pin!(semaphore.acquire(1));
        poll_fn(|context| {
            assert!(given_up.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
    }
    let second = waiter(2);
    runtime.sleep(100_000).await;
    drop(held);
    first.await;
    second.await;
    assert_eq!(log.take(), [1, 2]);
    assert_eq!(semaphore.free(), 1);
}

async fn channels_are_bounded_and_close(runtime: impl Runtime) {
    let (sender, mut receiver) = channel("items", 2);
    let log = Log::default();
    let sent = log.clone();
    let task = runtime.spawn("sender", async move {
        for item in 0..5 {
            sender.send(item).await.unwrap();
            sent.borrow_mut().push(item);
        }
    });
    runtime.sleep(100_000).await;
    assert_eq!(log.borrow().len(), 2);
    for item in 0..5 {
        assert_eq!(receiver.recv().await, Some(item));
    }
    assert_eq!(receiver.recv().await, None);
    task.await;
    let (sender, receiver) = channel("items", 1);
    drop(receiver);
    assert_eq!(sender.send(9).await, Err(9));
}

/// One executor runs nested in another and wakes the other's tasks. No wake is lost, including those before the
/// nesting.
async fn executors_run_within_one_another(runtime: impl Runtime) {
    let (semaphore, log) = (Semaphore::new("permits", 1), Log::default());
    let held = semaphore.acquire(1).await;
    let (waits, noted) = (semaphore.clone(), log.clone());
    let waiter = runtime.spawn("waiter", async move {
        let _permit = waits.acquire(1).await;
        noted.borrow_mut().push(2);
    });
    yield_now().await;
    let noted = log.clone();
    let woken_before = runtime.spawn("woken before", async move { noted.borrow_mut().push(1) });
    let inner = Virtual::new(Schedule::Fifo);
    let sleep = inner.sleep(1000);
    let ended = inner.run(async move {
        drop(held);
        sleep.await;
    });
    ended.expect("the inner run ends");
    assert!(log.borrow().is_empty(), "the inner executor polled tasks of the outer one");
    woken_before.await;
    waiter.await;
    let mut done = log.take();
    done.sort_unstable();
    assert_eq!(done, [1, 2]);
}

async fn everything(runtime: impl Runtime) {
    sleeps_are_ordered(runtime.clone()).await;
    semaphore_is_fifo(runtime.clone()).await;
    channels_are_bounded_and_close(runtime.clone()).await;
    executors_run_within_one_another(runtime).await;
}

#[test]
fn virtual_time_keeps_the_contract() {
    for schedule in [Schedule::Fifo, Schedule::Shuffled(1), Schedule::Shuffled(2)] {
        let runtime = Virtual::new(schedule);
        runtime.run(everything(runtime.clone())).unwrap();
    }
}

#[test]
fn live_threads_keep_the_contract() {
    let options = LiveOptions { engine: EngineChoice::Threads, ..LiveOptions::default() };
    let live = Live::new(options).unwrap();
    live.run(everything(live.clone()));
}

#[test]
fn live_auto_keeps_the_contract() {
    let live = Live::new(LiveOptions::default()).unwrap();
    live.run(everything(live.clone()));
}

fn interleaving(seed: u64) -> Vec<u64> {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let log = Log::default();
    for task in 0..16 {
        let (log, sleep) = (log.clone(), runtime.sleep(10));
        runtime.spawn("racer", async move {
            sleep.await;
            log.borrow_mut().push(task);
        });
    }
    runtime.run(runtime.sleep(20)).unwrap();
    log.take()
}

#[test]
fn a_seed_decides_the_interleaving() {
    assert_eq!(interleaving(5), interleaving(5));
    assert_ne!(interleaving(5), interleaving(6));
}

#[test]
fn a_deadlock_names_tasks_and_what_they_wait_on() {
    let runtime = Virtual::new(Schedule::Fifo);
    let semaphore = Semaphore::new("the only permit", 0);
    let deadlock = runtime.run(async move { drop(semaphore.acquire(1).await) }).unwrap_err();
    assert_eq!(deadlock.waiting, [("main", "the only permit")]);
}

#[test]
fn dropping_tasks_is_a_power_cut() {
    let runtime = Virtual::new(Schedule::Fifo);
    let log = Log::default();
    let (late, sleep) = (log.clone(), runtime.sleep(100));
    runtime.spawn("late", async move {
        sleep.await;
        late.borrow_mut().push(1);
    });
    runtime.run(runtime.sleep(50)).unwrap();
    runtime.drop_tasks();
    runtime.run(runtime.sleep(500)).unwrap();
    assert!(log.take().is_empty());
    assert_eq!(runtime.now_ns(), 550);
}

/// A run ends with its main future. Tasks that were woken meanwhile continue in the next run.
#[test]
fn what_a_run_has_woken_goes_on_in_the_next() {
    let runtime = Virtual::new(Schedule::Fifo);
    let log = Log::default();
    let (noted, spawner) = (log.clone(), runtime.clone());
    let main = async move {
        spawner.spawn("left over", async move { noted.borrow_mut().push(1) });
    };
    runtime.run(main).unwrap();
    assert!(log.borrow().is_empty(), "it is ready, and the run is over");
    runtime.run(yield_now()).unwrap();
    assert_eq!(log.take(), [1]);
}

#[test]
fn yielding_alternates() {
    let runtime = Virtual::new(Schedule::Fifo);
    let log = Log::default();
    let tasks = [0, 1].map(|task| {
        let log = log.clone();
        runtime.spawn("yielder", async move {
            for _ in 0..3 {
                log.borrow_mut().push(task);
                yield_now().await;
            }
        })
    });
    runtime
        .run(async move {
            for task in tasks {
                task.await;
            }
        })
        .unwrap();
    assert_eq!(log.take(), [0, 1, 0, 1, 0, 1]);
}
