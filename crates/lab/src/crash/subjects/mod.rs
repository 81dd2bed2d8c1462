//! The devices under test, one file each.
mod buffered;
mod ssd;
mod tx_cache;

pub use buffered::BufferedSubject;
pub use ssd::SsdSubject;
pub use tx_cache::TxCacheSubject;
