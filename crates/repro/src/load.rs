//! Closed-loop clients, as in `fio`: random reads or writes of a file, each client with one request
//! outstanding, and an fsync after every N writes.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Payload, Result, Rng, Stamp};
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{Runtime, Virtual, spawn_all};

use tantalum_replay::device_replay::Expected;

use super::journal::Journal;

/// The requests of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Random reads, each checked.
    Read,
    /// Random writes, each client with an fsync of its own after every N of its writes; `None`:
    /// never.
    Write {
        /// Number of writes from fsync to fsync.
        per_fsync: Option<u32>,
    },
}

/// The effect of an fsync on the host: a file system that journals its metadata, as ext4 and XFS
/// do.
///
/// A write gives the file a new modification time, which the kernel reads from a clock that
/// advances with every tick. If the time did change, an fsync writes the inode to the [`Journal`]. If
/// it did not, there is nothing to journal, and an fsync is one flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Length of a tick of the kernel's clock.
    pub tick_ns: u64,
    /// Number of pages of the journal, which is in the middle of the file's pages and is written
    /// circularly.
    pub journal_pages: u64,
    /// Its kind.
    pub journal: Journal,
}

/// Section 4.2: Linux 3.5.0. Chosen: the 250 ticks per second of the distribution that contained it
/// (Ubuntu 12.10), a journal of 32 MiB, and ext4 under the tests of devices, as the paper names no file system there.
pub const FILE_SYSTEM: FileSystem =
    FileSystem { tick_ns: 4_000_000, journal_pages: 8_192, journal: Journal::BlockAndRecord };

/// The file system of MySQL and Couchbase (section 4.2).
pub const XFS: FileSystem = FileSystem { journal: Journal::OneRecord, ..FILE_SYSTEM };

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Reads or writes.
    pub access: Access,
    /// Number of clients.
    pub clients: u32,
    /// Number of pages of a request, which starts at a multiple of that.
    pub pages_per_request: u32,
    /// Number of requests before the clock starts (warm-up).
    pub warm_up: u64,
    /// Number of measured requests, of all clients together.
    pub requests: u64,
    /// Number of pages of file and journal together, which are the first of the device.
    pub pages: u64,
    /// The effect of an fsync.
    pub file_system: FileSystem,
}

struct Clients<D: PageDevice> {
    runtime: Virtual,
    device: Rc<D>,
    expected: Rc<RefCell<Expected>>,
    load: Load,
    issued: Cell<u64>,
    finished: Cell<u64>,
    start_ns: Cell<u64>,
    end_ns: Cell<u64>,
    page_left: WaitQueue,
    /// The file's modification time, in ticks, and whether it is not in the journal yet.
    changed_ticks: Cell<u64>,
    inode_dirty: Cell<bool>,
    journal_next: Cell<u64>,
}

/// Runs `load` and returns requests per virtual second.
///
/// # Errors
/// `InvalidInput` for a load without clients, requests or room; `Corrupt` if a read does not return
/// the content that was written last; those of the device.
pub async fn run<D: PageDevice<Page = Stamp>>(
    runtime: &Virtual,
    device: &Rc<D>,
    expected: &Rc<RefCell<Expected>>,
    load: Load,
    seed: u64,
) -> Result<f64> {
    let file_pages = load.pages.saturating_sub(load.file_system.journal_pages);
    let places = file_pages / u64::from(load.pages_per_request.max(1));
    if load.clients == 0 || load.pages_per_request == 0 || load.requests == 0 || places == 0 {
        return Err(Error::new(ErrorKind::InvalidInput, format!("a load of nothing: {load:?}")));
    }
    let clients = Rc::new(Clients {
        runtime: runtime.clone(),
        device: Rc::clone(device),
        expected: Rc::clone(expected),
        load,
        issued: Cell::new(0),
        finished: Cell::new(0),
        start_ns: Cell::new(runtime.now_ns()),
        end_ns: Cell::new(runtime.now_ns()),
        page_left: WaitQueue::new("a page that another client uses"),
        changed_ticks: Cell::new(u64::MAX),
        inode_dirty: Cell::new(false),
        journal_next: Cell::new(0),
    });
    let client = |client| {
        let clients = Rc::clone(&clients);
        let rng = Rng::split(seed, &format!("client {client}"));
        async move { clients.serve(rng, places).await }
    };
    spawn_all(runtime, "client", (0..load.clients).map(client)).await?;
    let seconds = (clients.end_ns.get() - clients.start_ns.get()) as f64 / 1e9;
    Ok(load.requests as f64 / seconds)
}

