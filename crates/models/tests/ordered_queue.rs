//! Commands that change something reach the device in the order in which they were issued (DuraSSD,
//! section 3.3; TxCache, section III-A), regardless of their times on the link and of the scheduling
//! of tasks.
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use tantalum_base::{ErrorKind, PageDevice, PageNo, PageRange, Payload, Result, Stamp};
use tantalum_models::profile::{DEVICES, SimulatedDevice};
use tantalum_models::{DeviceSpec, HostQueue, HostQueueOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{JoinHandle, Runtime, Virtual};

type Linked = HostQueue<Virtual, SimulatedDevice<Stamp>>;

/// The latency per page exceeds all others: without an order, short commands overtake long ones.
const LINK: HostQueueOptions = HostQueueOptions {
    depth: 8,
    command_ns: 1_000,
    page_ns: 30_000,
    write_ns: 0,
    link_command_ns: 100,
    link_bytes_per_second: 4_096_000_000,
    flush_ns: 0,
    flush_alone: false,
    barrier: true,
};

/// Runs `clients` on a new device called `name` behind `LINK`.
fn run<T: 'static>(
    name: &str,
    schedule: Schedule,
    clients: impl AsyncFnOnce(Virtual, Rc<Linked>) -> T + 'static,
) -> T {
    let runtime = Virtual::new(schedule);
    let (rt, spec) = (runtime.clone(), DeviceSpec::parse(name).unwrap());
    let whole = async move {
        let device = spec.build(&rt, 1).await.unwrap().device;
        let linked = HostQueue::new(rt.clone(), device, LINK).unwrap();
        clients(rt, Rc::new(linked)).await
    };
    let result = runtime.run(whole).unwrap();
    runtime.drop_tasks();
    result
}

fn stamps(first: u64, pages: u64, version: u64) -> Vec<Stamp> {
    (first..first + pages).map(|page| Stamp::new(PageNo(page), version)).collect()
}

async fn read(device: &Linked, page: u64) -> Stamp {
    let mut out = [Stamp::zero()];
    device.read(PageNo(page), &mut out, None).await.unwrap();
    out[0]
}

async fn all<T>(tasks: Vec<JoinHandle<T>>) -> Vec<T> {
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await);
    }
    results
}

/// Writes of 16 pages and of one page at the same time: each page ends with the content issued
/// last.
fn longer_and_shorter(name: &str, seed: u64) {
    run(&format!("{name}:pages=9000"), Schedule::Shuffled(seed), async move |runtime, device| {
        let (issued, last) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new([0; 32])));
        let commands =
            [(0, 16), (3, 1), (8, 16), (9, 1), (23, 1), (5, 4), (16, 16), (17, 1), (5, 1)];
        // Earlier layers take one page at a time.
        let most = device.limits().atomic_write_pages_max as usize;
        let tasks = commands.into_iter().map(|(first, pages)| {
            let pages = pages.min(most);
            let (device, issued, last) = (Rc::clone(&device), Rc::clone(&issued), Rc::clone(&last));
            runtime.spawn("writer", async move {
                // Both in the step that issues the command.
                issued.set(issued.get() + 1);
                last.borrow_mut()[first..first + pages].fill(issued.get());
                let (first, content) = (first as u64, issued.get());
                let content = stamps(first, pages as u64, content);
                device.write(PageNo(first), &content, None).await.unwrap();
            })
        });
        all(tasks.collect()).await;
        let last = *last.borrow();
        for (page, version) in (0..32).zip(last).filter(|(_, version)| *version > 0) {
            assert_eq!(read(&device, page).await, Stamp::new(PageNo(page), version), "{page}");
        }
    });
}

#[test]
fn a_page_ends_with_what_was_issued_last() {
    for seed in 0..20 {
        for entry in DEVICES {
            longer_and_shorter(entry.name, seed);
        }
    }
}

#[test]
fn a_commit_does_not_overtake_the_commands_of_its_transaction() {
    for name in ["txssd:pages=9000", "durassd:pages=9000"] {
        for seed in 0..20 {
            run(name, Schedule::Shuffled(seed), async move |runtime, device| {
                let tx = device.begin().await.unwrap();
                let (issued, committed) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(None)));
                // More than fit in the queue: some wait for a slot. The commit is issued among
                // them, and reads keep their place as well.
                let commands = (0..24).map(|at| {
                    let (device, issued) = (Rc::clone(&device), Rc::clone(&issued));
                    let committed = Rc::clone(&committed);
                    runtime.spawn("client", async move {
                        let place = issued.replace(issued.get() + 1);
                        let first = PageNo(4 * at);
                        let result = match at {
                            0 => {
                                committed.set(Some(place));
                                device.commit(tx).await
                            }
                            1..6 => device.read(first, &mut [Stamp::zero()], Some(tx)).await,
                            _ => device.write(first, &stamps(4 * at, 4, 1), Some(tx)).await,
                        };
                        (at, place, result)
                    })
                });
                let results = all(commands.collect()).await;
                let committed = committed.get().unwrap();
                for (at, place, result) in results {
                    let in_time = place <= committed;
                    match result {
                        Ok(()) => assert!(in_time, "{name} {seed}: {at} came behind the commit"),
                        Err(error) => {
                            assert!(!in_time, "{name} {seed}: {at} came before: {error}");
                            assert_eq!(error.kind(), ErrorKind::UnknownTransaction);
                        }
                    }
                    if at >= 6 {
                        let expected = Stamp::new(PageNo(4 * at + 3), 1);
                        let expected = if in_time { expected } else { Stamp::zero() };
                        assert_eq!(read(&device, 4 * at + 3).await, expected);
                    }
                }
            });
        }
    }
}

