//! One small runtime with two implementations: virtual time and live.
//!
//! ```text
//! Runtime           now, sleep, spawn: all that crates below the front ends may use
//! virtual_time      deterministic, seeded; the clock jumps to the next event
//! live              io_uring (or a thread pool); the clock is real
//! life_cycle        makes, opens, starts, closes and checks a device
//! metrics           numbers that can be watched from outside, with their meanings
//! transport         the network interface that a server needs
//! accepting         the pace at which a server accepts connections, and which of them are admitted
//! pipe              a network in memory, for servers in virtual time
//! sync              wait queues, semaphores, channels: work in both implementations
//! rounds            fair shares of the executor for connections
//! supervision       progress of long runs, and requests to stop them
//! huge_pages        huge pages for large tables
//! fault_points      protections that a test can switch off
//! ```
//!
//! One executor is one thread. Below `live` nothing reads a clock, draws randomness from the OS or starts a thread.
//! So a run in virtual time is a pure function of configuration, trace and seed.
mod accepting;
pub mod fault_points;
mod huge_pages;
mod io_buf;
pub mod life_cycle;
pub mod live;
pub mod metrics;
pub mod pipe;
mod primitives;
mod race;
mod ready_queue;
pub mod rounds;
pub mod supervision;
pub mod sync;
mod task;
mod timers;
mod transport;
pub mod virtual_time;
mod waker;

pub use accepting::{Admission, Places, Stage, accept_each};
pub use huge_pages::prefer_huge_pages;
pub use io_buf::{IO_ALIGN, IoBuf};
pub use life_cycle::{
    DeviceCounters, DeviceKind, DevicePart, DumpCounters, Finding, LifeCycle, Opening,
};
pub use live::Live;
pub use race::{First, first};
pub use task::{Body, JoinHandle, join_all, spawn_all, yield_now};
pub use transport::{Accept, ByteStream};
pub use virtual_time::Virtual;

use std::future::Future;

/// A clock and a spawner. Handles are cheap to clone, and all clones refer to the same executor.
pub trait Runtime: Clone + 'static {
    /// Nanoseconds since the executor started.
    fn now_ns(&self) -> u64;

    /// Completes when the clock reaches `at_ns`, or at once if that time has passed.
    fn sleep_until(&self, at_ns: u64) -> impl Future<Output = ()> + 'static;

    /// Runs `future` as a separate task. The name appears in deadlock reports.
    fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static;

    /// Runs `body` as a separate task, without a handle to wait for its end.
    fn detach(&self, name: &'static str, body: Body);

    /// Completes after `delay_ns`.
    fn sleep(&self, delay_ns: u64) -> impl Future<Output = ()> + 'static {
        self.sleep_until(self.now_ns().saturating_add(delay_ns))
    }
}
