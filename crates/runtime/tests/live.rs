//! Properties of the live executor only, over both engines.
use std::cell::RefCell;
use std::io::Write;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;
use tantalum_base::ErrorKind;
use tantalum_runtime::live::net::{Address, Listener};
use tantalum_runtime::live::{
    Confined, EngineChoice, LiveFile, LiveOptions, ZeroedSpace, remote, spawn_thread,
};
use tantalum_runtime::{IoBuf, Live, Runtime, join_all, yield_now};

fn engines() -> Vec<Live> {
    [EngineChoice::Threads, EngineChoice::Blocking, EngineChoice::Uring]
        .into_iter()
        .filter_map(|engine| match Live::new(LiveOptions { engine, ..LiveOptions::default() }) {
            Ok(live) => Some(live),
            Err(error) => {
                eprintln!("{engine:?}: {error}");
                tantalum_testing::skip("io_uring");
                None
            }
        })
        .collect()
}

fn scratch() -> std::fs::File {
    tempfile::tempfile().unwrap()
}

#[test]
fn sleeps_end_in_order() {
    for live in engines() {
        let clock = live.clone();
        let order = live.run(async move {
            let late = clock.spawn("late", clock.sleep(3_000_000));
            let early = clock.spawn("early", clock.sleep(1_000_000));
            early.await;
            let early_ns = clock.now_ns();
            late.await;
            (early_ns, clock.now_ns())
        });
        assert!(order.0 >= 1_000_000 && order.1 >= 3_000_000 && order.0 <= order.1);
    }
}

#[test]
fn files_give_back_what_was_written() {
    for live in engines() {
        let file = LiveFile::new(&live, scratch());
        live.run(async move {
            let mut buf = IoBuf::zeroed(8192);
            buf.fill(7);
            let (result, buf) = file.write_at(4096, buf, true).await;
            result.unwrap();
            file.sync_data().await.unwrap();
            let (result, buf) = file.read_at(0, buf).await;
            result.unwrap();
            assert!(buf[..4096].iter().all(|&byte| byte == 0));
            assert!(buf[4096..].iter().all(|&byte| byte == 7));
            let (result, _) = file.read_at(8192, buf).await;
            assert!(result.unwrap_err().to_string().contains("end of file"));
        });
    }
}

#[test]
fn zeroing_changes_the_range_alone_and_not_the_length() {
    for space in [ZeroedSpace::GivenBack, ZeroedSpace::Kept] {
        for live in engines() {
            let file = LiveFile::new(&live, scratch());
            live.run(async move {
                let mut buf = IoBuf::zeroed(4 * 4096);
                buf.fill(7);
                let (result, buf) = file.write_at(0, buf, false).await;
                result.unwrap();
                let zeroed = file.zero(4096, 2 * 4096, space).await.unwrap();
                assert!(file.zero(4 * 4096, 4096, space).await.unwrap() == zeroed);
                let (result, buf) = file.read_at(0, buf).await;
                result.unwrap();
                let first_bytes: Vec<u8> = buf.chunks(4096).map(|block| block[0]).collect();
                // Not every file system supports both.
                let expected = if zeroed { [7, 0, 0, 7] } else { [7; 4] };
                assert_eq!(first_bytes, expected, "{space:?}");
                let (result, _) = file.read_at(4 * 4096, buf).await;
                assert!(result.unwrap_err().to_string().contains("end of file"), "{space:?}");
            });
        }
    }
}

#[test]
fn dropping_operations_in_flight_is_sound() {
    for live in engines() {
        let file = LiveFile::new(&live, scratch());
        let runtime = live.clone();
        live.run(async move {
            for number in 0..64 {
                let file = file.clone();
                runtime.spawn("writer", async move {
                    let _ = file.write_at(number * 4096, IoBuf::zeroed(4096), true).await;
                });
            }
            runtime.sleep(1).await;
        });
        live.drop_tasks();
    }
}

#[test]
fn sockets_carry_bytes_both_ways() {
    for live in engines() {
        let any = "127.0.0.1:0".parse::<Address>().unwrap();
        let listener = Listener::bind(&live, &any).unwrap();
        let Address::Tcp(address) = *listener.local_address() else { panic!("not TCP") };
        let client = thread::Builder::new()
            .spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(&[5; 100_000]).unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                std::io::copy(&mut stream, &mut std::io::sink()).unwrap()
            })
            .unwrap();
        live.run(async move {
            let stream = listener.accept().await.unwrap();
            let (mut buf, mut received) = ([0; 4096], 0);
            loop {
                let count = stream.recv(&mut buf).await.unwrap();
                if count == 0 {
                    break;
                }
                received += count;
            }
            assert_eq!(received, 100_000);
            let mut sent = 0;
            while sent < 2_000_000 {
                sent += stream.send(&[1; 4096]).await.unwrap();
            }
            stream.shutdown();
        });
        assert!(client.join().unwrap() >= 2_000_000);
    }
}

