//! Closed-loop clients, which share the trace and perform its events in order.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tantalum_base::{Limits, PageDevice, PageNo, PageRange, Payload, Result, Stamp, TxId};
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{Runtime, Virtual, spawn_all};
use tantalum_trace::PageEvent;

use super::expected::Expected;
use super::row::Tally;
use super::trace::DeviceTrace;
use super::{Device, DeviceReplayOptions};
use crate::work::Work;

/// State that the clients of one replay share.
pub(super) struct Replay {
    runtime: Virtual,
    trace: Rc<DeviceTrace>,
    device: Rc<Device>,
    limits: Limits,
    expected: Rc<RefCell<Expected>>,
    /// Number of clients that wait for a page in use by others, and the queue that wakes them.
    waiting: Cell<u32>,
    page_left: WaitQueue,
    work: Arc<Work>,
    next: Cell<usize>,
    transactions: bool,
    tally: RefCell<Tally>,
}

/// State that a client keeps from request to request.
#[derive(Default)]
struct Client {
    pages: Vec<Stamp>,
    tx: Option<TxId>,
    /// Number of pages that the transaction wrote.
    tx_pages: u32,
}

impl Replay {
    pub(super) async fn run(
        runtime: &Virtual,
        trace: &Rc<DeviceTrace>,
        device: &Rc<Device>,
        expected: &Rc<RefCell<Expected>>,
        options: &DeviceReplayOptions,
        work: &Arc<Work>,
    ) -> Result<Tally> {
        let replay = Rc::new(Replay {
            runtime: runtime.clone(),
            trace: Rc::clone(trace),
            device: Rc::clone(device),
            limits: device.limits().clone(),
            expected: Rc::clone(expected),
            waiting: Cell::new(0),
            page_left: WaitQueue::new("a page that another request uses"),
            work: Arc::clone(work),
            next: Cell::new(0),
            transactions: options.transactions,
            tally: RefCell::new(Tally::new()?),
        });
        let client = |_| {
            let replay = Rc::clone(&replay);
            async move { replay.serve().await }
        };
        spawn_all(runtime, "client", (0..options.clients).map(client)).await?;
        let tally = replay.tally.borrow().clone();
        Ok(tally)
    }

    async fn serve(&self) -> Result<()> {
        let mut client = Client::default();
        loop {
            let at = self.next.get();
            let Some(event) = self.trace.events.get(at) else { break };
            self.next.set(at + 1);
            self.work.takes(at);
            let start_ns = self.runtime.now_ns();
            match *event {
                PageEvent::Read { page, pages } => self.read(&mut client, page, pages).await?,
                PageEvent::Write { page, pages } => self.write(&mut client, page, pages).await?,
                PageEvent::Trim { page, pages } => self.trim(&mut client, page, pages).await?,
                PageEvent::Commit => self.commit(&mut client).await?,
            }
            let latency_ns = self.runtime.now_ns() - start_ns;
            self.tally.borrow_mut().note(event, latency_ns);
        }
        // Writes after the last commit point belong to the trace as well.
        self.end_transaction(&mut client).await
    }

    /// The parts of a request that each fit into one command of the device, folded into its pages.
    fn ranges(&self, page: PageNo, pages: u32, most: u32) -> impl Iterator<Item = PageRange> {
        let device_pages = self.limits.pages;
        let most = u64::from(most).clamp(1, device_pages);
        let (mut next, end) = (page.0, page.0 + u64::from(pages));
        std::iter::from_fn(move || {
            let first = next % device_pages;
            let len = (end - next).min(most).min(device_pages - first);
            next += len;
            (len > 0).then_some(PageRange::new(PageNo(first), len))
        })
    }

    async fn enter(&self, range: PageRange, write: bool) {
        if self.expected.borrow_mut().enter(range, write) {
            return;
        }
        self.waiting.set(self.waiting.get() + 1);
        let entered = || self.expected.borrow_mut().enter(range, write).then_some(());
        self.page_left.until(entered).await;
        self.waiting.set(self.waiting.get() - 1);
    }

    fn leave(&self, range: PageRange, write: bool) {
        self.expected.borrow_mut().leave(range, write);
        if self.waiting.get() > 0 {
            self.page_left.wake_all();
        }
    }

    async fn read(&self, client: &mut Client, page: PageNo, pages: u32) -> Result<()> {
        for range in self.ranges(page, pages, u32::MAX) {
            // With transactions there is only one client, which never waits for itself.
            if client.tx.is_none() {
                self.enter(range, false).await;
            }
            client.pages.clear();
            client.pages.resize(range.pages as usize, Stamp::zero());
            self.device.read(range.first, &mut client.pages, client.tx).await?;
            self.expected.borrow().check(range.first, &client.pages)?;
            if client.tx.is_none() {
                self.leave(range, false);
            }
        }
        Ok(())
    }

    async fn write(&self, client: &mut Client, page: PageNo, pages: u32) -> Result<()> {
        if self.transactions {
            return self.write_in_transaction(client, page, pages).await;
        }
        for range in self.ranges(page, pages, self.limits.atomic_write_pages_max) {
            self.enter(range, true).await;
            self.expected.borrow_mut().write(range, &mut client.pages);
            self.device.write(range.first, &client.pages, None).await?;
            self.leave(range, true);
        }
        Ok(())
    }

    async fn write_in_transaction(
        &self,
        client: &mut Client,
        page: PageNo,
        pages: u32,
    ) -> Result<()> {
        let most = self.limits.transaction_pages_max;
        let at_once = most.min(self.limits.atomic_write_pages_max);
        for range in self.ranges(page, pages, at_once) {
            if client.tx_pages + range.pages as u32 > most {
                // The transaction is larger than the device allows: it is split, and the row
                // reports that.
                self.tally.borrow_mut().transactions_split += 1;
                self.end_transaction(client).await?;
            }
            let tx = match client.tx {
                Some(tx) => tx,
                None => self.device.begin().await?,
            };
            client.tx = Some(tx);
            client.tx_pages += range.pages as u32;
            self.expected.borrow_mut().write(range, &mut client.pages);
            self.device.write(range.first, &client.pages, Some(tx)).await?;
        }
        Ok(())
    }

    async fn trim(&self, client: &mut Client, page: PageNo, pages: u32) -> Result<()> {
        // A trim is not part of a transaction, and must come after the writes before it.
        self.end_transaction(client).await?;
        for range in self.ranges(page, pages, u32::MAX) {
            self.enter(range, true).await;
            self.expected.borrow_mut().trim(range);
            self.device.trim(range).await?;
            self.leave(range, true);
        }
        Ok(())
    }

    async fn commit(&self, client: &mut Client) -> Result<()> {
        if self.transactions {
            self.end_transaction(client).await
        } else {
            self.device.flush().await
        }
    }

    async fn end_transaction(&self, client: &mut Client) -> Result<()> {
        if let Some(tx) = client.tx.take() {
            self.device.commit(tx).await?;
            self.tally.borrow_mut().transactions += 1;
        }
        client.tx_pages = 0;
        Ok(())
    }
}
