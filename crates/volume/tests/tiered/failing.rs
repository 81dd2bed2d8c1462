//! A store that fails as it is told, over memory, in virtual time.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_media::IoBuf;
use tantalum_media::StoreLayer;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::{Runtime, Virtual};

/// How long an operation takes, in nanoseconds.
const OPERATION_NS: u64 = 30_000;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fails {
    Nothing,
    /// Reads, with `Io`.
    Reads,
    /// Writes, zeroings and syncs, with this.
    Changes(ErrorKind),
    /// Everything, with `Io`: the device is gone.
    Everything,
}

/// A store that fails as it is told. Clones are one store.
#[derive(Clone)]
pub struct Failing(Rc<Core>);

struct Core {
    memory: MemoryStore,
    runtime: Virtual,
    fails: Cell<Fails>,
    /// Operations until everything fails.
    left: Cell<Option<u64>>,
    /// When an operation failed, in nanoseconds.
    failed_ns: RefCell<Vec<u64>>,
}

impl Failing {
    /// Over `memory`, where nothing fails yet.
    pub fn new(runtime: &Virtual, memory: MemoryStore) -> Failing {
        Failing(Rc::new(Core {
            memory,
            runtime: runtime.clone(),
            fails: Cell::new(Fails::Nothing),
            left: Cell::new(None),
            failed_ns: RefCell::default(),
        }))
    }

    pub fn fail(&self, what: Fails) {
        self.0.fails.set(what);
    }

    /// Fails everything after so many operations.
    pub fn vanish_after(&self, operations: u64) {
        self.0.left.set(Some(operations));
    }

    /// When operations failed.
    pub fn failed_ns(&self) -> Vec<u64> {
        self.0.failed_ns.borrow().clone()
    }

    pub fn has_vanished(&self) -> bool {
        self.0.fails.get() == Fails::Everything
    }

    async fn operation(&self, changes: bool) -> Result<()> {
        let core = &self.0;
        match core.left.get() {
            Some(0) => self.fail(Fails::Everything),
            left => core.left.set(left.map(|left| left - 1)),
        }
        core.runtime.sleep(OPERATION_NS).await;
        let failure = match core.fails.get() {
            Fails::Everything => Some(ErrorKind::Io),
            Fails::Reads if !changes => Some(ErrorKind::Io),
            Fails::Changes(kind) if changes => Some(kind),
            _ => None,
        };
        let Some(kind) = failure else { return Ok(()) };
        core.failed_ns.borrow_mut().push(core.runtime.now_ns());
        Err(Error::new(kind, "injected"))
    }
}

impl StoreLayer for Failing {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0.memory
    }

    async fn read(&self, offset: u64, buf: IoBuf) -> Result<IoBuf> {
        self.operation(false).await?;
        tantalum_media::BlockStore::read(&self.0.memory, offset, buf).await
    }

    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf> {
        self.operation(true).await?;
        tantalum_media::BlockStore::write(&self.0.memory, offset, buf, durable).await
    }

    async fn sync(&self) -> Result<()> {
        self.operation(true).await
    }

    async fn zero(&self, offset: u64, bytes: u64) -> Result<()> {
        self.operation(true).await?;
        tantalum_media::BlockStore::zero(&self.0.memory, offset, bytes).await
    }
}
