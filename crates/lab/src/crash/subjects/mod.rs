//! The devices under test, one file each.
mod ssd;
mod tx_cache;

pub use ssd::SsdSubject;
pub use tx_cache::TxCacheSubject;
