//! Does what one client asks of a device, and drops what it left open.
use crate::request::{Answer, Request};
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{
    Error, ErrorKind, FastSet, PageBuf, PageDevice, PageRange, Payload, Result, TxId,
};

/// A client's part in a device: its transactions are its own.
pub struct Service<D> {
    device: Rc<D>,
    open: RefCell<FastSet<TxId>>,
}

impl<D: PageDevice<Page = PageBuf>> Service<D> {
    /// For a client that has nothing open yet.
    pub fn new(device: Rc<D>) -> Self {
        Service { device, open: RefCell::default() }
    }

    /// The device.
    pub fn device(&self) -> &Rc<D> {
        &self.device
    }

    /// Does what is asked.
    ///
    /// # Errors
    /// The device's; `UnknownTransaction` where the client has no such transaction open.
    pub async fn handle(&self, request: Request) -> Result<Answer> {
        let device = &*self.device;
        let mut answer = Answer::default();
        match request {
            Request::Read { first, pages, tx } => {
                self.check_open(tx)?;
                // Checked before memory is taken: the number may come from anywhere.
                device.limits().check_range(PageRange::new(first, pages as u64))?;
                answer.pages = vec![PageBuf::zero(); pages];
                device.read(first, &mut answer.pages, tx).await?;
            }
            Request::Write { first, pages, tx } => {
                self.check_open(tx)?;
                device.write(first, &pages, tx).await?;
            }
            Request::WriteScattered(pages) => device.write_scattered(pages, || ()).await?,
            Request::Flush => device.flush().await?,
            Request::Trim(range) => device.trim(range).await?,
            Request::Share(pairs) => device.share(&pairs).await?,
            Request::Begin => {
                answer.tx = device.begin().await?;
                self.open.borrow_mut().insert(answer.tx);
            }
            Request::Commit(tx) => {
                self.check_open(Some(tx))?;
                let committed = device.commit(tx).await;
                // However it ended, so did the transaction.
                self.open.borrow_mut().remove(&tx);
                committed?;
            }
            Request::Abort(tx) => {
                self.check_open(Some(tx))?;
                self.open.borrow_mut().remove(&tx);
                device.abort(tx).await?;
            }
        }
        Ok(answer)
    }

    /// Aborts what transactions the client left open.
    pub async fn abort_open(&self) {
        let left: Vec<TxId> = self.open.borrow_mut().drain().collect();
        for tx in left {
            // Nobody is left to be told; a device that cannot abort drops it when it closes.
            let _ = self.device.abort(tx).await;
        }
    }

    fn check_open(&self, tx: Option<TxId>) -> Result<()> {
        match tx {
            Some(tx) if !self.open.borrow().contains(&tx) => {
                let context = format!("transaction {} is not open", tx.0);
                Err(Error::new(ErrorKind::UnknownTransaction, context))
            }
            _ => Ok(()),
        }
    }
}
