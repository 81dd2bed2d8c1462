//! Waiting for one another inside one executor. None of these is tied to a runtime, none
//! allocates once it has grown, and each carries a label for deadlock reports.
mod channel;
mod semaphore;
mod wait_queue;
mod waiting;

pub use channel::{Receiver, Sender, channel};
pub use semaphore::{Permit, Semaphore};
pub use wait_queue::WaitQueue;
pub use waiting::Waiting;
