//! Synchronization between tasks of one executor. None of these types is tied to a runtime, none allocates after it
//! has grown, and each has a label for deadlock reports.
mod channel;
mod semaphore;
mod wait_queue;
mod waiting;

pub use channel::{Receiver, Sender, channel};
pub use semaphore::{Permit, Semaphore};
pub use wait_queue::WaitQueue;
pub use waiting::Waiting;
