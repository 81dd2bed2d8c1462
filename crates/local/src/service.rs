//! Performs the requests of one client on a device, and aborts the transactions that it left open.
use crate::open::{Bounds, OpenTransactions};
use crate::request::{Answer, Request};
use std::rc::Rc;
use tantalum_base::{PageBuf, PageDevice, PageNo, PageRange, Payload, Result, TxId};
use tantalum_runtime::join_all;

/// A device as used by one client, with that client's transactions.
pub struct Service<D> {
    device: Rc<D>,
    open: OpenTransactions,
}

impl<D: PageDevice<Page = PageBuf>> Service<D> {
    /// The service of a client that has the device for itself, and no open transactions yet.
    pub fn new(device: Rc<D>) -> Self {
        Service { device, open: OpenTransactions::new(None) }
    }

    /// The service of one client among several.
    pub(crate) fn bounded(device: Rc<D>, bounds: Bounds) -> Self {
        Service { device, open: OpenTransactions::new(Some(bounds)) }
    }

    /// The device.
    pub fn device(&self) -> &Rc<D> {
        &self.device
    }

    /// Performs a request.
    ///
    /// # Errors
    /// The device's; `UnknownTransaction` if the client has no such transaction open.
    pub async fn handle(&self, request: Request) -> Result<Answer> {
        let device = &*self.device;
        let mut answer = Answer::default();
        let _using = request.tx().map(|tx| self.open.using(tx)).transpose()?;
        match request {
            Request::Read { first, pages, tx } => {
                // Checked before memory is allocated: the number may come from an untrusted client.
                device.limits().check_range(PageRange::new(first, pages as u64))?;
                answer.pages = vec![PageBuf::zero(); pages];
                device.read(first, &mut answer.pages, tx).await?;
            }
            Request::Write { first, pages, tx } => device.write(first, &pages, tx).await?,
            Request::WriteScattered(pages) => device.write_scattered(pages, || ()).await?,
            Request::Flush => device.flush().await?,
            Request::Trim(range) => device.trim(range).await?,
            Request::Share(pairs) => device.share(&pairs).await?,
            Request::Begin => {
                let place = self.open.place()?;
                answer.tx = device.begin().await?;
                self.open.begun(answer.tx, place);
            }
            Request::Commit(tx) => {
                let committed = device.commit(tx).await;
                // The transaction has ended, even if the commit failed.
                self.open.ended(tx);
                committed?;
            }
            Request::Abort(tx) => {
                let aborted = device.abort(tx).await;
                self.open.ended(tx);
                aborted?;
            }
        }
        Ok(answer)
    }

    /// Reads `pages` concurrently, as `tx` sees them. They are in ascending order and need not be
    /// contiguous.
    ///
    /// # Errors
    /// As [`handle`](Self::handle).
    pub async fn read_each(&self, pages: Vec<PageNo>, tx: Option<TxId>) -> Result<Vec<PageBuf>> {
        let runs = pages.chunk_by(|page, next| page.0 + 1 == next.0);
        let read = async |run: &[PageNo]| {
            self.handle(Request::Read { first: run[0], pages: run.len(), tx }).await
        };
        let answers = join_all(runs.map(read).collect()).await?;
        Ok(answers.into_iter().flat_map(|answer| answer.pages).collect())
    }

    /// Aborts the transactions that the client left open.
    pub async fn abort_open(&self) {
        for tx in self.open.end_all() {
            // An error here could not be reported. A device that cannot abort drops the transaction
            // when it closes.
            let _ = self.device.abort(tx).await;
        }
    }

    /// Waits until a transaction is idle, and returns the time at which it may be aborted if it is
    /// not used before.
    pub(crate) async fn idle_until_ns(&self) -> u64 {
        self.open.idle_until_ns().await
    }

    /// Aborts transactions that reached the maximum idle time, and returns their number.
    pub(crate) async fn abort_idle(&self) -> usize {
        let idle = self.open.give_up_idle();
        for tx in &idle {
            // The next command of the transaction reports this; a device that cannot abort drops
            // the transaction when it closes.
            let _ = self.device.abort(*tx).await;
            self.open.ended(*tx);
        }
        idle.len()
    }
}
