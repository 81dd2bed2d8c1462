//! The engine: trees of rows on a device.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Result};
use tantalum_buffer::PoolStatistics;
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::Semaphore;

use super::commits::{Commits, DeviceCommits, TreeHomes};
use super::drives::Drives;
use super::homes::{Homed, Homes};
use super::layout::Layout;
use super::locks::Locks;
use super::options::DatabaseOptions;
use super::statistics::EngineStatistics;
use super::transaction::Transaction;
use super::turn::kept_pages_max;
use super::way::Way;
use super::{HomePool, pool_of};
use crate::btree::{
    Content, Lsn, SPACE_PAGE, Space, TreePage, TreePages, find, free_pages, scan_leaf,
};
use crate::records::{Codec, RecordDevice};
use crate::redo::{Block, Header, Headers, Log, LogEnd};
use crate::values::{Key, Tree, Value};

impl<V: Value> Homed for Rc<TreePage<V>> {
    type Record = Block<V>;

    fn blank() -> Self {
        let content = Content::Free { next: None };
        Rc::new(TreePage { number: SPACE_PAGE, lsn: Lsn(0), device_pages: 1, content })
    }

    fn number(&self) -> PageNo {
        self.number
    }

    fn lsn(&self) -> Lsn {
        self.lsn
    }

    fn record(&self) -> Rc<Block<V>> {
        Rc::new(Block::Page(Rc::clone(self)))
    }

    fn from_record(record: &Rc<Block<V>>) -> Option<Self> {
        match &**record {
            Block::Page(page) => Some(Rc::clone(page)),
            Block::Header(_) | Block::Log(_) => None,
        }
    }
}

type TreePool<R, D, C, V, W> = HomePool<R, D, C, Rc<TreePage<V>>, Commits<D, C, V>, W>;

/// A database on a device, or two. See the [module](super).
pub struct Database<R: Runtime, D: PageDevice, V: Value, C, W: Way>
where
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    pub(super) runtime: R,
    pub(super) options: DatabaseOptions<W>,
    /// The device that has the headers.
    pub(super) records: RecordDevice<D, C>,
    pub(super) headers: Headers,
    pub(super) commits: Rc<Commits<D, C, V>>,
    homes: Rc<TreeHomes<R, D, C, V, W>>,
    pub(super) pool: TreePool<R, D, C, V, W>,
    pub(super) locks: Locks,
    /// Pages that have not changed since this LSN are logged whole at their next change: the log since the start of the last
    /// checkpoint contains nothing of them.
    pub(super) whole_before: Cell<Lsn>,
    /// Held while pages are changed, by one transaction at a time.
    pub(super) commit_turn: Semaphore,
    /// The frames that commits keep before their turn.
    pub(super) kept_pages: Semaphore,
    pub(super) checkpoint_turn: Semaphore,
    pub(super) structure_version: Cell<u64>,
    pub(super) transactions: Cell<u64>,
    pub(super) counts: RefCell<EngineStatistics>,
}

