//! TxCache through power cuts: at every store to NVRAM and at every operation of the medium, with
//! every fate of what was in flight, and inside recovery too. Commits that were acknowledged
//! survive, nothing is half done, what was aborted or not committed leaves nothing.
//!
//! The crash lab runs TxCache too, at random places; here every store to NVRAM is cut and every operation,
//! also those of a recovery, and what a recovery reports and costs is checked.
mod clients;
mod matrix;
mod planted;
mod random;
mod recovery_time;
mod rig;
mod scenario;
