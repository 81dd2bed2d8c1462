//! The result of a replay through a buffer.
use tantalum_buffer::PoolStatistics;
use tantalum_policy::Gauge;

use super::{BufferReplayOptions, BufferRun, Metered};
use crate::cache_replay::CacheTrace;

/// A policy's gauges during a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The number of requests of the trace before the sample.
    pub requests: usize,
    /// The gauges.
    pub gauges: Vec<Gauge>,
}

impl Sample {
    /// The value of the gauge called `name`.
    pub fn gauge(&self, name: &str) -> Option<f64> {
        value(&self.gauges, name)
    }
}

fn value(gauges: &[Gauge], name: &str) -> Option<f64> {
    gauges.iter().find(|gauge| gauge.name == name).map(|gauge| gauge.value)
}

/// One trace through one policy and size over one device.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferReplayRow {
    /// The trace's name.
    pub trace: String,
    /// The policy as it was given.
    pub policy: String,
    /// Maximum number of the policy's pages in the pool.
    pub buffer_pages: u32,
    /// The device, with every parameter.
    pub device: String,
    /// Number of clients.
    pub clients: u32,
    /// Computing time of a client per request.
    pub cpu_ns: u64,
    /// Bytes of a page of the trace, and of the pool.
    pub page_bytes: u32,
    /// The counters of the pool.
    pub pool: PoolStatistics,
    /// Dirty pages in the pool at the end; they are not written.
    pub dirty_pages_at_end: u32,
    /// Virtual time of the replay, in seconds.
    pub seconds: f64,
    /// The part of it in which the device was busy.
    pub device_busy_seconds: f64,
    /// Mean time of a page's read, seen from the pool; `None` without one.
    pub read_mean_ns: Option<f64>,
    /// Mean time of a page's write.
    pub write_mean_ns: Option<f64>,
    /// The policy's gauges at the end.
    pub gauges: Vec<Gauge>,
    /// Its gauges during the run, if samples were requested.
    pub samples: Vec<Sample>,
    /// Number of pages that the policy's searches visited.
    pub search_steps: u64,
    /// Computing time of all clients together.
    pub computed_seconds: f64,
}

/// The results at the end of a run.
pub(super) struct Counted {
    pub(super) took_ns: u64,
    pub(super) pool: PoolStatistics,
    pub(super) device: Metered,
    pub(super) dirty_pages: u32,
    pub(super) gauges: Vec<Gauge>,
    pub(super) samples: Vec<Sample>,
    pub(super) search_steps: u64,
}

impl BufferReplayRow {
    pub(super) fn new(
        trace: &CacheTrace,
        run: &BufferRun,
        options: &BufferReplayOptions,
        counted: Counted,
    ) -> Self {
        let Counted { took_ns, pool, device, dirty_pages, gauges, samples, search_steps } = counted;
        let computed_ns = pool.requests * options.cpu_ns + search_steps * options.search_step_ns;
        let mean = |ns: u64, pages: u64| (pages > 0).then(|| ns as f64 / pages as f64);
        BufferReplayRow {
            trace: trace.name.clone(),
            policy: run.policy.text().to_owned(),
            buffer_pages: run.buffer_pages,
            device: run.device.name().to_owned(),
            clients: options.clients,
            cpu_ns: options.cpu_ns,
            page_bytes: options.page_bytes,
            pool,
            dirty_pages_at_end: dirty_pages,
            seconds: took_ns as f64 / 1e9,
            device_busy_seconds: device.busy_ns as f64 / 1e9,
            read_mean_ns: mean(device.read_ns, device.reads),
            write_mean_ns: mean(device.write_ns, device.writes),
            gauges,
            samples,
            search_steps,
            computed_seconds: computed_ns as f64 / 1e9,
        }
    }

    /// The value of the policy's gauge called `name` at the end.
    pub fn gauge(&self, name: &str) -> Option<f64> {
        value(&self.gauges, name)
    }
}
