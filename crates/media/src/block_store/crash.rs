//! A wrapper that can lose power. Writes and zeroings that are not durable yet are held back from the inner store. At
//! a power cut each of them lands, vanishes or tears.
//!
//! Killing a process loses nothing that the kernel already holds, so it does not simulate a power cut on a real file.
//! Holding writes back from the kernel until they must be durable does. Chosen operations can fail, or report success
//! without reaching the medium. Transient errors ([`Episodes`]) can also be injected; an operation that fails so
//! changes nothing and is not counted.
use super::{BlockStore, IoBuf, StoreLayer, assert_in_store};
use crate::cut::{CutPlan, Fate};
use crate::episodes::{Episodes, IoClass};
use pending::{Content, PendingWrite, Stage};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::iter;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result, Rng};
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::{Semaphore, WaitQueue};

mod pending;

/// The fate of all writes that were not durable when power was cut. Of a torn write, some 512-byte sectors reach the
/// medium: a random subset, a prefix or a suffix, but never all and never none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutStyle {
    /// All vanish.
    DropAll,
    /// All land, in the order in which they were issued.
    LandAll,
    /// Each has its own random fate; overlapping writes land in random order.
    Random,
    /// Each tears; overlapping writes land in random order.
    TearAll,
}

/// The failure of a write, a zeroing or a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoFaultKind {
    /// `Io`. A failed write may have written any of its blocks. A failed sync makes some of the writes that it covers
    /// durable and loses the others: Linux drops dirty pages that it could not write back, and the next sync
    /// succeeds.
    Io,
    /// `OutOfSpace`: nothing was written. A sync fails as with `Io`.
    NoSpace,
}

/// The blocks of a write that are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostBlocks {
    /// The whole write.
    All,
    /// Its first block.
    First,
}

/// Minimum and maximum duration of operations, in nanoseconds. Durations vary, so operations in flight together may
/// finish in another order than they started. All zero: no delay.
#[derive(Clone, Copy, Debug, Default)]
pub struct CrashOptions {
    /// Seed of the delays.
    pub seed: u64,
    /// Minimum and maximum duration of a read.
    pub read_ns: (u64, u64),
    /// Minimum and maximum duration of a write.
    pub write_ns: (u64, u64),
    /// Minimum and maximum duration of a sync.
    pub sync_ns: (u64, u64),
}

/// A store that can lose power. Clones share one state, so a harness can keep a handle with which to cut power. After
/// a cut all operations fail; wrap the inner store again to continue.
pub struct CrashStore<S, R>(Rc<Core<S, R>>);

struct Core<S, R> {
    inner: S,
    runtime: R,
    options: CrashOptions,
    delays: RefCell<Rng>,
    state: RefCell<Unsynced>,
    operations: Cell<u64>,
    // The number of the operation at which power is cut, and the fate of that operation.
    plan: Cell<Option<(u64, Fate)>>,
    // Operations that fail, by number.
    faults: RefCell<BTreeMap<u64, IoFaultKind>>,
    fault_fates: RefCell<Rng>,
    episodes: Episodes<R>,
    // The blocks that the next write loses.
    lose_next: Cell<Option<LostBlocks>>,
    cut: Cell<bool>,
    cut_reached: WaitQueue,
    // Held while writing to the inner store, so that writes reach it in order.
    inner_order: Semaphore,
}

#[derive(Default)]
struct Unsynced {
    // In issue order.
    pending: Vec<Rc<PendingWrite>>,
    next_number: u64,
    // The fate of the sync that was running when power was cut.
    cut_sync: Option<Fate>,
}

impl<S, R> Clone for CrashStore<S, R> {
    fn clone(&self) -> Self {
        CrashStore(Rc::clone(&self.0))
    }
}

impl<S: BlockStore, R: Runtime> CrashStore<S, R> {
    /// Wraps `inner`, whose content counts as durable.
    pub fn new(runtime: R, inner: S, options: CrashOptions) -> Self {
        let episodes = Episodes::new(runtime.clone());
        CrashStore(Rc::new(Core {
            inner,
            runtime,
            episodes,
            options,
            delays: RefCell::new(Rng::split(options.seed, "crash store delays")),
            state: RefCell::default(),
            operations: Cell::new(0),
            plan: Cell::new(None),
            faults: RefCell::default(),
            fault_fates: RefCell::new(Rng::split(options.seed, "crash store faults")),
            lose_next: Cell::new(None),
            cut: Cell::new(false),
            cut_reached: WaitQueue::new("a power cut"),
            inner_order: Semaphore::new("the order of writes to the inner store", 1),
        }))
    }

