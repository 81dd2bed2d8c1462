//! The tests of the translation layer, in one program: it is compiled for their media and payloads once, not once per
//! test file.

mod cache;
mod check;
mod checked;
mod closing;
mod damage;
mod damage_everywhere;
mod forged;
mod home_ahead;
mod large_shares;
mod late_answers;
mod planted_faults;
mod prefix;
mod read_only;
mod recovery_cycles;
mod refusals;
mod refused_resets;
mod remapped;
mod retired_zones;
mod room;
mod shares_with_trims;
mod tiny_devices;
mod unreadable;
mod wear;
mod wear_cuts;

mod support;
