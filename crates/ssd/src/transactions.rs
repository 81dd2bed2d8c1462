//! Open transactions: pages that nobody else sees until the commit.
//!
//! Conflicts: the first of two open transactions to write a page holds it; the other is refused
//! with `Conflict` and may go on or abort. A write outside of transactions is never refused; a
//! later commit overwrites it.
//!
//! A transaction holds its pages until its commit has ended: until then readers see the old
//! content, and must not write that back over the commit.
use std::collections::BTreeMap;
use tantalum_base::{Error, ErrorKind, FastMap, PageNo, PageRange, Payload, Result, TxId};

/// The open transactions of a device.
pub(crate) struct Transactions<P> {
    open: BTreeMap<TxId, Transaction<P>>,
    holders: FastMap<PageNo, TxId>,
    next: u64,
    transactions_max: u32,
    pages_max: u32,
}

/// One transaction.
struct Transaction<P> {
    /// The pages it holds, in the order of their first writes.
    held: Vec<PageNo>,
    /// What it wrote to these pages; empty for a single write, which has its contents itself.
    contents: Vec<P>,
    /// Index in `held` of each page.
    index: FastMap<PageNo, u32>,
    /// Its commit is in flight: it takes no command but reads.
    committing: bool,
}

impl<P: Payload> Transactions<P> {
    pub(crate) fn new(transactions_max: u32, pages_max: u32) -> Self {
        Transactions {
            open: BTreeMap::new(),
            holders: FastMap::default(),
            next: 1,
            transactions_max,
            pages_max,
        }
    }

    /// Opens a transaction.
    pub(crate) fn begin(&mut self) -> Result<TxId> {
        if self.transactions_max == 0 {
            return Err(Error::new(ErrorKind::Unsupported, "this device has no transactions"));
        }
        if self.open.len() as u32 >= self.transactions_max {
            return Err(Error::new(
                ErrorKind::TooManyTransactions,
                format!("{} transactions are open, which is the limit", self.open.len()),
            ));
        }
        let tx = TxId(self.next);
        self.next += 1;
        let (held, contents, index) = (Vec::new(), Vec::new(), FastMap::default());
        self.open.insert(tx, Transaction { held, contents, index, committing: false });
        Ok(tx)
    }

    /// Opens a transaction for a single write of `pages`, with its commit already in flight.
    pub(crate) fn begin_commit(&mut self, pages: Vec<PageNo>) -> Result<TxId> {
        let tx = self.begin()?;
        let free = self.check_conflicts(pages.iter().copied(), None);
        free.inspect_err(|_| self.end(tx))?;
        self.holders.extend(pages.iter().map(|page| (*page, tx)));
        let transaction = self.get_mut(tx)?;
        transaction.held = pages;
        transaction.committing = true;
        Ok(tx)
    }

    /// Fails with `Conflict` where a transaction other than `own` holds one of the pages.
    fn check_conflicts(
        &self,
        mut pages: impl Iterator<Item = PageNo>,
        own: Option<TxId>,
    ) -> Result<()> {
        let foreign = pages.find_map(|page| {
            let holder = *self.holders.get(&page)?;
            (Some(holder) != own).then_some((page, holder))
        });
        let Some((page, holder)) = foreign else { return Ok(()) };
        let context = format!("page {page} is held by open transaction {holder}");
        Err(Error::new(ErrorKind::Conflict, context))
    }

    fn get_mut(&mut self, tx: TxId) -> Result<&mut Transaction<P>> {
        let open = self.open.get_mut(&tx).filter(|transaction| !transaction.committing);
        open.ok_or_else(|| unknown(tx))
    }

    /// Writes `pages`, which are distinct, in `tx`: all of them or, with an error, none.
    pub(crate) fn write(
        &mut self,
        tx: TxId,
        pages: impl Iterator<Item = (PageNo, P)> + Clone,
    ) -> Result<()> {
        let pages_max = self.pages_max as usize;
        let numbers = pages.clone().map(|(page, _)| page);
        self.check_conflicts(numbers.clone(), Some(tx))?;
        let transaction = self.get_mut(tx)?;
        let new = numbers.clone().filter(|page| !transaction.index.contains_key(page)).count();
        if transaction.held.len() + new > pages_max {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("transaction {tx} would write more than {pages_max} pages"),
            ));
        }
        for (page, content) in pages {
            match transaction.index.get(&page) {
                Some(index) => transaction.contents[*index as usize] = content,
                None => {
                    transaction.index.insert(page, transaction.held.len() as u32);
                    transaction.held.push(page);
                    transaction.contents.push(content);
                }
            }
        }
        for page in numbers {
            self.holders.insert(page, tx);
        }
        Ok(())
    }

    /// What `tx` wrote in `range`, each page with its index there.
    pub(crate) fn written_in(&self, tx: TxId, range: PageRange) -> Result<Vec<(usize, P)>> {
        let transaction = self.open.get(&tx).ok_or_else(|| unknown(tx))?;
        let own = |(at, page): (usize, PageNo)| {
            let index = *transaction.index.get(&page)?;
            Some((at, transaction.contents[index as usize].clone()))
        };
        Ok(range.iter().enumerate().filter_map(own).collect())
    }

    /// Marks the commit of `tx` as in flight until `end` or `call_off_commit`; returns what it
    /// wrote. The transaction goes on holding its pages.
    pub(crate) fn start_commit(&mut self, tx: TxId) -> Result<Vec<(PageNo, P)>> {
        let transaction = self.get_mut(tx)?;
        transaction.committing = true;
        let contents = transaction.contents.iter().cloned();
        Ok(transaction.held.iter().copied().zip(contents).collect())
    }

    /// Reopens `tx` after its commit, if still in flight, was given up.
    pub(crate) fn call_off_commit(&mut self, tx: TxId) {
        self.open.entry(tx).and_modify(|transaction| transaction.committing = false);
    }

    /// Ends `tx`, if it is open, and drops what it wrote.
    pub(crate) fn end(&mut self, tx: TxId) {
        let Some(transaction) = self.open.remove(&tx) else { return };
        for page in &transaction.held {
            self.holders.remove(page);
        }
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
