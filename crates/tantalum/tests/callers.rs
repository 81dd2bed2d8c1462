//! Concurrent blocking callers of one volume, and the operations for which each of them may wait.
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;
use tantalum::Volume;
use tantalum::front_end::{FrontEnd, Lent, on_callers};
use tantalum_base::fault_points::plant;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, Result};
use tantalum_media::block_store::{BlockStore, IoBuf, MemoryStore, StoreLayer};
use tantalum_runtime::Live;
use tantalum_runtime::fault_points::Fault;
use tantalum_runtime::live::Confined;
use tantalum_volume::{OpenOptions, VolumeConfig, config, create_flash, open_flash};

/// No step here takes this long unless it hangs.
const HANGS: Duration = Duration::from_secs(60);

/// The controls of a [`HeldStore`], usable from any thread.
#[derive(Default)]
struct Gate {
    held: AtomicBool,
    panics: AtomicBool,
    /// Number of durable writes and syncs.
    durable: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

impl Gate {
    fn hold(&self) {
        self.held.store(true, Ordering::SeqCst);
    }

    fn release(&self) {
        self.held.store(false, Ordering::SeqCst);
        self.waiting.lock().unwrap().drain(..).for_each(Waker::wake);
    }

    fn wait_for_durable(&self, count: u64) {
        while self.durable.load(Ordering::SeqCst) < count {
            std::thread::yield_now();
        }
    }
}

/// A store in memory where nothing becomes durable while the gate is held.
#[derive(Clone)]
struct HeldStore(MemoryStore, Arc<Gate>);

impl HeldStore {
    async fn pass(&self, durable: bool) {
        assert!(!self.1.panics.load(Ordering::SeqCst), "planted");
        if !durable {
            return;
        }
        self.1.durable.fetch_add(1, Ordering::SeqCst);
        std::future::poll_fn(|context| {
            let mut waiting = self.1.waiting.lock().unwrap();
            if !self.1.held.load(Ordering::SeqCst) {
                return Poll::Ready(());
            }
            waiting.push(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl StoreLayer for HeldStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0
    }

    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf> {
        self.pass(durable).await;
        self.0.write(offset, buf, durable).await
    }

    async fn sync(&self) -> Result<()> {
        self.pass(true).await;
        self.0.sync().await
    }
}

/// A volume on a [`HeldStore`] with content in its first eight pages.
fn held_volume() -> (Volume, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let mut limits = None;
    let make = |live: &Live| {
        let (handle, gate) = (live.clone(), Arc::clone(&gate));
        let volume = live.run(async move {
            let config = VolumeConfig::parse(&config::template("8MiB"), Path::new("v.toml"))?;
            let store = HeldStore(MemoryStore::new(64 << 20), gate);
            create_flash(store.clone(), &config, 1).await?;
            open_flash(&handle, store, &config, OpenOptions::default()).await
        })?;
        limits = Some(volume.0.limits().clone());
        Ok(Lent::new(volume.0))
    };
    // SAFETY: nothing is stored elsewhere.
    #[expect(unsafe_code, reason = "the contract of an executor that is lent")]
    let executor = unsafe { Confined::new(make) }.unwrap();
    let volume = on_callers(executor, limits.unwrap());
    volume.write_scattered((0..8).map(|page| (PageNo(page), content(1))).collect()).unwrap();
    (volume, gate)
}

fn content(byte: u8) -> PageBuf {
    PageBuf::copy_from(&[byte; PAGE_BYTES])
}

/// Runs `job` on a thread of its own.
fn start<T: Send + 'static>(
    volume: &Volume,
    job: impl FnOnce(Volume) -> T + Send + 'static,
) -> Receiver<std::thread::Result<T>> {
    let (told, outcome) = mpsc::channel();
    let volume = volume.clone();
    #[expect(clippy::disallowed_methods, reason = "a blocking caller")]
    std::thread::spawn(move || {
        let job = std::panic::AssertUnwindSafe(|| job(volume));
        let _ = told.send(std::panic::catch_unwind(job));
    });
    outcome
}

fn commit(volume: &Volume, page: u64, byte: u8) -> Receiver<std::thread::Result<Result<()>>> {
    let pages = vec![(PageNo(page), content(byte))];
    start(volume, move |volume| volume.write_scattered(pages))
}

#[test]
fn a_read_does_not_wait_for_another_callers_durable_write() {
    let (volume, gate) = held_volume();
    gate.hold();
    let before = gate.durable.load(Ordering::SeqCst);
    let writes = [commit(&volume, 0, 2), commit(&volume, 1, 2)];
    gate.wait_for_durable(before + 2);
    for page in 2..8 {
        let read = start(&volume, move |volume| volume.read(PageNo(page), 1));
        let read = read.recv_timeout(HANGS).expect("a read that waits for a write");
        assert_eq!(read.unwrap().unwrap()[0], content(1));
    }
    for write in &writes {
        assert!(write.try_recv().is_err(), "acknowledged before it is durable");
    }
    gate.release();
    for write in writes {
        write.recv_timeout(HANGS).unwrap().unwrap().unwrap();
    }
}

#[test]
fn an_executor_that_a_waiting_caller_keeps_is_noticed() {
    let (volume, gate) = held_volume();
    gate.hold();
    let before = gate.durable.load(Ordering::SeqCst);
    let write = start(&volume, |volume| {
        let _planted = plant(Fault::ExecutorKeptWhileWaiting);
        volume.write_scattered(vec![(PageNo(0), content(2))])
    });
    gate.wait_for_durable(before + 1);
    let read = start(&volume, |volume| volume.read(PageNo(2), 1));
    assert!(read.recv_timeout(Duration::from_millis(300)).is_err(), "the read goes on beside it");
    gate.release();
    write.recv_timeout(HANGS).unwrap().unwrap().unwrap();
    assert_eq!(read.recv_timeout(HANGS).unwrap().unwrap().unwrap()[0], content(1));
}

#[test]
fn commits_that_come_during_a_durable_write_share_the_next() {
    const COMMITS: u64 = 16;
    let (volume, gate) = held_volume();
    gate.hold();
    let before = gate.durable.load(Ordering::SeqCst);
    let commits: Vec<_> = (0..COMMITS).map(|page| commit(&volume, page, 3)).collect();
    for page in 0..COMMITS {
        // The write is in the write cache as soon as readers see it.
        while volume.read(PageNo(page), 1).unwrap()[0] != content(3) {
            std::thread::yield_now();
        }
    }
    gate.release();
    for commit in commits {
        commit.recv_timeout(HANGS).expect("a commit hangs").unwrap().unwrap();
    }
    let syncs = gate.durable.load(Ordering::SeqCst) - before;
    // Two are in flight at once, and the next contains all commits that came meanwhile, possibly in
    // two zones; a checkpoint may come between them.
    assert!(syncs <= COMMITS / 2, "{syncs} durable writes for {COMMITS} commits");
}

/// The same with system calls made by the callers, without a gate.
#[test]
fn commits_to_a_file_share_durable_writes() {
    const CALLERS: u64 = 8;
    let folder = tempfile::tempdir().unwrap();
    let volume = Volume::create(folder.path()).capacity_bytes(8 << 20).open().unwrap();
    let counters = volume.store_counters().unwrap();
    let writes = || counters.snapshot().writes;
    // On a disk where a durable write takes no time, few are shared.
    for round in 0..1000 {
        let before = writes();
        std::thread::scope(|scope| {
            for caller in 0..CALLERS {
                let volume = volume.clone();
                scope.spawn(move || {
                    for byte in 0..10 {
                        let page = (PageNo(caller), content(byte));
                        volume.write_scattered(vec![page]).unwrap();
                    }
                });
            }
        });
        if writes() - before < CALLERS * 10 {
            return;
        }
        assert!(round < 999, "each commit is a durable write of its own");
    }
}

#[test]
fn a_panic_in_one_caller_hangs_no_other() {
    let (volume, gate) = held_volume();
    gate.hold();
    let before = gate.durable.load(Ordering::SeqCst);
    let waits = commit(&volume, 0, 2);
    gate.wait_for_durable(before + 1);
    gate.panics.store(true, Ordering::SeqCst);
    let panics = commit(&volume, 1, 2).recv_timeout(HANGS).expect("hangs");
    assert_eq!(*panics.unwrap_err().downcast::<&str>().unwrap(), "planted");
    let closed = |outcome: Result<()>| outcome.unwrap_err().kind() == ErrorKind::Closed;
    assert!(closed(waits.recv_timeout(HANGS).expect("hangs").unwrap()));
    let late = commit(&volume, 2, 2).recv_timeout(HANGS).expect("hangs");
    assert!(closed(late.unwrap()));
    gate.release();
}
