//! Threads wake the tasks of an executor and one another, in every order of their steps that a model checker finds
//! within two preemptions. The code is the library's own, compiled with the checker's locks, atomics and threads.
#[path = "../../src/ready_queue.rs"]
#[allow(dead_code, reason = "the rest wants an executor")]
mod ready_queue;
#[path = "../../src/waker.rs"]
#[allow(dead_code, reason = "the rest wants an executor")]
mod waker;

mod primitives {
    use std::sync::atomic::Ordering;

    pub(crate) use loom::sync::{Mutex, MutexGuard};
    pub(crate) use thread::Thread;
    /// An atomic whose stores are swaps. The checker does not see that a swap that read the value before another
    /// thread's store precedes that store for every later swap.
    macro_rules! atomic {
        ($name:ident, $type:ty) => {
            #[derive(Default)]
            pub(crate) struct $name(loom::sync::atomic::$name);

            impl $name {
                pub(crate) fn new(value: $type) -> Self {
                    $name(loom::sync::atomic::$name::new(value))
                }

                pub(crate) fn load(&self, order: Ordering) -> $type {
                    self.0.load(order)
                }

                pub(crate) fn store(&self, value: $type, order: Ordering) {
                    self.0.swap(value, order);
                }

                pub(crate) fn swap(&self, value: $type, order: Ordering) -> $type {
                    self.0.swap(value, order)
                }
            }
        };
    }
    atomic!(AtomicBool, bool);
    atomic!(AtomicU8, u8);

    /// The checker's macro does not support `const` initial values.
    macro_rules! plain {
        ($(#[$doc:meta])* static $name:ident: $type:ty = const { $value:expr };) => {
            loom::thread_local! { static $name: $type = $value; }
        };
    }
    pub(crate) use plain as thread_local;

    /// Parking with a lock and a condition variable. The checker's own parking confuses a thread that waits for a
    /// lock with a parked one.
    pub(crate) mod thread {
        use loom::sync::{Condvar, Mutex};
        use std::sync::Arc;

        #[derive(Clone, Default)]
        pub(crate) struct Thread(Arc<(Mutex<bool>, Condvar)>);

        loom::thread_local! {
            static CURRENT: Thread = Thread::default();
        }

        pub(crate) fn current() -> Thread {
            CURRENT.with(Thread::clone)
        }

        pub(crate) fn park() {
            let Thread(token) = current();
            let mut is_unparked = token.0.lock().unwrap();
            while !*is_unparked {
                is_unparked = token.1.wait(is_unparked).unwrap();
            }
            *is_unparked = false;
        }

        impl Thread {
            pub(crate) fn unpark(&self) {
                *self.0.0.lock().unwrap() = true;
                self.0.1.notify_one();
            }
        }

        /// The checker has no notion of time.
        pub(crate) fn park_timeout(_: std::time::Duration) {
            unreachable!("nobody here waits for a time")
        }
    }
}

mod live {
    #[path = "../../../src/live/callers.rs"]
    #[allow(dead_code, reason = "the rest wants an executor")]
    mod callers;
    mod passed_on;

    pub(crate) use callers::Callers;
}

/// Runs `scenario` in every order.
fn in_every_order(scenario: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(scenario);
}
