//! The worst disk that a durability allows. `OnAck`: all completed writes survive. `OnFlush`: a prefix of the unflushed
//! writes survives. `Volatile`: each unflushed page is old, new or torn.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PageDevice, PageNo, PageRange, Payload, Result, Rng, TxId,
};
use tantalum_runtime::yield_now;

/// Contents that survive together.
type Change<P> = Vec<(PageNo, P)>;

pub struct WorstDisk<P> {
    durable: RefCell<Vec<P>>,
    now: RefCell<Vec<P>>,
    /// Writes that were not flushed, in order.
    pending: RefCell<Vec<Change<P>>>,
    /// Commands until the power is cut; disks of one machine count together.
    left: Rc<Cell<u64>>,
    /// Commands until one fails, after which the disk continues.
    failing: Cell<Option<u64>>,
    limits: Limits,
}

impl<P: Payload> WorstDisk<P> {
    pub fn new(durability: Durability, pages: u64) -> Rc<Self> {
        WorstDisk::with_transactions_of(6, durability, pages)
    }

    /// A disk whose transactions hold this many pages.
    pub fn with_transactions_of(
        transaction_pages_max: u32,
        durability: Durability,
        pages: u64,
    ) -> Rc<Self> {
        let limits = Limits {
            page_bytes: 4096,
            pages,
            atomic_write_pages_max: 5,
            transaction_pages_max,
            transactions_max: 0,
            share_pairs_max: 8,
            durability,
        };
        let blank = || RefCell::new(vec![P::zero(); pages as usize]);
        let (left, pending) = (Rc::new(Cell::new(u64::MAX)), RefCell::default());
        let failing = Cell::new(None);
        Rc::new(WorstDisk { durable: blank(), now: blank(), pending, left, failing, limits })
    }

    /// Another disk of the same machine: they lose power together.
    pub fn beside(&self, pages: u64) -> Rc<Self> {
        let other = WorstDisk::new(self.limits.durability, pages);
        let mut other = Rc::into_inner(other).expect("nobody else has it");
        other.left = Rc::clone(&self.left);
        Rc::new(other)
    }

    pub fn cut_after(&self, commands: u64) {
        self.left.set(commands);
    }

    /// One command fails, after this many.
    pub fn fail_after(&self, commands: u64) {
        self.failing.set(Some(commands));
    }

    /// Whether that command was reached.
    pub fn has_failed(&self) -> bool {
        self.failing.get() == Some(0)
    }

    pub fn is_off(&self) -> bool {
        self.left.get() == 0
    }

    /// Keeps only the content that survived.
    pub fn power_on(&self, rng: &mut Rng) {
        let pending = self.pending.take();
        let mut durable = self.durable.borrow_mut();
        let prefix = rng.below(pending.len() as u64 + 1) as usize;
        for (at, change) in pending.into_iter().enumerate() {
            for (page, content) in change {
                let old = &mut durable[page.index()];
                match self.limits.durability {
                    Durability::OnAck => *old = content,
                    Durability::OnFlush if at < prefix => *old = content,
                    Durability::OnFlush => {}
                    Durability::Volatile => match rng.below(8) {
                        0..4 => *old = content,
                        4 => *old = content.torn(),
                        _ => {}
                    },
                }
            }
        }
        self.now.borrow_mut().clone_from(&durable);
        self.left.set(u64::MAX);
    }

    /// The process was killed, and the power stayed on: all writes are there, and may still be lost later.
    pub fn killed(&self) {
        self.left.set(u64::MAX);
    }

    /// Counts one command down to the cut.
    async fn step(&self) -> Result<()> {
        yield_now().await;
        let left = self.left.get().saturating_sub(1);
        self.left.set(left);
        if let Some(commands) = self.failing.get().filter(|commands| *commands > 0) {
            self.failing.set(Some(commands - 1));
            if commands == 1 {
                return Err(Error::new(ErrorKind::Io, "the disk failed once"));
            }
        }
        match left {
            0 => Err(Error::new(ErrorKind::PowerCut, "the power was cut")),
            _ => Ok(()),
        }
    }

    async fn change(&self, change: Change<P>) -> Result<()> {
        self.step().await?;
        for (page, content) in &change {
            self.now.borrow_mut()[page.index()] = content.clone();
        }
        self.pending.borrow_mut().push(change);
        // The write may be there although nobody was told.
        self.step().await?;
        if self.limits.durability == Durability::OnAck {
            self.settle();
        }
        Ok(())
    }

    fn settle(&self) {
        self.pending.borrow_mut().clear();
        self.durable.borrow_mut().clone_from(&self.now.borrow());
    }
}

impl<P: Payload> PageDevice for WorstDisk<P> {
    type Page = P;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [P], _: Option<TxId>) -> Result<()> {
        self.limits.check_range(PageRange::new(first, out.len() as u64))?;
        yield_now().await;
        if self.is_off() {
            return Err(Error::new(ErrorKind::PowerCut, "the power was cut"));
        }
        let now = self.now.borrow();
        out.clone_from_slice(&now[first.index()..first.index() + out.len()]);
        Ok(())
    }

    async fn write(&self, first: PageNo, pages: &[P], _: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, pages.len() as u64);
        self.limits.check_write(range)?;
        self.change(range.iter().zip(pages.iter().cloned()).collect()).await
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, P)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.limits.check_scattered(&pages)?;
        self.step().await?;
        for (page, content) in pages {
            self.now.borrow_mut()[page.index()] = content;
        }
        // All or nothing: here it is all, and the cut before it is nothing.
        self.settle();
        ended();
        self.step().await
    }

    async fn flush(&self) -> Result<()> {
        self.step().await?;
        self.settle();
        self.step().await
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        self.change(range.iter().map(|page| (page, P::zero())).collect()).await
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        self.limits.check_share(pairs)?;
        self.step().await?;
        self.settle();
        for (left, right) in pairs {
            let mut now = self.now.borrow_mut();
            if now[right.index()] == P::zero() {
                return Err(Error::new(ErrorKind::Unmapped, format!("{right} has no content")));
            }
            now[left.index()] = now[right.index()].clone();
        }
        // All or nothing: here it is all, and the cut before it is nothing.
        self.settle();
        self.step().await
    }
}
