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
mod tls;
mod watched;
mod world;

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../tls/tests/support/client.rs"]
mod tls_client;

#[path = "../../tests/support/memory_device.rs"]
mod memory_device;