impl<D: PageDevice<Page = Stamp>> Clients<D> {
    async fn serve(&self, mut rng: Rng, places: u64) -> Result<()> {
        let pages = u64::from(self.load.pages_per_request);
        let mut contents = Vec::new();
        let mut since_fsync = 0;
        while self.issued.get() < self.load.warm_up + self.load.requests {
            self.issued.set(self.issued.get() + 1);
            let range = PageRange::new(PageNo(self.file_page(rng.below(places) * pages)), pages);
            match self.load.access {
                Access::Read => self.read(range, &mut contents).await?,
                Access::Write { per_fsync } => {
                    self.touch();
                    self.write(range, &mut contents).await?;
                    since_fsync += 1;
                    if Some(since_fsync) == per_fsync {
                        self.fsync(&mut contents).await?;
                        since_fsync = 0;
                    }
                }
            }
            self.finished.set(self.finished.get() + 1);
            self.end_ns.set(self.runtime.now_ns());
            if self.finished.get() == self.load.warm_up {
                self.start_ns.set(self.runtime.now_ns());
            }
        }
        Ok(())
    }

    /// The file has its pages before and after the journal.
    fn file_page(&self, page: u64) -> u64 {
        let first = self.journal_first();
        if page < first { page } else { page + self.load.file_system.journal_pages }
    }

    /// The first page of the journal, at a place that no request of the file crosses.
    fn journal_first(&self) -> u64 {
        let half = (self.load.pages - self.load.file_system.journal_pages) / 2;
        half - half % u64::from(self.load.pages_per_request)
    }

    /// The file is written: its modification time is now.
    fn touch(&self) {
        let now_ticks = self.runtime.now_ns() / self.load.file_system.tick_ns;
        if self.changed_ticks.replace(now_ticks) != now_ticks {
            self.inode_dirty.set(true);
        }
    }

    async fn fsync(&self, contents: &mut Vec<Stamp>) -> Result<()> {
        let changed = self.inode_dirty.replace(false);
        let write = async || self.write_journal(contents).await;
        self.load.file_system.journal.sync(changed, write, async || self.device.flush().await).await
    }

    async fn write_journal(&self, contents: &mut Vec<Stamp>) -> Result<()> {
        let next = self.journal_next.get();
        self.journal_next.set((next + 1) % self.load.file_system.journal_pages);
        self.write(PageRange::new(PageNo(self.journal_first() + next), 1), contents).await
    }

    async fn read(&self, range: PageRange, contents: &mut Vec<Stamp>) -> Result<()> {
        contents.clear();
        contents.resize(range.pages as usize, Stamp::zero());
        self.device.read(range.first, contents, None).await?;
        self.expected.borrow().check(range.first, contents)
    }

    /// Two writes of one page take turns, so that its content is known.
    async fn write(&self, range: PageRange, contents: &mut Vec<Stamp>) -> Result<()> {
        let entered = || self.expected.borrow_mut().enter(range, true).then_some(());
        self.page_left.until(entered).await;
        self.expected.borrow_mut().write(range, contents);
        self.device.write(range.first, contents, None).await?;
        self.expected.borrow_mut().leave(range, true);
        self.page_left.wake_all();
        Ok(())
    }
}
