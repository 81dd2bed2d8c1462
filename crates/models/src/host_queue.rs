//! The cost of the link to a host: a command queue of bounded depth over a bus that transfers one
//! command at a time. For simulated devices only; a real device has a real link.
//!
//! Commands that change something reach the device in the order in which they were issued; each one
//! waits until it has arrived and all earlier ones have arrived. Without barriers nothing else
//! keeps a host's order (DuraSSD, section 3.3), and a write must not end after the commit that was
//! issued after it (TxCache, section III-A). A flush that reaches the device and a read inside of a
//! transaction keep their places, too; other reads may overtake.
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use tantalum_base::{
    Error, ErrorKind, Extent, Limits, PAGE_BYTES, PageDevice, PageNo, PageRange, Result, TxId,
};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::sync::Semaphore;
use tantalum_runtime::{DeviceKind, LifeCycle, Opening, Runtime, forward_life_cycle};

use crate::issue_order::IssueOrder;

/// Costs of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostQueueOptions {
    /// Maximum number of commands in flight (32 with SATA's native command queue).
    pub depth: u32,
    /// Latency of every command in addition to its transfer; the latencies of commands overlap.
    pub command_ns: u64,
    /// Additional latency for each page of a read or write.
    pub page_ns: u64,
    /// Additional latency of a write before the device has accepted it; the latencies of writes
    /// overlap.
    pub write_ns: u64,
    /// Time for which every command occupies the link in addition to its data.
    pub link_command_ns: u64,
    /// Link rate in bytes a second; transfers are serial, in both directions together.
    pub link_bytes_per_second: u64,
    /// Time of a flush in addition to the device's own work.
    pub flush_ns: u64,
    /// A flush is not queued: it waits for all earlier commands and delays all later ones.
    pub flush_alone: bool,
    /// Whether flushes reach the device. If not, as on a file system mounted without write
    /// barriers, a flush only costs the host its call. It then guarantees what the device
    /// guarantees for any acknowledged write: nothing if that is `volatile`.
    pub barrier: bool,
}

impl HostQueueOptions {
    /// A link with SATA's native command queue and this rate; transfers are its only cost.
    pub const fn at_rate(link_bytes_per_second: u64) -> Self {
        HostQueueOptions {
            depth: 32,
            command_ns: 0,
            page_ns: 0,
            write_ns: 0,
            link_command_ns: 0,
            link_bytes_per_second,
            flush_ns: 0,
            flush_alone: true,
            barrier: true,
        }
    }

    /// Checks the settings.
    pub fn check(&self) -> Result<()> {
        if self.depth == 0 || self.link_bytes_per_second == 0 {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("a link needs a queue depth and a rate of at least 1: {self:?}"),
            ));
        }
        Ok(())
    }
}

/// A device behind a link. It is a device itself.
pub struct HostQueue<R, D> {
    runtime: R,
    device: Rc<D>,
    options: HostQueueOptions,
    slots: Semaphore,
    order: IssueOrder,
    /// Time until which the link is busy.
    link_busy_until_ns: Cell<u64>,
    page_transfer_ns: u64,
}

impl<R: Runtime, D: PageDevice> HostQueue<R, D> {
    /// Puts `device` behind a link.
    ///
    /// # Errors
    /// `InvalidInput` if the depth or the rate is 0.
    pub fn new(runtime: R, device: Rc<D>, options: HostQueueOptions) -> Result<Self> {
        options.check()?;
        let page_ns = PAGE_BYTES as u64 * 1_000_000_000;
        Ok(HostQueue {
            runtime,
            device,
            options,
            slots: Semaphore::new("a slot of the command queue", u64::from(options.depth)),
            order: IssueOrder::new(),
            link_busy_until_ns: Cell::new(0),
            page_transfer_ns: page_ns.div_ceil(options.link_bytes_per_second),
        })
    }

    /// The device behind the link.
    pub fn device(&self) -> &Rc<D> {
        &self.device
    }

    /// The options of the link.
    pub fn options(&self) -> &HostQueueOptions {
        &self.options
    }

    /// Reserves the link for the data of `pages` pages from the time at which it is free. Returns
    /// the end of the transfer.
    fn occupy_link(&self, pages: usize) -> u64 {
        let busy_ns = self.options.link_command_ns + self.page_transfer_ns * pages as u64;
        let end_ns = self.runtime.now_ns().max(self.link_busy_until_ns.get()) + busy_ns;
        self.link_busy_until_ns.set(end_ns);
        end_ns
    }

    /// The latency of a command in addition to its time on the link. The latencies of commands
    /// overlap.
    fn latency_ns(&self, pages: usize) -> u64 {
        self.options.command_ns + self.options.page_ns * pages as u64
    }

