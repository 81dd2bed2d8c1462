//! Closed-loop clients, as `fio` has them: random reads or writes of a file, each client with one
//! request outstanding, and an fsync after every so many writes.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Payload, Result, Rng, Stamp};
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{Runtime, Virtual, spawn_all};

use tantalum_replay::device_replay::Expected;

/// What the clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Random reads, each checked.
    Read,
    /// Random writes, with an fsync of its own after as many of a client's writes; `None`: never.
    Write {
        /// Writes from fsync to fsync.
        per_fsync: Option<u32>,
    },
}

/// What an fsync is on the host: a file system that journals its metadata, as ext4 and XFS do.
///
/// A write gives the file a new time of change, which the kernel reads off a clock that moves on
/// with every tick. Where the time did change, an fsync writes the inode to the journal: a block,
/// a flush, a commit record that must not be there before it, and another flush. Where it did
/// not, there is nothing to journal, and an fsync is one flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// A tick of the kernel's clock.
    pub tick_ns: u64,
    /// Pages of the journal, which lies in the middle of the file's; it is written round and round.
    pub journal_pages: u64,
}

/// Section 4.2: Linux 3.5.0. Chosen: the 250 ticks a second of the distribution that came with it
/// (Ubuntu 12.10), and a journal of 32 MiB.
pub const FILE_SYSTEM: FileSystem = FileSystem { tick_ns: 4_000_000, journal_pages: 8_192 };

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Reads or writes.
    pub access: Access,
    /// Clients.
    pub clients: u32,
    /// Pages of a request, which starts at a multiple of them.
    pub pages_per_request: u32,
    /// Requests before the clock starts.
    pub warm_up: u64,
    /// Requests that are measured, all clients together.
    pub requests: u64,
    /// File and journal take the first pages of the device, as many as this.
    pub pages: u64,
    /// What an fsync does.
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
    /// The file's time of change, in ticks, and whether the journal lacks it.
    changed_ticks: Cell<u64>,
    inode_dirty: Cell<bool>,
    journal_next: Cell<u64>,
}

/// Runs `load` and returns requests per virtual second.
///
/// # Errors
/// `InvalidInput` for a load without clients, requests or room; `Corrupt` for a read of anything
/// but what was written last; the device's own.
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

    /// The file lies around the journal.
    fn file_page(&self, page: u64) -> u64 {
        let first = self.journal_first();
        if page < first { page } else { page + self.load.file_system.journal_pages }
    }

    /// A place where no request of the file crosses it.
    fn journal_first(&self) -> u64 {
        let half = (self.load.pages - self.load.file_system.journal_pages) / 2;
        half - half % u64::from(self.load.pages_per_request)
    }

    /// The file is written: its time of change is now.
    fn touch(&self) {
        let now_ticks = self.runtime.now_ns() / self.load.file_system.tick_ns;
        if self.changed_ticks.replace(now_ticks) != now_ticks {
            self.inode_dirty.set(true);
        }
    }

    async fn fsync(&self, contents: &mut Vec<Stamp>) -> Result<()> {
        if self.inode_dirty.replace(false) {
            self.write_journal(contents).await?;
            self.device.flush().await?;
            self.write_journal(contents).await?;
        }
        self.device.flush().await
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

    /// Two writes of one page take turns, so that it is known what it holds.
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
