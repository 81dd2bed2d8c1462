//! The tests of the flash device, in one program: each of them compiles it for its media and payloads, and they share that.

mod extents;
mod large_transactions;
mod model;
mod planted_faults;
mod power_loss;
mod share;
mod stalls;
mod trims;

#[path = "../../models/tests/reads/devices.rs"]
#[allow(dead_code, reason = "the models' tests of reads have more of these devices in use")]
mod devices;
mod support;
