//! A server and its clients over connections in memory, in virtual time, under shuffled schedules.
mod changes;
mod deaths;
mod device;
mod hostile;
mod idle;
mod locks;
mod trims;
mod watched;
mod wire;
mod world;