/// Issues `commands` in order, in one step, and waits for all of them.
async fn issue(mut commands: Vec<Pin<Box<dyn Future<Output = Result<()>> + '_>>>) {
    let mut pending: Vec<usize> = (0..commands.len()).collect();
    poll_fn(|context| {
        pending.retain(|at| match commands[*at].as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(result) => {
                result.unwrap();
                false
            }
        });
        if pending.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[test]
fn trims_and_shares_have_their_place_among_writes() {
    run("durassd:pages=9000", Schedule::Fifo, async |_, device| {
        let (long, short) = (stamps(0, 16, 2), stamps(5, 1, 3));
        let pairs = [(PageNo(40), PageNo(1))];
        device.write(PageNo(0), &stamps(0, 32, 1), None).await.unwrap();
        issue(vec![
            Box::pin(device.write(PageNo(0), &long, None)),
            Box::pin(device.share(&pairs)),
            Box::pin(device.trim(PageRange::new(PageNo(4), 2))),
            Box::pin(device.write(PageNo(5), &short, None)),
        ])
        .await;
        let found = [read(&device, 40).await, read(&device, 4).await, read(&device, 5).await];
        assert_eq!(found, [Stamp::new(PageNo(1), 2), Stamp::zero(), Stamp::new(PageNo(5), 3)]);
    });
}

#[test]
fn a_command_that_is_given_up_holds_up_none_behind_it() {
    run("durassd:pages=9000", Schedule::Fifo, async |runtime, device| {
        // More than fit in the queue: dropped while they wait for a slot, for the link, or for their
        // turn.
        let contents: Vec<_> = (0..20).map(|at| stamps(0, 16 - at % 2 * 15, 1)).collect();
        let given_up = contents.iter().map(|content| -> Pin<Box<dyn Future<Output = _>>> {
            Box::pin(device.write(PageNo(0), content, None))
        });
        let mut given_up: Vec<_> = given_up.collect();
        poll_fn(|context| {
            let pending = given_up.iter_mut().all(|one| one.as_mut().poll(context).is_pending());
            assert!(pending);
            Poll::Ready(())
        })
        .await;
        runtime.sleep(40_000).await;
        drop(given_up);
        device.write(PageNo(7), &stamps(7, 1, 9), None).await.unwrap();
        assert_eq!(read(&device, 7).await, Stamp::new(PageNo(7), 9));
    });
}

#[test]
fn reads_pass_and_the_order_costs_no_bandwidth() {
    run("durassd:pages=9000", Schedule::Fifo, async |runtime, _| {
        // Uses the SSD without its own link; this test's link replaces that.
        let spec = DeviceSpec::parse("durassd:pages=9000").unwrap();
        let ssd = spec.build(&runtime, 1).await.unwrap().ages.expect("an SSD behind a link");
        let link = HostQueueOptions { depth: 32, ..LINK };
        let device = Rc::new(HostQueue::new(runtime.clone(), ssd, link).unwrap());
        let start_ns = runtime.now_ns();
        let ends = Rc::new(RefCell::new(Vec::new()));
        let note = |name: &'static str| {
            let (ends, runtime) = (Rc::clone(&ends), runtime.clone());
            move || ends.borrow_mut().push((name, runtime.now_ns() - start_ns))
        };
        let command = |name: &'static str, pages: u64| -> Pin<Box<dyn Future<Output = _>>> {
            let (device, note) = (Rc::clone(&device), note(name));
            Box::pin(async move {
                if name == "read" {
                    device.read(PageNo(0), &mut [Stamp::zero()], None).await?;
                } else {
                    device.write(PageNo(0), &stamps(0, pages, 1), None).await?;
                }
                note();
                Ok(())
            })
        };
        device.write(PageNo(0), &stamps(0, 16, 1), None).await.unwrap();
        let before_ns = runtime.now_ns() - start_ns;
        issue(vec![
            command("long", 16),
            command("short", 1),
            command("long", 16),
            command("read", 1),
        ])
        .await;
        let ends: Vec<_> = ends.borrow().iter().map(|(name, ns)| (*name, ns - before_ns)).collect();
        // Each command occupies the link for 100 ns plus 1,000 a page, one after the other. Its
        // latency is 1,000 plus 30,000 a page; the latencies overlap.
        let long_ns = 16_100 + 481_000;
        assert_eq!(
            ends,
            [
                ("read", 33_300 + 1_100),
                ("long", long_ns),
                // It arrived much earlier and waited for its turn.
                ("short", long_ns),
                ("long", long_ns + 1_100 + 16_100),
            ]
        );
    });
}
