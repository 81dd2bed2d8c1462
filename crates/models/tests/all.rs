//! The tests of the simulated devices, in one program: each test program would compile the devices for its media and payloads;
//! here they share that.

mod baselines;
mod commits;
mod current_drives;
mod device_parameters;
mod documented;
mod host_queue;
mod named_power_loss;
mod nand_conformance;
mod ordered_queue;
mod personality;
mod reads;
mod redo_log;
mod tx_cache;
mod tx_cache_crash;
mod x25_m;

mod support;
