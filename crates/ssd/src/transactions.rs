//! Open transactions. Until the commit nobody else sees their pages, and nobody else changes them
//! ([`Holders`]). A transaction that gets `Conflict` may continue or abort.
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, FastMap, PageNo, PageRange, Payload, Result, TxId};

use crate::holders::Holders;
use crate::staging::{StagedPages, Staging};

/// The open transactions of a device.
pub(crate) struct Transactions<P> {
    open: BTreeMap<TxId, Transaction<P>>,
    pub(crate) holders: Holders,
    next: u64,
    transactions_max: u32,
    pages_max: u32,
    /// Number of open transactions that are commits in one call. The host did not open them, and
    /// they end by themselves.
    single_writes: u32,
}

/// One transaction.
struct Transaction<P> {
    /// The pages it holds, in the order of their first writes.
    held: Vec<PageNo>,
    /// The content of the held pages. Empty for a single write, which keeps its contents itself.
    written: FastMap<PageNo, Written<P>>,
    /// The pages whose contents are in memory.
    in_memory: Vec<PageNo>,
    /// Pages allocated to stage its contents.
    staged: Vec<StagedPages>,
    /// Number of page writes so far.
    writes: u64,
    /// Its commit is in flight: it accepts only reads.
    committing: bool,
    /// It is a commit in one call.
    is_single_write: bool,
}

/// The content that a transaction wrote to a page.
struct Written<P> {
    /// The number of the write and its content, until it is staged.
    memory: Option<(u64, P)>,
    /// The page in which this or an older content is staged.
    place: Option<PageNo>,
    /// Whether the content is zeros; only used if it is not in memory.
    is_zeros: bool,
}

/// The current content of a page that a transaction wrote, or its place.
pub(crate) enum Content<P> {
    /// The content itself.
    Memory(P),
    /// Staged in this page.
    Staged(PageNo),
    /// Only zeros.
    Zeros,
}

/// A content that is being moved from memory to its staging page.
pub(crate) struct Moving<P> {
    page: PageNo,
    write: u64,
    pub place: PageNo,
    pub content: P,
}

impl<P: Payload> Transaction<P> {
    fn new() -> Self {
        Transaction {
            held: Vec::new(),
            written: FastMap::default(),
            in_memory: Vec::new(),
            staged: Vec::new(),
            writes: 0,
            committing: false,
            is_single_write: false,
        }
    }

    fn put(&mut self, page: PageNo, content: P) {
        self.writes += 1;
        let memory = Some((self.writes, content));
        let Some(written) = self.written.get_mut(&page) else {
            self.written.insert(page, Written { memory, place: None, is_zeros: false });
            self.held.push(page);
            self.in_memory.push(page);
            return;
        };
        if written.memory.is_none() {
            self.in_memory.push(page);
        }
        written.memory = memory;
    }

    /// Drops from memory the contents that are zeros.
    fn forget_zeros(&mut self) {
        let zeros = P::zero();
        let Transaction { in_memory, written, .. } = self;
        in_memory.retain(|page| {
            let Some(written) = written.get_mut(page) else { return false };
            written.is_zeros = written.memory.take_if(|(_, content)| *content == zeros).is_some();
            !written.is_zeros
        });
    }
}

impl<P: Payload> Transactions<P> {
    pub(crate) fn new(transactions_max: u32, pages_max: u32) -> Self {
        Transactions {
            open: BTreeMap::new(),
            holders: Holders::new(),
            next: 1,
            transactions_max,
            pages_max,
            single_writes: 0,
        }
    }

    /// Opens a transaction.
    pub(crate) fn begin(&mut self) -> Result<TxId> {
        self.check_supported()?;
        let open = self.open.len() as u32 - self.single_writes;
        if open >= self.transactions_max {
            return Err(Error::new(
                ErrorKind::TooManyTransactions,
                format!(
                    "{open} transactions are open, which is the limit (device.transactions_max)"
                ),
            ));
        }
        Ok(self.insert(Transaction::new()))
    }

