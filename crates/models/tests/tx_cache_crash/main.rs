//! TxCache through power cuts: at every store to NVRAM and at every operation of the medium, with
//! every fate of what was in flight, and inside recovery too. Commits that were acknowledged
//! survive, nothing is half done, what was aborted or not committed leaves nothing.
mod clients;
mod matrix;
mod planted;
mod random;
mod recovery_time;
mod rig;
mod scenario;
