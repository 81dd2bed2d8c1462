//! No read or write of a transaction overtakes its commit or abort, in any schedule of tasks.
use crate::tx_cache::support::{options, read, run, stamp, write};
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::fault_points::plant;
use tantalum_base::{ErrorKind, PageDevice, PageNo, PageRange, Stamp};
use tantalum_models::fault_points::Fault;
use tantalum_runtime::Runtime;
use tantalum_runtime::virtual_time::Schedule;

/// The control command among those of the race; the others are page numbers.
const CONTROL: u64 = u64::MAX;

/// Reads, writes and a commit or abort arrive in an order drawn from the seed. Those before the
/// control command succeed and share the fate of the transaction; those after it find that the
/// transaction no longer exists, and have no effect. Returns the number of commands before it.
fn race(seed: u64, commits: bool) -> usize {
    let total = Rc::new(RefCell::new(0));
    let before = Rc::clone(&total);
    run(Schedule::Shuffled(seed), options(16), move |runtime, device| async move {
        // The lower pages are at home, where a read takes a long time.
        for page in 0..40 {
            write(&device, page, 1, None).await;
        }
        let tx = device.begin().await.unwrap();
        let came = Rc::new(RefCell::new(Vec::new()));
        let mut tasks = Vec::new();
        // More pages than there are free frames: some writes wait for write-back.
        for command in (0..4).chain(60..70).chain([CONTROL]) {
            let (device, came) = (Rc::clone(&device), Rc::clone(&came));
            tasks.push(runtime.spawn("command", async move {
                // The call is made in the same step.
                came.borrow_mut().push(command);
                let result = match command {
                    CONTROL if commits => device.commit(tx).await,
                    CONTROL => device.abort(tx).await,
                    page @ 60.. => device.write(PageNo(page), &[stamp(page, 2)], Some(tx)).await,
                    page => {
                        let mut out = [Stamp::default()];
                        let result = device.read(PageNo(page), &mut out, Some(tx)).await;
                        assert!(result.is_err() || out[0] == stamp(page, 1));
                        result
                    }
                };
                (command, result)
            }));
        }
        let mut results = Vec::new();
        for task in tasks {
            results.push(task.await);
        }
        let came = came.take();
        let place = |command: u64| came.iter().position(|other| *other == command).unwrap();
        let control = place(CONTROL);
        for (command, result) in results {
            if place(command) <= control {
                assert!(result.is_ok(), "seed {seed}: {command} came before: {result:?}");
            } else {
                let error = result.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::UnknownTransaction, "seed {seed}");
            }
        }
        for page in 60..70 {
            let counts = commits && place(page) < control;
            assert_eq!(read(&device, page, None).await, if counts { 2 } else { 0 }, "{page}");
        }
        *before.borrow_mut() = control;
    });
    *total.borrow()
}

#[test]
fn commands_do_not_pass_a_commit() {
    let before: usize = (0..60).map(|seed| race(seed, true)).sum();
    assert!((200..640).contains(&before), "{before} of 840 commands came before it");
}

#[test]
fn commands_do_not_pass_an_abort() {
    let before: usize = (0..60).map(|seed| race(seed, false)).sum();
    assert!((200..640).contains(&before), "{before} of 840 commands came before it");
}

#[test]
fn commits_that_overtake_are_noticed() {
    let _planted = plant(Fault::ControlOvertakes);
    let noticed = std::panic::catch_unwind(|| (0..60).for_each(|seed| _ = race(seed, true)));
    assert!(noticed.is_err());
}

/// A write or commit into a range that is being trimmed takes effect as a whole after the trim, for
/// any division of the range between cache and home.
#[test]
fn what_comes_while_a_range_is_trimmed_comes_behind_it() {
    for seed in 0..40 {
        run(Schedule::Shuffled(seed), options(16), |runtime, device| async move {
            for page in 0..40 {
                write(&device, page, 1, None).await;
            }
            let tx = device.begin().await.unwrap();
            let trimmed = Rc::new(RefCell::new(false));
            let (trimming, done) = (Rc::clone(&device), Rc::clone(&trimmed));
            let trim = runtime.spawn("trim", async move {
                trimming.trim(PageRange::new(PageNo(0), 40)).await.unwrap();
                *done.borrow_mut() = true;
            });
            // This takes a flash program, which has begun by now.
            runtime.sleep(10_000).await;
            assert!(!*trimmed.borrow());
            let (writing, committing) = (Rc::clone(&device), Rc::clone(&device));
            let tasks = [
                runtime.spawn("write", async move {
                    let pages = [stamp(38, 2), stamp(39, 2), stamp(40, 2)];
                    writing.write(PageNo(38), &pages, None).await.unwrap();
                }),
                runtime.spawn("commit", async move {
                    write(&committing, 7, 3, Some(tx)).await;
                    write(&committing, 37, 3, Some(tx)).await;
                    committing.commit(tx).await.unwrap();
                }),
            ];
            for task in tasks {
                task.await;
                assert!(*trimmed.borrow(), "it waited for the trim");
            }
            trim.await;
            let mut found = Vec::new();
            for page in [6, 7, 37, 38, 39, 40] {
                found.push(read(&device, page, None).await);
            }
            assert_eq!(found, [0, 3, 3, 2, 2, 2]);
        });
    }
}