#[test]
fn an_address_in_use_is_refused_and_a_stale_socket_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let live = Live::new(LiveOptions::default()).unwrap();
    for address in [Address::Unix(path.clone()), "127.0.0.1:0".parse().unwrap()] {
        let first = Listener::bind(&live, &address).unwrap();
        let address = first.local_address().clone();
        let told = Listener::bind(&live, &address).map(drop).unwrap_err().to_string();
        assert!(
            told.contains("in use")
                && told.contains("another address")
                && told.contains(&address.to_string()),
            "{told}"
        );
    }
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    Listener::bind(&live, &Address::Unix(path)).unwrap();
}

/// The state that the kernel leaves for a moment after a server with an io_uring is killed.
#[test]
#[expect(clippy::disallowed_methods, reason = "plays the kernel, beside the executor")]
fn a_socket_that_lives_on_after_its_server_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let live = Live::new(LiveOptions::default()).unwrap();
    let unix = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp_address = Address::Tcp(tcp.local_addr().unwrap());
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(std::time::Duration::from_millis(200));
            drop(unix);
            thread::sleep(std::time::Duration::from_millis(200));
            drop(tcp);
        });
        Listener::bind(&live, &Address::Unix(path.clone())).unwrap();
        Listener::bind(&live, &tcp_address).unwrap();
    });
}

#[test]
fn four_threads_call_an_executor() {
    for engine in [EngineChoice::Threads, EngineChoice::Blocking, EngineChoice::Auto] {
        let (sender, mut receiver) = remote::channel::<(u64, remote::ReplySender<u64>)>("calls", 2);
        let options = LiveOptions { engine, ..LiveOptions::default() };
        let host = spawn_thread("host", options, move |_| async move {
            let mut calls = 0;
            while let Some((number, reply)) = receiver.recv().await {
                calls += 1;
                reply.send(number * 2);
            }
            calls
        })
        .unwrap();
        thread::scope(|scope| {
            for caller in 0..4u64 {
                let sender = sender.clone();
                scope.spawn(move || {
                    for number in 0..500 {
                        let (reply, answer) = remote::reply();
                        assert!(sender.send((caller * 1000 + number, reply)).is_ok());
                        assert_eq!(answer.wait(), Some((caller * 1000 + number) * 2));
                    }
                });
            }
        });
        drop(sender);
        assert_eq!(host.join().unwrap(), 2000);
    }
}

/// An executor that moves between threads, with a file on it.
fn confined() -> Confined<Rc<LiveFile>> {
    let file = scratch();
    // SAFETY: nothing is stored elsewhere.
    #[expect(unsafe_code, reason = "the contract of the executor under test")]
    let confined = unsafe { Confined::new(move |live| Ok(Rc::new(LiveFile::new(live, file)))) };
    confined.unwrap()
}