    /// Plans a power cut. The chosen operation and all later ones fail with `PowerCut`, and [`cut`](Self::cut) then
    /// decides the fate of the writes in flight. Operations are writes, zeroings and syncs, in the order of their
    /// first polls. Reads change nothing, so a cut at a read equals a cut at the next operation. The fate of a sync
    /// says whether all, none or some of the writes that it covers became durable.
    pub fn plan_cut(&self, plan: CutPlan) {
        self.0.plan.set(Some((self.operations() + plan.after_operations, plan.fate)));
    }

    /// Makes the `nth` operation from now fail, counted from 0 as for [`plan_cut`](Self::plan_cut).
    pub fn fail_operation(&self, nth: u64, kind: IoFaultKind) {
        self.0.faults.borrow_mut().insert(self.operations() + nth, kind);
    }

    /// The transient errors of this store. An operation that fails so is not counted.
    pub fn episodes(&self) -> &Episodes<R> {
        &self.0.episodes
    }

    /// Makes the next write report success (and durability, if requested) although some of its blocks never reach the
    /// medium and keep their old content.
    pub fn lose_next_write(&self, blocks: LostBlocks) {
        self.0.lose_next.set(Some(blocks));
    }

    /// Writes, zeroings and syncs issued so far.
    pub fn operations(&self) -> u64 {
        self.0.operations.get()
    }

    /// Whether power has been cut, by plan or by [`cut`](Self::cut).
    pub fn is_cut(&self) -> bool {
        self.0.cut.get()
    }

    /// Completes when power is cut.
    pub async fn until_cut(&self) {
        self.0.cut_reached.until(|| self.0.cut.get().then_some(())).await;
    }

    /// Writes that are not durable yet, whether in flight or returned.
    pub fn pending_writes(&self) -> usize {
        self.0.state.borrow().pending.len()
    }

    /// The inner store, which holds the durable content.
    pub fn inner(&self) -> &S {
        &self.0.inner
    }

    /// Cuts power. The fate of every write that is not durable is applied to the inner store, even if the future of
    /// the write was dropped. Afterwards the inner store holds the content that the next open finds.
    pub async fn cut(&self, rng: &mut Rng, style: CutStyle) -> Result<()> {
        let core = &self.0;
        self.cut_power();
        let _order = core.inner_order.acquire(1).await;
        let (mut pending, cut_sync) = {
            let mut state = core.state.borrow_mut();
            (std::mem::take(&mut state.pending), state.cut_sync.take())
        };
        if let Some(fate) = cut_sync {
            pending = self.finish_sync(pending, fate, rng).await?;
        }
        if matches!(style, CutStyle::Random | CutStyle::TearAll) {
            rng.shuffle(&mut pending);
        }
        for write in &pending {
            let fate = write.fate.get().unwrap_or_else(|| match style {
                CutStyle::DropAll => Fate::Vanish,
                CutStyle::LandAll => Fate::Land,
                CutStyle::TearAll => Fate::Tear,
                CutStyle::Random => [Fate::Land, Fate::Vanish, Fate::Tear][rng.below(3) as usize],
            });
            match fate {
                Fate::Vanish => {}
                Fate::Land => write.land(&core.inner).await?,
                Fate::Tear => write.tear(&core.inner, rng).await?,
            }
        }
        core.inner.sync().await
    }

    /// Lands the writes that the sync had already made durable when power was cut; returns the others.
    async fn finish_sync(
        &self,
        pending: Vec<Rc<PendingWrite>>,
        fate: Fate,
        rng: &mut Rng,
    ) -> Result<Vec<Rc<PendingWrite>>> {
        let mut rest = Vec::new();
        for write in pending {
            let covered = write.stage.get() == Stage::Returned
                && match fate {
                    Fate::Land => true,
                    Fate::Vanish => false,
                    Fate::Tear => rng.chance(0.5),
                };
            if covered {
                write.land(&self.0.inner).await?;
            } else {
                rest.push(write);
            }
        }
        Ok(rest)
    }

