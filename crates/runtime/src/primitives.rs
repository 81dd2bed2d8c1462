//! Synchronization primitives for threads, re-exported here so that `tests/interleavings` can compile their users
//! with the primitives of a model checker instead.
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8};
pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use std::thread::{self, Thread};
pub(crate) use std::thread_local;