    /// Transfers `command`, with the data of `pages` pages, to the device, and waits for its end. `latency_ns` is its latency
    /// in addition to the link.
    async fn send<T>(&self, pages: usize, latency_ns: u64, command: impl Future<Output = T>) -> T {
        // Taken before any wait: this is the time of issue.
        let place = self.order.place();
        let _slot = self.slots.acquire(1).await;
        let arrived_ns = self.occupy_link(pages) + latency_ns;
        self.runtime.sleep_until(arrived_ns).await;
        place.hand_over(pin!(command)).await
    }

    /// Sends a write of `pages` pages.
    async fn send_write<T>(&self, pages: usize, command: impl Future<Output = T>) -> T {
        self.send(pages, self.latency_ns(pages) + self.options.write_ns, command).await
    }

    /// Sends a command without data.
    async fn send_bare<T>(&self, command: impl Future<Output = T>) -> T {
        self.send(0, self.latency_ns(0), command).await
    }
}

impl<R: Runtime, D: LifeCycle> LifeCycle for HostQueue<R, D> {
    forward_life_cycle!(device);

    fn metrics(&self, out: &mut Readings) {
        self.device.metrics(out);
    }

    fn validate(&self) {
        self.device.validate();
    }
}

/// How a device behind its link is made and opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linked<K> {
    /// The device.
    pub below: K,
    /// The link.
    pub link: HostQueueOptions,
}

impl<R: Runtime, M, K: DeviceKind<R, M>> DeviceKind<R, M> for Linked<K> {
    type Device = HostQueue<R, K::Device>;
    type Kept = K::Kept;
    type Report = K::Report;

    const HAS_STORED_ENERGY: bool = K::HAS_STORED_ENERGY;

    async fn format(&self, on: Opening<R, M, K::Kept>) -> Result<Rc<Self::Device>> {
        let runtime = on.runtime.clone();
        let device = self.below.format(on).await?;
        HostQueue::new(runtime, device, self.link).map(Rc::new)
    }

    async fn open(&self, on: Opening<R, M, K::Kept>) -> Result<(Rc<Self::Device>, K::Report)> {
        let runtime = on.runtime.clone();
        let (device, report) = self.below.open(on).await?;
        Ok((Rc::new(HostQueue::new(runtime, device, self.link)?), report))
    }

    async fn on_stored_energy(
        &self,
        device: Rc<Self::Device>,
        on: Opening<R, M, K::Kept>,
    ) -> Result<()> {
        self.below.on_stored_energy(Rc::clone(&device.device), on).await
    }
}

impl<R: Runtime, D: PageDevice> PageDevice for HostQueue<R, D> {
    type Page = D::Page;

    fn limits(&self) -> &Limits {
        self.device.limits()
    }

    async fn read(&self, first: PageNo, out: &mut [D::Page], tx: Option<TxId>) -> Result<()> {
        let place = tx.map(|_| self.order.place());
        let _slot = self.slots.acquire(1).await;
        let pages = out.len();
        self.runtime.sleep(self.latency_ns(pages)).await;
        let read = pin!(self.device.read(first, out, tx));
        match place {
            Some(place) => place.hand_over(read).await?,
            None => read.await?,
        }
        let arrived_ns = self.occupy_link(pages);
        self.runtime.sleep_until(arrived_ns).await;
        Ok(())
    }

    async fn write(&self, first: PageNo, pages: &[D::Page], tx: Option<TxId>) -> Result<()> {
        self.send_write(pages.len(), self.device.write(first, pages, tx)).await
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, D::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.send_write(pages.len(), self.device.write_scattered(pages, ended)).await
    }

    async fn flush(&self) -> Result<()> {
        if !self.options.barrier {
            self.runtime.sleep(self.options.flush_ns).await;
            return Ok(());
        }
        let place = self.order.place();
        let slots = if self.options.flush_alone { self.options.depth } else { 1 };
        let _slots = self.slots.acquire(u64::from(slots)).await;
        place.hand_over(pin!(self.device.flush())).await?;
        self.runtime.sleep(self.options.flush_ns).await;
        Ok(())
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.send_bare(self.device.trim(range)).await
    }

    fn extent(&self, range: PageRange) -> Extent {
        self.device.extent(range)
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        self.send_bare(self.device.share(pairs)).await
    }

    async fn begin(&self) -> Result<TxId> {
        self.send_bare(self.device.begin()).await
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        self.send_bare(self.device.commit(tx)).await
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        self.send_bare(self.device.abort(tx)).await
    }

    async fn until_released(&self, range: PageRange) {
        self.device.until_released(range).await;
    }
}