    fn cut_power(&self) {
        self.0.cut.set(true);
        self.0.cut_reached.wake_all();
    }

    fn check_power(&self, what: &str) -> Result<()> {
        if self.0.cut.get() {
            return Err(Error::new(ErrorKind::PowerCut, format!("power was cut: {what} failed")));
        }
        Ok(())
    }

    /// Fails if an episode of transient errors covers this range.
    async fn pass(&self, class: IoClass, offset: u64, bytes: u64) -> Result<()> {
        self.0.episodes.pass(class, iter::once(offset..offset + bytes)).await
    }

    /// Counts an operation. Returns its fate if power is cut at it, and its fault if it is to fail.
    fn count_operation(&self) -> (Option<Fate>, Option<IoFaultKind>) {
        let number = self.0.operations.get();
        self.0.operations.set(number + 1);
        let fault = self.0.faults.borrow_mut().remove(&number);
        let Some((_, fate)) = self.0.plan.get().filter(|(at, _)| *at == number) else {
            return (None, fault);
        };
        self.cut_power();
        (Some(fate), None)
    }

    /// Ends a failing write: any of its blocks may have been written, or none with `NoSpace`.
    fn fail_write(&self, write: &PendingWrite, kind: IoFaultKind) -> Error {
        let mut fates = self.0.fault_fates.borrow_mut();
        write.lose(|_| kind == IoFaultKind::NoSpace || fates.chance(0.5));
        write.stage.set(Stage::Returned);
        fault(kind, "a write")
    }

    /// Ends a failing sync: some of the writes that it covers become durable, the others are dropped.
    async fn fail_sync(&self, covered: &[Rc<PendingWrite>], kind: IoFaultKind) -> Result<()> {
        for write in covered.iter().filter(|write| write.stage.get() == Stage::Returned) {
            if self.0.fault_fates.borrow_mut().chance(0.5) {
                write.land(&self.0.inner).await?;
            }
            write.stage.set(Stage::Durable);
        }
        self.forget(|write| write.stage.get() == Stage::Durable);
        Err(fault(kind, "a sync"))
    }

    /// Waits for a random time between the two bounds.
    async fn delay(&self, (least_ns, greatest_ns): (u64, u64)) {
        if greatest_ns > 0 {
            let spread_ns = greatest_ns.saturating_sub(least_ns) + 1;
            let delay_ns = least_ns + self.0.delays.borrow_mut().below(spread_ns);
            self.0.runtime.sleep(delay_ns).await;
        }
    }

    /// Registers a write in flight.
    fn issue(&self, offset: u64, bytes: u64, content: Content) -> Rc<PendingWrite> {
        let mut state = self.0.state.borrow_mut();
        let number = state.next_number;
        state.next_number += 1;
        let write = Rc::new(PendingWrite::new(number, offset, bytes, content));
        state.pending.push(Rc::clone(&write));
        write
    }

    /// Forgets writes that are durable now.
    fn forget(&self, durable: impl Fn(&PendingWrite) -> bool) {
        self.0.state.borrow_mut().pending.retain(|write| !durable(write));
    }

    /// Writes that have returned, in issue order.
    fn returned(&self) -> Vec<Rc<PendingWrite>> {
        let state = self.0.state.borrow();
        state.pending.iter().filter(|write| write.stage.get() == Stage::Returned).cloned().collect()
    }

    async fn make_durable(
        &self,
        write: &Rc<PendingWrite>,
        offset: u64,
        buf: IoBuf,
    ) -> Result<IoBuf> {
        let core = &self.0;
        let _order = core.inner_order.acquire(1).await;
        self.check_power("a durable write")?;
        let buf = if write.is_whole() {
            core.inner.write(offset, buf, true).await?
        } else {
            write.land(&core.inner).await?;
            core.inner.sync().await?;
            buf
        };
        self.check_power("a durable write")?;
        // Writes that had returned before this one was issued must not land over it.
        for older in core.state.borrow().pending.iter() {
            if older.number < write.number && older.stage.get() == Stage::Returned {
                older.supersede(offset, buf.len());
            }
        }
        self.forget(|other| other.number == write.number);
        Ok(buf)
    }
}