    /// Opens a transaction for a commit in one call, already in flight, which holds `pages`. It
    /// does not count towards the limit of open transactions.
    pub(crate) fn begin_commit(&mut self, pages: Vec<PageNo>) -> Result<TxId> {
        self.check_supported()?;
        self.holders.check(pages.iter().copied(), None)?;
        self.single_writes += 1;
        let tx = TxId(self.next);
        self.holders.take(tx, pages.iter().copied());
        let held = pages;
        let single_write =
            Transaction { held, committing: true, is_single_write: true, ..Transaction::new() };
        Ok(self.insert(single_write))
    }

    fn check_supported(&self) -> Result<()> {
        match self.transactions_max {
            0 => Err(Error::new(ErrorKind::Unsupported, "this device has no transactions")),
            _ => Ok(()),
        }
    }

    fn insert(&mut self, transaction: Transaction<P>) -> TxId {
        let tx = TxId(self.next);
        self.next += 1;
        self.open.insert(tx, transaction);
        tx
    }

    fn get_mut(&mut self, tx: TxId) -> Result<&mut Transaction<P>> {
        let open = self.open.get_mut(&tx).filter(|transaction| !transaction.committing);
        open.ok_or_else(|| unknown(tx))
    }

    /// Writes `pages`, which are distinct, in `tx`: all of them or, on error, none.
    pub(crate) fn write(
        &mut self,
        tx: TxId,
        pages: impl Iterator<Item = (PageNo, P)> + Clone,
    ) -> Result<()> {
        let pages_max = self.pages_max as usize;
        let numbers = pages.clone().map(|(page, _)| page);
        self.holders.check(numbers.clone(), Some(tx))?;
        let transaction = self.get_mut(tx)?;
        let new = numbers.clone().filter(|page| !transaction.written.contains_key(page)).count();
        if transaction.held.len() + new > pages_max {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("transaction {tx} would write more than {pages_max} pages"),
            ));
        }
        for (page, content) in pages {
            transaction.put(page, content);
        }
        self.holders.take(tx, numbers);
        Ok(())
    }

    /// Number of pages of `tx` whose contents are in memory.
    pub(crate) fn in_memory(&self, tx: TxId) -> usize {
        self.open.get(&tx).map_or(0, |transaction| transaction.in_memory.len())
    }

    /// The pages of `range` that `tx` wrote, each with its index in the range.
    pub(crate) fn written_in(
        &self,
        tx: TxId,
        range: PageRange,
    ) -> Result<Vec<(usize, Content<P>)>> {
        let transaction = self.open.get(&tx).ok_or_else(|| unknown(tx))?;
        let own = |(at, page): (usize, PageNo)| {
            let Written { memory, place, is_zeros } = transaction.written.get(&page)?;
            match memory {
                Some((_, content)) => Some((at, Content::Memory(content.clone()))),
                None if *is_zeros => Some((at, Content::Zeros)),
                None => place.map(|place| (at, Content::Staged(place))),
            }
        };
        Ok(range.iter().enumerate().filter_map(own).collect())
    }

    /// Fails if `tx` is not open.
    pub(crate) fn check_open(&self, tx: TxId) -> Result<()> {
        self.open.contains_key(&tx).then_some(()).ok_or_else(|| unknown(tx))
    }

    /// Marks the commit of `tx` as in flight until `end` or `call_off_commit`. The transaction
    /// still holds its pages. Returns the written pages; `None` if some are staged.
    pub(crate) fn start_commit(&mut self, tx: TxId) -> Result<Option<Vec<(PageNo, P)>>> {
        let transaction = self.get_mut(tx)?;
        transaction.committing = true;
        if !transaction.staged.is_empty() {
            return Ok(None);
        }
        let content = |page: &PageNo| {
            let (_, content) = transaction.written.get(page)?.memory.as_ref()?;
            Some((*page, content.clone()))
        };
        Ok(Some(transaction.held.iter().filter_map(content).collect()))
    }

    /// Puts `pages` in the memory of `tx`, which holds them and whose commit is in flight.
    pub(crate) fn fill(&mut self, tx: TxId, pages: Vec<(PageNo, P)>) {
        let Some(transaction) = self.open.get_mut(&tx) else { return };
        transaction.held.clear();
        for (page, content) in pages {
            transaction.put(page, content);
        }
    }

    /// Returns the pages of `tx` that are in memory, each with its place in `staging`. They stay in
    /// memory until [`end_staging`](Self::end_staging).
    pub(crate) fn begin_staging(
        &mut self,
        tx: TxId,
        staging: &Rc<Staging>,
    ) -> Result<Vec<Moving<P>>> {
        let transaction = self.open.get_mut(&tx).ok_or_else(|| unknown(tx))?;
        transaction.forget_zeros();
        let Transaction { in_memory, written, staged, .. } = transaction;
        let is_new = |page: &&PageNo| written.get(*page).is_some_and(|it| it.place.is_none());
        let new = staging.take(in_memory.iter().filter(is_new).count() as u64)?;
        let mut places = new.iter();
        let mut moving = Vec::with_capacity(in_memory.len());
        for page in in_memory.iter() {
            let Some(written) = written.get_mut(page) else { continue };
            let place = written.place.or_else(|| places.next());
            written.place = place;
            if let (Some(place), Some((write, content))) = (place, &written.memory) {
                moving.push(Moving { page: *page, write: *write, place, content: content.clone() });
            }
        }
        drop(places);
        staged.push(new);
        Ok(moving)
    }

    /// Records that `moved` is staged, and drops it from memory unless it was written again
    /// meanwhile.
    pub(crate) fn end_staging(&mut self, tx: TxId, moved: &[Moving<P>]) {
        let Some(transaction) = self.open.get_mut(&tx) else { return };
        for Moving { page, write, .. } in moved {
            let Some(written) = transaction.written.get_mut(page) else { continue };
            if written.memory.as_ref().is_some_and(|(of, _)| of == write) {
                (written.memory, written.is_zeros) = (None, false);
            }
        }
        let written = &transaction.written;
        transaction
            .in_memory
            .retain(|page| written.get(page).is_some_and(|it| it.memory.is_some()));
    }

    /// The pages of `tx`, which are all staged, each with its place; and the ranges of zeros.
    pub(crate) fn outcome(&self, tx: TxId) -> (Vec<(PageNo, PageNo)>, Vec<PageRange>) {
        let (mut pairs, mut zeros) = (Vec::new(), Vec::new());
        let Some(transaction) = self.open.get(&tx) else { return (pairs, Vec::new()) };
        for page in &transaction.held {
            match transaction.written.get(page) {
                Some(Written { is_zeros: true, .. }) => zeros.push(*page),
                Some(Written { place: Some(place), .. }) => pairs.push((*page, *place)),
                _ => {}
            }
        }
        zeros.sort_unstable();
        let follows = |one: &PageNo, next: &PageNo| next.0 == one.0 + 1;
        let runs = zeros.chunk_by(follows).map(|run| PageRange::new(run[0], run.len() as u64));
        (pairs, runs.collect())
    }

    /// Reopens `tx` after its commit, if still in flight, was abandoned.
    pub(crate) fn call_off_commit(&mut self, tx: TxId) {
        self.open.entry(tx).and_modify(|transaction| transaction.committing = false);
    }

    /// Ends `tx`, if it is open, and drops its content.
    pub(crate) fn end(&mut self, tx: TxId) {
        let Some(transaction) = self.open.remove(&tx) else { return };
        self.single_writes -= u32::from(transaction.is_single_write);
        self.holders.release(&transaction.held);
    }

    /// Ends `tx`, unless its commit is in flight.
    pub(crate) fn abort(&mut self, tx: TxId) -> Result<()> {
        self.get_mut(tx)?;
        self.end(tx);
        Ok(())
    }
}

fn unknown(tx: TxId) -> Error {
    let context = format!(
        "transaction {tx} is not open: it was never begun, is being committed, or has ended"
    );
    Error::new(ErrorKind::UnknownTransaction, context)
}
