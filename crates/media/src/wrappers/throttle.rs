//! Additional latency and a bandwidth limit for a medium.
use super::{ZoneLayer, ZoneOperation};
use crate::zone::ZoneMedia;
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, Result};
use tantalum_runtime::Runtime;

/// Delays and limits that a [`Throttle`] adds.
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
    /// Bandwidth in bytes per second, shared by appends and reads; 0 means no limit.
    pub bytes_per_second: u64,
}

/// Slows a medium down. Every operation waits for its turn on a link of limited bandwidth, then for its latency, and
/// then goes to the medium. An append goes to the medium at once, because its first poll allocates its place in the
/// zone; only its completion is delayed.
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

impl<R: Runtime, M: ZoneMedia> ZoneLayer for Throttle<R, M> {
    type Inner = M;

    fn inner(&self) -> &M {
        &self.inner
    }

    async fn around<T>(
        &self,
        operation: ZoneOperation<'_>,
        run: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        use ZoneOperation::*;
        let options = &self.options;
        let (latency_ns, pages) = match operation {
            Append { spares, .. } => {
                let wait = self.wait(options.append_latency_ns, spares.len() as u64);
                let (result, ()) = join(run, wait).await;
                return result;
            }
            Read(slots) => (options.read_latency_ns, slots.len() as u64),
            ReadMeta(_, pages) => (options.read_latency_ns, pages as u64),
            Scan(_, from_offset, _) => {
                let slots = self.inner.geometry().slots_per_zone.saturating_sub(from_offset);
                (options.read_latency_ns, u64::from(slots))
            }
            // Only spare areas are read, so no page crosses the link.
            ScanSpares(_) => (options.read_latency_ns, 0),
            Peek(_) => (options.read_latency_ns, 1),
            Reset(_) | GiveRoomBack(_) => (options.reset_latency_ns, 0),
            Sync => (options.sync_latency_ns, 0),
            WriteAnchor(_) | ReadAnchors | PersistMapping => return run.await,
        };
        self.wait(latency_ns, pages).await;
        run.await
    }
}

/// Polls both futures, `first` before `second`, until both are done.
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