fn fault(kind: IoFaultKind, what: &str) -> Error {
    let (kind, why) = match kind {
        IoFaultKind::Io => (ErrorKind::Io, "input/output error"),
        IoFaultKind::NoSpace => (ErrorKind::OutOfSpace, "no space left"),
    };
    Error::new(kind, format!("{what} failed: {why} (injected)"))
}

impl<S: BlockStore, R: Runtime> StoreLayer for CrashStore<S, R> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.0.inner
    }

    async fn read(&self, offset: u64, buf: IoBuf) -> Result<IoBuf> {
        assert_in_store(self.inner().bytes(), offset, buf.len() as u64);
        self.check_power("a read")?;
        self.pass(IoClass::Read, offset, buf.len() as u64).await?;
        self.delay(self.0.options.read_ns).await;
        self.check_power("a read")?;
        // Collect these before the inner read: a sync may land such a write meanwhile.
        let mut newer = self.returned();
        newer.retain(|write| write.overlaps(offset, buf.len()));
        let mut buf = self.0.inner.read(offset, buf).await?;
        self.check_power("a read")?;
        newer.iter().for_each(|write| write.overlay(offset, &mut buf));
        Ok(buf)
    }

    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf> {
        assert_in_store(self.inner().bytes(), offset, buf.len() as u64);
        self.check_power("a write")?;
        self.pass(IoClass::Write, offset, buf.len() as u64).await?;
        let (fate, fault) = self.count_operation();
        let write = self.issue(offset, buf.len() as u64, Content::Bytes(buf.to_vec()));
        write.fate.set(fate);
        if let Some(lost) = self.0.lose_next.take() {
            write.lose(|block| lost == LostBlocks::All || block == 0);
        }
        self.check_power("a write")?;
        self.delay(self.0.options.write_ns).await;
        self.check_power("a write")?;
        if let Some(kind) = fault {
            return Err(self.fail_write(&write, kind));
        }
        if durable {
            return self.make_durable(&write, offset, buf).await;
        }
        write.stage.set(Stage::Returned);
        Ok(buf)
    }

    async fn sync(&self) -> Result<()> {
        self.check_power("a sync")?;
        self.0.episodes.pass(IoClass::Sync, iter::empty()).await?;
        let (fate, fault) = self.count_operation();
        self.0.state.borrow_mut().cut_sync = fate;
        self.check_power("a sync")?;
        let covered = self.returned();
        self.delay(self.0.options.sync_ns).await;
        let _order = self.0.inner_order.acquire(1).await;
        if let Some(kind) = fault {
            self.check_power("a sync")?;
            return self.fail_sync(&covered, kind).await;
        }
        for write in &covered {
            self.check_power("a sync")?;
            // Another sync may have landed it already, and newer writes may have landed over it since.
            if write.stage.get() == Stage::Returned {
                write.land(&self.0.inner).await?;
            }
        }
        self.check_power("a sync")?;
        self.0.inner.sync().await?;
        self.check_power("a sync")?;
        covered.iter().for_each(|write| write.stage.set(Stage::Durable));
        self.forget(|write| write.stage.get() == Stage::Durable);
        Ok(())
    }

    async fn zero(&self, offset: u64, bytes: u64) -> Result<()> {
        assert_in_store(self.inner().bytes(), offset, bytes);
        self.check_power("a zeroing")?;
        self.pass(IoClass::Reset, offset, bytes).await?;
        let (fate, fault) = self.count_operation();
        let write = self.issue(offset, bytes, Content::Zeros);
        write.fate.set(fate);
        self.check_power("a zeroing")?;
        self.delay(self.0.options.write_ns).await;
        self.check_power("a zeroing")?;
        if let Some(kind) = fault {
            return Err(self.fail_write(&write, kind));
        }
        write.stage.set(Stage::Returned);
        Ok(())
    }

    /// A zeroing, so a power cut may leave any part unchanged. The inner store regains no space before the zeroing
    /// lands.
    async fn give_room_back(&self, offset: u64, bytes: u64) -> Result<bool> {
        StoreLayer::zero(self, offset, bytes).await.map(|()| true)
    }

    async fn prepare(&self, offset: u64, bytes: u64) -> Result<()> {
        self.check_power("a preparation")?;
        self.pass(IoClass::Write, offset, bytes).await?;
        self.0.inner.prepare(offset, bytes).await
    }
}

#[cfg(test)]
mod tests;
