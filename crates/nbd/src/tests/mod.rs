//! Sessions over connections in memory, in virtual time, under shuffled schedules.
mod block_status;
mod commands;
mod concurrency;
mod fair;
mod handshake;
mod held;
mod hostile;
mod slow;
mod structured;
mod watched;
mod world;

#[path = "../../tests/support/memory_device.rs"]
mod memory_device;
