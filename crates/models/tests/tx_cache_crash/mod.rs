//! TxCache with power cuts: at every store to NVRAM and at every operation of the medium, with
//! every fate of the operations in flight, and also inside recovery. Acknowledged commits survive,
//! every change is atomic, and aborted or uncommitted transactions leave nothing.
//!
//! The crash lab runs TxCache too, with cuts at random places. Here every store to NVRAM and every
//! operation is cut, including those of a recovery, and the report and the costs of a recovery are
//! checked.
mod clients;
mod matrix;
mod planted;
mod random;
mod recovery_time;
mod rig;
mod scenario;
