//! The device: each command waits for its allowance, then for its round trip.
use super::meter::Meter;
use super::{Allowance, Blocks, MeteredOptions};
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{
    Durability, Limits, PAGE_BYTES, PageDevice, PageNo, PageRange, Payload, Result, TxId,
};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::{DeviceCounters, DeviceKind, LifeCycle, Opening, Runtime};

/// Maximum length of a write in pages.
const WRITE_PAGES_MAX: u32 = 256;

/// A device that a provider runs.
pub struct Metered<R, P> {
    runtime: R,
    options: MeteredOptions,
    limits: Limits,
    blocks: Blocks<P>,
    reads: Rc<Meter>,
    writes: Rc<Meter>,
    counters: Cell<DeviceCounters>,
}

impl<R: Runtime, P: Payload> Metered<R, P> {
    /// A device over `blocks`, which may already hold data.
    ///
    /// # Errors
    /// `InvalidInput` if it has no page, or if a limit is 0.
    pub fn new(runtime: R, options: MeteredOptions, blocks: Blocks<P>) -> Result<Self> {
        options.check()?;
        let limits = Limits {
            page_bytes: PAGE_BYTES as u32,
            pages: options.pages,
            atomic_write_pages_max: WRITE_PAGES_MAX,
            transaction_pages_max: 0,
            transactions_max: 0,
            share_pairs_max: 0,
            durability: Durability::OnAck,
        };
        let (reads, writes) = match options.allowance {
            Allowance::Shared(rate) => {
                let both = Rc::new(Meter::new(rate));
                (Rc::clone(&both), both)
            }
            Allowance::Apart { reads, writes } => {
                (Rc::new(Meter::new(reads)), Rc::new(Meter::new(writes)))
            }
        };
        let counters = Cell::default();
        Ok(Metered { runtime, options, limits, blocks, reads, writes, counters })
    }

    /// The options that it was made with.
    pub fn options(&self) -> &MeteredOptions {
        &self.options
    }

    /// Charges a command of `pages` pages to `meter`, and waits until it is done.
    async fn serve(&self, meter: &Meter, pages: u64, round_trip_ns: u64) {
        let commands = pages.div_ceil(u64::from(self.options.command_pages)).max(1);
        let start_ns = meter.take(self.runtime.now_ns(), commands, pages * PAGE_BYTES as u64);
        self.runtime.sleep_until(start_ns + round_trip_ns).await;
    }

    fn count(&self, change: impl FnOnce(&mut DeviceCounters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }
}

impl<R: Runtime, P: Payload> LifeCycle for Metered<R, P> {
    fn start(self: &Rc<Self>, _runtime: &impl Runtime) {}

    async fn close(&self) -> Result<()> {
        Ok(())
    }

    fn counters(&self) -> DeviceCounters {
        self.counters.get()
    }

    fn metrics(&self, out: &mut Readings) {
        self.counters().tell(&self.limits, out);
    }

    fn validate(&self) {}
}

/// A new empty device, or the existing one: nothing has to be recovered.
impl<R: Runtime, P: Payload> DeviceKind<R, Blocks<P>> for MeteredOptions {
    type Device = Metered<R, P>;
    type Kept = ();
    type Report = ();

    async fn format(&self, on: Opening<R, Blocks<P>, ()>) -> Result<Rc<Self::Device>> {
        on.media.forget(0..self.pages);
        Metered::new(on.runtime, *self, on.media).map(Rc::new)
    }

    async fn open(&self, on: Opening<R, Blocks<P>, ()>) -> Result<(Rc<Self::Device>, ())> {
        Ok((Rc::new(Metered::new(on.runtime, *self, on.media)?), ()))
    }
}

impl<R: Runtime, P: Payload> PageDevice for Metered<R, P> {
    type Page = P;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [P], _tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, out.len() as u64);
        self.limits.check_range(range)?;
        self.count(|counters| counters.pages_read += range.pages);
        self.serve(&self.reads, range.pages, self.options.read_ns).await;
        for (page, out) in range.iter().zip(out) {
            *out = self.blocks.get(page);
        }
        Ok(())
    }

    /// Stores the contents at the call, so that the last of several writes of a page wins.
    async fn write(&self, first: PageNo, pages: &[P], _tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, pages.len() as u64);
        self.limits.check_write(range)?;
        self.count(|counters| counters.pages_written += range.pages);
        self.blocks.set(first, pages);
        self.serve(&self.writes, range.pages, self.options.write_ns).await;
        Ok(())
    }

    async fn flush(&self) -> Result<()> {
        self.count(|counters| counters.flushes += 1);
        self.runtime.sleep(self.options.flush_ns).await;
        Ok(())
    }

    /// Trimmed pages read as zeros. A trim counts as a command of no bytes.
    async fn trim(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        self.blocks.forget(range.first.0..range.end().0);
        self.serve(&self.writes, 0, self.options.write_ns).await;
        Ok(())
    }
}
