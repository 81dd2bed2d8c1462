//! Latency and limited bandwidth on top of a medium's own.
use crate::zone::{AppendHeader, Body, ScannedAppend, Spare, ZoneMedia};
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf, Result, SlotNo, ZoneNo};
use tantalum_runtime::Runtime;

/// What a [`Throttle`] adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrottleOptions {
    /// Added to each append.
    pub append_latency_ns: u64,
    /// Added to each read of any kind.
    pub read_latency_ns: u64,
    /// Added to each reset.
    pub reset_latency_ns: u64,
    /// Added to each sync.
    pub sync_latency_ns: u64,
    /// Bytes a second that appends and reads share; 0 is no limit.
    pub bytes_per_second: u64,
}

/// Slows a medium down: every operation waits its turn on a link of limited bandwidth, then its
/// latency, then goes to the medium. Only an append goes to the medium at once, because its place
/// in the zone is taken at the first poll; what is slow is its answer.
pub struct Throttle<R, M> {
    runtime: R,
    inner: Rc<M>,
    options: ThrottleOptions,
    link_busy_until_ns: Cell<u64>,
}

impl<R: Runtime, M: ZoneMedia> Throttle<R, M> {
    /// Slows `inner` down.
    pub fn new(runtime: R, inner: Rc<M>, options: ThrottleOptions) -> Self {
        Throttle { runtime, inner, options, link_busy_until_ns: Cell::new(0) }
    }

    async fn wait(&self, latency_ns: u64, pages: u64) {
        let now_ns = self.runtime.now_ns();
        let bytes = u128::from(pages) * PAGE_BYTES as u128;
        let rate = u128::from(self.options.bytes_per_second);
        let transfer_ns = (bytes * 1_000_000_000).checked_div(rate).unwrap_or(0) as u64;
        let sent_ns = self.link_busy_until_ns.get().max(now_ns) + transfer_ns;
        if transfer_ns > 0 {
            self.link_busy_until_ns.set(sent_ns);
        }
        let start_ns = if transfer_ns > 0 { sent_ns } else { now_ns };
        self.runtime.sleep_until(start_ns + latency_ns).await;
    }
}

impl<R: Runtime, M: ZoneMedia> ZoneMedia for Throttle<R, M> {
    type Page = M::Page;

    crate::forward_zone_media!((inner) READS_SPARES = M, geometry, retired, persist_mapping, anchors, write_anchor,
        read_anchors);

    async fn append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<M::Page>],
        durable: bool,
    ) -> Result<SlotNo> {
        let (slot, ()) = join(
            self.inner.append(zone, header, spares, bodies, durable),
            self.wait(self.options.append_latency_ns, bodies.len() as u64),
        )
        .await;
        slot
    }

    async fn read(&self, slots: &[SlotNo], out: &mut [M::Page]) -> Result<()> {
        self.wait(self.options.read_latency_ns, slots.len() as u64).await;
        self.inner.read(slots, out).await
    }

    async fn read_with_spares(
        &self,
        slots: &[SlotNo],
        out: &mut [M::Page],
        spares: &mut [Option<Spare>],
    ) -> Result<()> {
        self.wait(self.options.read_latency_ns, slots.len() as u64).await;
        self.inner.read_with_spares(slots, out, spares).await
    }

    async fn read_meta(&self, slot: SlotNo) -> Result<PageBuf> {
        self.wait(self.options.read_latency_ns, 1).await;
        self.inner.read_meta(slot).await
    }

    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        let pages = self.inner.geometry().slots_per_zone.saturating_sub(from_offset);
        self.wait(self.options.read_latency_ns, u64::from(pages)).await;
        self.inner.scan(zone, from_offset, epoch).await
    }

    /// The spare areas alone: the time of their bytes is the medium's.
    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>> {
        self.wait(self.options.read_latency_ns, 0).await;
        self.inner.scan_spares(zone).await
    }

    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>> {
        self.wait(self.options.read_latency_ns, 1).await;
        self.inner.peek(zone).await
    }

    async fn reset(&self, zone: ZoneNo) -> Result<()> {
        self.wait(self.options.reset_latency_ns, 0).await;
        self.inner.reset(zone).await
    }

    async fn sync(&self) -> Result<()> {
        self.wait(self.options.sync_latency_ns, 0).await;
        self.inner.sync().await
    }
}

/// Both results, once both are there; polls the first one first.
async fn join<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> (A, B) {
    use std::pin::pin;
    use std::task::Poll;
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut first_result, mut second_result) = (None, None);
    std::future::poll_fn(move |context| {
        if first_result.is_none()
            && let Poll::Ready(result) = first.as_mut().poll(context)
        {
            first_result = Some(result);
        }
        if second_result.is_none()
            && let Poll::Ready(result) = second.as_mut().poll(context)
        {
            second_result = Some(result);
        }
        match (first_result.take(), second_result.take()) {
            (Some(first), Some(second)) => Poll::Ready((first, second)),
            (first, second) => {
                (first_result, second_result) = (first, second);
                Poll::Pending
            }
        }
    })
    .await
}
