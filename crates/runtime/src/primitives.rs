//! What threads wait for one another with, under names of its own: `tests/interleavings` compiles what uses them with those of a
//! model checker in their place.
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8};
pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use std::thread::{self, Thread};
pub(crate) use std::thread_local;
