//! The tests of the flash device, in one program: each test compiles the device for its media and
//! payloads, and one program shares that work.

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