impl<R, D, V, C, W> Database<R, D, V, C, W>
where
    R: Runtime,
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
    W: Way,
{
    /// Makes an empty database on the device, which becomes its only content, and starts its tasks.
    ///
    /// # Errors
    /// Those of [`DatabaseOptions::check`]; `InvalidInput` if the device already holds a database; those of the device.
    pub async fn create(
        runtime: &R,
        device: &Rc<D>,
        codec: &Rc<C>,
        options: DatabaseOptions<W>,
    ) -> Result<Rc<Self>> {
        Self::create_on(runtime, &Drives::new(device, codec), options).await
    }

    /// Like [`create`](Self::create), on one device or two.
    ///
    /// # Errors
    /// As for `create`.
    pub async fn create_on(
        runtime: &R,
        drives: &Drives<D, C>,
        options: DatabaseOptions<W>,
    ) -> Result<Rc<Self>> {
        let (limits, log_apart) = drives.limits();
        options.check_on(limits, log_apart)?;
        for device in drives.each() {
            if Headers::read(device).await?.is_some() {
                let context = "the device holds a database; trim its first two pages to give it up";
                return Err(Error::new(ErrorKind::InvalidInput, context));
            }
        }
        for device in drives.each() {
            device.trim(PageRange::new(PageNo(0), device.limits().pages)).await?;
        }
        drives.flush().await?;
        let (position, next) = (0, Lsn(1));
        let shape = options.shape(drives.database());
        let first = Header { number: 1, position, next, shape };
        let end = LogEnd { position, next };
        let engine = Self::with(runtime, drives, options, Headers::new(first), end)?;
        let device_pages = options.pages.device_pages_per_page;
        let used = u64::from(options.trees) + 1;
        let page =
            |number, content| Rc::new(TreePage { number, lsn: Lsn(0), device_pages, content });
        let space = page(SPACE_PAGE, Content::Space(Space { used, free: None }));
        let roots = (0..options.trees).map(|tree| page(Tree(tree).root(), Content::empty()));
        engine.homes.load(std::iter::once(space).chain(roots)).await?;
        // A log's own device records which database the log belongs to; that never changes.
        if let Some(log) = drives.log_apart() {
            Headers::new(first).write(log, first).await?;
        }
        engine.headers.write(&engine.records, first).await?;
        engine.start();
        Ok(engine)
    }

    /// The in-memory parts of a database whose log continues at `end`.
    pub(super) fn with(
        runtime: &R,
        drives: &Drives<D, C>,
        options: DatabaseOptions<W>,
        headers: Headers,
        end: LogEnd,
    ) -> Result<Rc<Self>> {
        let layout = Layout::new(&options.pages, drives.log_place(options.log_pages));
        let (form, whole_before) = (options.pages.form, Cell::new(Lsn(0)));
        if form.logs_whole_pages() {
            whole_before.set(end.next);
        }
        let commits = Rc::new(match form.has_log() {
            true => Commits::Log(Log::new(drives.log(), layout.log(), end)),
            false => Commits::Device(DeviceCommits::new(
                drives.data().limits().transaction_pages_max,
                options.pages.device_pages_per_page,
            )),
        });
        let homes = Homes::new(runtime, drives.data(), (options.pages, layout), &commits);
        let kept_pages_max = kept_pages_max(options.pages.pool_pages);
        let pool = pool_of(runtime, &homes, &options.pages, kept_pages_max)?;
        Ok(Rc::new(Database {
            runtime: runtime.clone(),
            options,
            records: drives.data(),
            headers,
            commits,
            homes,
            pool,
            locks: Locks::default(),
            whole_before,
            commit_turn: Semaphore::new("its turn to commit", 1),
            kept_pages: Semaphore::new("frames to keep its pages", kept_pages_max.into()),
            checkpoint_turn: Semaphore::new("its turn to make a checkpoint", 1),
            structure_version: Cell::new(0),
            transactions: Cell::new(0),
            counts: RefCell::default(),
        }))
    }

    /// Starts the tasks that write commits, pages and checkpoints.
    pub(super) fn start(self: &Rc<Self>) {
        self.pool.start();
        let (commits, homes) = (Rc::clone(&self.commits), Rc::clone(&self.homes));
        self.runtime.spawn("commits", async move { commits.run(&homes).await });
        let engine = Rc::clone(self);
        self.runtime.spawn("checkpoints", async move { engine.run_checkpoints().await });
    }

    /// Begins a transaction.
    pub fn begin(self: &Rc<Self>) -> Transaction<R, D, V, C, W> {
        Transaction::new(Rc::clone(self))
    }

    /// The last committed row with `key`. If the power fails now, that commit may still be lost.
    ///
    /// # Errors
    /// `InvalidInput` if there is no such tree; `Corrupt` if a page is torn or damaged; those of the device.
    pub async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<V>> {
        self.check(tree)?;
        find(self, tree.root(), key).await
    }

    /// At most `most` rows with keys from `from` on, before `to` if it is given, in the order of their keys. The rows of one leaf
    /// are as of one moment.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn scan(
        &self,
        tree: Tree,
        from: &[u8],
        to: Option<&[u8]>,
        most: usize,
    ) -> Result<Vec<(Key, V)>> {
        self.check(tree)?;
        let (mut rows, mut next) = (Vec::new(), Some(Key::from(from)));
        while let Some(from) = next.take().filter(|_| rows.len() < most) {
            let left = most - rows.len();
            next = scan_leaf(self, tree.root(), (&from, to), left, &mut rows).await?;
        }
        Ok(rows)
    }

    /// Writes every page home, ends the tasks and refuses further commits. The next opening has nothing to repeat, except commits
    /// that were in progress and had not reached a block of the log yet.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub async fn close(&self) -> Result<()> {
        let turn = self.commit_turn.acquire(1).await;
        let written = self.checkpoint().await;
        drop(turn);
        self.stop().await;
        written
    }

    /// Ends the tasks without writing pages home: committed changes are there at the next opening. Once this returns, only reads use
    /// the device.
    pub async fn stop(&self) {
        self.commits.close().await;
        let _turn = self.checkpoint_turn.acquire(1).await;
        self.homes.close().await;
        self.pool.stop();
    }

    /// The counters since it was opened.
    pub fn statistics(&self) -> EngineStatistics {
        let log = self.commits.log_counts();
        EngineStatistics {
            pages: self.homes.statistics(),
            log_pages: log.pages_written,
            log_flushes: log.flushes,
            device_commits: self.commits.device_commits(),
            ..*self.counts.borrow()
        }
    }

    /// Number of free pages of the database.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn free_pages(&self) -> Result<u64> {
        let _turn = self.commit_turn.acquire(1).await;
        free_pages(self, self.options.pages.database_pages).await
    }

    /// The counters of the buffer pool.
    pub fn pool_statistics(&self) -> PoolStatistics {
        self.pool.statistics()
    }

    pub(super) fn homes(&self) -> &Rc<TreeHomes<R, D, C, V, W>> {
        &self.homes
    }

    pub(super) fn check(&self, tree: Tree) -> Result<()> {
        if tree.0 >= self.options.trees {
            let context = format!("tree {} of {}", tree.0, self.options.trees);
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        Ok(())
    }
}

impl<R, D, V, C, W> TreePages<V> for Database<R, D, V, C, W>
where
    R: Runtime,
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
    W: Way,
{
    async fn page(&self, page: PageNo) -> Result<Rc<TreePage<V>>> {
        self.pool.read(page).await
    }

    fn structure_version(&self) -> u64 {
        self.structure_version.get()
    }
}
