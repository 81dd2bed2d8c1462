//! One small runtime, two lives.
//!
//! ```text
//! Runtime           now, sleep, spawn: all that the rooms below the front ends may ask for
//! virtual_time      deterministic, seeded, the clock jumps to the next event
//! live              io_uring (or a thread pool), the clock is real
//! life_cycle        making a device, opening it again, starting, closing and checking it
//! metrics           numbers that can be watched from outside, each with its meaning
//! transport         what a server needs of a network
//! pipe              a network in memory, for servers in virtual time
//! sync              wait queues, semaphores, channels: work in either life
//! supervision       how far long runs are, and the wish that they end
//! huge_pages        large tables in few pages of memory
//! fault_points      protections that a test can switch off
//! ```
//!
//! One executor is one thread. Below `live` nothing reads a clock, draws OS randomness or starts
//! a thread, so that a run in virtual time is a pure function of configuration, trace and seed.
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
pub mod supervision;
pub mod sync;
mod task;
mod timers;
mod transport;
pub mod virtual_time;
mod waker;

pub use huge_pages::prefer_huge_pages;
pub use io_buf::{IO_ALIGN, IoBuf};
pub use life_cycle::{DeviceCounters, DeviceKind, DumpCounters, Finding, LifeCycle, Opening};
pub use live::Live;
pub use race::{First, first};
pub use task::{Body, JoinHandle, join_all, spawn_all, yield_now};
pub use transport::{Accept, ByteStream};
pub use virtual_time::Virtual;

use std::future::Future;

/// A clock and a spawner. Handles are cheap to clone and all name the same executor.
pub trait Runtime: Clone + 'static {
    /// Nanoseconds since the executor started.
    fn now_ns(&self) -> u64;

    /// Completes when the clock reaches `at_ns`; at once where it already has.
    fn sleep_until(&self, at_ns: u64) -> impl Future<Output = ()> + 'static;

    /// Runs `future` as a task of its own. The name appears in deadlock reports.
    fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static;

    /// Runs `body` as a task of its own, for whose end nobody waits.
    fn detach(&self, name: &'static str, body: Body);

    /// Completes after `delay_ns`.
    fn sleep(&self, delay_ns: u64) -> impl Future<Output = ()> + 'static {
        self.sleep_until(self.now_ns().saturating_add(delay_ns))
    }
}
