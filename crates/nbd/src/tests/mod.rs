//! Sessions over connections in memory, in virtual time, under shuffled schedules.
mod commands;
mod concurrency;
mod handshake;
mod hostile;
mod pipe;
mod slow;
mod watched;
mod world;

#[path = "../../tests/support/memory_device.rs"]
mod memory_device;
