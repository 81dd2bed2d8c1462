//! A store over memory with configurable failures, in virtual time.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result};
use tantalum_media::IoBuf;
use tantalum_media::StoreLayer;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::{Runtime, Virtual};

/// The duration of an operation, in nanoseconds.
const OPERATION_NS: u64 = 30_000;

/// The operations that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fails {
    Nothing,
    /// Reads, with `Io`.
    Reads,
    /// Reads that touch a byte from the first on, up to the second, likewise.
    ReadsOf(u64, u64),
    /// Reads of the second half of each unit of this many bytes: one of two members of a stripe is
    /// missing.
    ReadsOfMember(u64),
    /// Syncs and durable writes, likewise.
    Syncs,
    /// Writes, zeroings and syncs, with this kind of error.
    Changes(ErrorKind),
    /// Everything, with `Io`: the device is gone.
    Everything,
    /// No operation ends.
    Hangs,
}

/// An operation of a store.
#[derive(Clone, Copy)]
enum Operation {
    /// A read of the bytes from the first on, up to the second.
    Read(u64, u64),
    Change {
        durable: bool,
    },
}

impl Fails {
    /// Whether this operation fails with `Io`.
    fn concerns(self, operation: Operation) -> bool {
        match (self, operation) {
            (Fails::Reads, Operation::Read(..)) => true,
            (Fails::ReadsOf(first, end), Operation::Read(from, to)) => from < end && first < to,
            (Fails::ReadsOfMember(stripe), Operation::Read(from, to)) => {
                let blocks = (from..to).step_by(PAGE_BYTES);
                blocks.into_iter().any(|byte| byte % stripe >= stripe / 2)
            }
            (Fails::Syncs, Operation::Change { durable }) => durable,
            _ => false,
        }
    }
}

/// A store with configurable failures. Clones share one store.
#[derive(Clone)]
pub struct Failing(Rc<Core>);

struct Core {
    memory: MemoryStore,
    runtime: Virtual,
    fails: Cell<Fails>,
    /// Time that each zeroed page takes besides, in nanoseconds.
    zero_page_ns: Cell<u64>,
    /// Operations until everything fails.
    left: Cell<Option<u64>>,
    /// The times of failed operations, in nanoseconds.
    failed_ns: RefCell<Vec<u64>>,
}

impl Failing {
    /// Over `memory`, without failures at first.
    pub fn new(runtime: &Virtual, memory: MemoryStore) -> Failing {
        Failing(Rc::new(Core {
            memory,
            runtime: runtime.clone(),
            fails: Cell::new(Fails::Nothing),
            zero_page_ns: Cell::new(0),
            left: Cell::new(None),
            failed_ns: RefCell::default(),
        }))
    }

    pub fn fail(&self, what: Fails) {
        self.0.fails.set(what);
    }

    /// From now on each zeroed page takes this long, in nanoseconds: as on a disk that writes zeros.
    pub fn slow_zeros(&self, page_ns: u64) {
        self.0.zero_page_ns.set(page_ns);
    }

    /// Lets everything fail after this many operations.
    pub fn vanish_after(&self, operations: u64) {
        self.0.left.set(Some(operations));
    }

    /// The times of failed operations.
    pub fn failed_ns(&self) -> Vec<u64> {
        self.0.failed_ns.borrow().clone()
    }

    pub fn has_vanished(&self) -> bool {
        self.0.fails.get() == Fails::Everything
    }

    async fn operation(&self, operation: Operation) -> Result<()> {
        let core = &self.0;
        match core.left.get() {
            Some(0) => self.fail(Fails::Everything),
            left => core.left.set(left.map(|left| left - 1)),
        }
        core.runtime.sleep(OPERATION_NS).await;
        if core.fails.get() == Fails::Hangs {
            std::future::pending::<()>().await;
        }
        let failure = match core.fails.get() {
            Fails::Everything => Some(ErrorKind::Io),
            Fails::Changes(kind) if !matches!(operation, Operation::Read(..)) => Some(kind),
            fails => fails.concerns(operation).then_some(ErrorKind::Io),
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
        self.operation(Operation::Read(offset, offset + buf.len() as u64)).await?;
        tantalum_media::BlockStore::read(&self.0.memory, offset, buf).await
    }

    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf> {
        self.operation(Operation::Change { durable }).await?;
        tantalum_media::BlockStore::write(&self.0.memory, offset, buf, durable).await
    }

    async fn sync(&self) -> Result<()> {
        self.operation(Operation::Change { durable: true }).await
    }

    async fn zero(&self, offset: u64, bytes: u64) -> Result<()> {
        let pages = bytes.div_ceil(PAGE_BYTES as u64);
        self.0.runtime.sleep(pages * self.0.zero_page_ns.get()).await;
        self.operation(Operation::Change { durable: false }).await?;
        tantalum_media::BlockStore::zero(&self.0.memory, offset, bytes).await
    }
}