/// Many reads of one call go to the kernel together, while other callers do the same. Each returns its own bytes, and
/// a read past the end of the file fails alone.
#[test]
fn reads_of_one_call_bring_each_its_own_bytes() {
    const PAGES: u64 = 200;
    let confined = confined();
    let fill = confined.call(|_, file| {
        let file = Rc::clone(file);
        async move {
            for page in 0..PAGES {
                let mut buf = IoBuf::zeroed(4096);
                buf.fill(page as u8);
                file.write_at(page * 4096, buf, false).await.0.unwrap();
            }
        }
    });
    fill.unwrap();
    let read_all = || {
        let read = confined.call(|_, file| {
            let file = Rc::clone(file);
            async move {
                let read = |page: u64| {
                    let file = Rc::clone(&file);
                    async move {
                        let (result, buf) = file.read_at(page * 4096, IoBuf::zeroed(4096)).await;
                        let is_right = buf.iter().all(|byte| *byte == page as u8);
                        Ok(result.is_ok() && is_right)
                    }
                };
                // Out of order, with the last ones past the end.
                let pages = (0..PAGES + 3).map(|at| if at < PAGES { at * 77 % PAGES } else { at });
                join_all(pages.map(read).collect()).await.unwrap()
            }
        });
        let read = read.unwrap();
        assert_eq!(read.iter().filter(|is_right| **is_right).count() as u64, PAGES);
        assert!(read[..PAGES as usize].iter().all(|is_right| *is_right));
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(read_all)).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// An executor that moves between threads does file I/O and waits on each of them. That includes a thread that did
/// not make it, and the time after the previous thread has ended.
#[test]
fn an_executor_goes_from_thread_to_thread() {
    let confined = confined();
    for round in 0..6u8 {
        let work = |live: &Live, file: &Rc<LiveFile>| {
            let (clock, file) = (live.clone(), Rc::clone(file));
            async move {
                let at = u64::from(round) * 4096;
                let mut buf = IoBuf::zeroed(4096);
                buf.fill(round + 1);
                file.write_at(at, buf, false).await.0.unwrap();
                // Parked, and woken by another thread.
                let (sender, mut receiver) = remote::channel("a wake-up", 1);
                #[expect(clippy::disallowed_methods, reason = "somebody else wakes it")]
                let waker = thread::spawn(move || sender.send(round).unwrap());
                assert_eq!(receiver.recv().await, Some(round));
                waker.join().unwrap();
                clock.sleep(100_000).await;
                let (result, buf) = file.read_at(at, IoBuf::zeroed(4096)).await;
                result.unwrap();
                assert!(buf.iter().all(|byte| *byte == round + 1));
            }
        };
        // Each on its own thread, which ends, and on this thread in between.
        if round % 3 == 2 {
            confined.call(work).unwrap();
        } else {
            thread::scope(|scope| scope.spawn(|| confined.call(work).unwrap()).join().unwrap());
        }
    }
}

/// The last action of a thread, when its thread-locals may already be gone.
struct LastCall(Arc<Confined<Rc<LiveFile>>>, mpsc::Sender<u64>);

impl Drop for LastCall {
    fn drop(&mut self) {
        let answer = self.0.call(|live, _| {
            let live = live.clone();
            async move {
                live.sleep(1_000).await;
                7
            }
        });
        self.1.send(answer.unwrap()).unwrap();
    }
}

/// Destructors of an ending thread may call an executor, in any order.
#[test]
#[expect(clippy::disallowed_methods, reason = "threads that end are what is tested")]
fn a_thread_that_ends_may_still_call() {
    thread_local! {
        static LAST: RefCell<Option<LastCall>> = const { RefCell::new(None) };
    }
    let confined = Arc::new(confined());
    for calls_first in [true, false] {
        let (sender, answers) = mpsc::channel();
        let last = LastCall(Arc::clone(&confined), sender);
        let confined = Arc::clone(&confined);
        let thread = thread::spawn(move || {
            let call = || confined.call(|_, _| async { 1 }).unwrap();
            if calls_first {
                call();
            }
            LAST.set(Some(last));
            call();
        });
        thread.join().unwrap();
        assert_eq!(answers.recv(), Ok(7), "calls first: {calls_first}");
    }
}

/// Callers of one executor, each of which writes, syncs and reads its own data.
#[test]
fn callers_of_one_executor_all_get_their_answers() {
    const CALLERS: u64 = 6;
    let confined = confined();
    let call = |caller: u64, round: u64| {
        let answer = confined.call(|live, file| {
            let (clock, file) = (live.clone(), Rc::clone(file));
            async move {
                let mut buf = IoBuf::zeroed(4096);
                buf.fill((caller * 31 + round) as u8);
                file.write_at(caller * 4096, buf, round.is_multiple_of(5)).await.0.unwrap();
                if round.is_multiple_of(7) {
                    clock.sleep(1 + round * 1000).await;
                }
                yield_now().await;
                let (result, buf) = file.read_at(caller * 4096, IoBuf::zeroed(4096)).await;
                result.unwrap();
                (buf[0], buf[4095])
            }
        });
        let expected = (caller * 31 + round) as u8;
        assert_eq!(answer.unwrap(), (expected, expected));
    };
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            scope.spawn(move || (0..200).for_each(|round| call(caller, round)));
        }
    });
}

/// One request waits for an event that the request of another caller provides; that caller finds the executor free.
#[test]
fn a_caller_that_waits_leaves_the_executor_to_others() {
    let confined = confined();
    let (sender, receiver) = remote::channel("what another caller brings", 1);
    let waiting = remote::channel("that the first waits", 1);
    thread::scope(|scope| {
        let mut receiver = Some(receiver);
        let confined = &confined;
        let (told, mut tell) = waiting;
        scope.spawn(move || {
            let first = confined.call(|_, _| {
                let mut receiver = receiver.take().unwrap();
                async move {
                    told.send(()).unwrap();
                    receiver.recv().await
                }
            });
            assert_eq!(first.unwrap(), Some(7));
        });
        let second = confined.call(|_, _| async move {
            tell.recv().await.unwrap();
            sender.send(7).unwrap();
        });
        second.unwrap();
    });
}

#[test]
fn who_waits_while_another_caller_panics_is_told() {
    let confined = confined();
    let (told, mut waits) = remote::channel("that the first waits", 1);
    thread::scope(|scope| {
        let confined = &confined;
        let first = scope.spawn(move || {
            confined.call(move |_, _| async move {
                told.send(()).unwrap();
                std::future::pending::<()>().await
            })
        });
        let second = scope.spawn(move || {
            confined.call(move |_, _| async move {
                waits.recv().await.unwrap();
                panic!("planted");
            })
        });
        // Either of them may be the one that ran it.
        let ends = [first.join(), second.join()];
        assert_eq!(ends.iter().filter(|end| end.is_err()).count(), 1);
        let told = ends.into_iter().flatten().next().unwrap().unwrap_err();
        assert_eq!(told.kind(), ErrorKind::Closed);
    });
    let later = confined.call(|_, _| async {}).unwrap_err();
    assert_eq!(later.kind(), ErrorKind::Closed);
}
