//! The devices under test, one file each.
mod buffered;
mod linked;
mod personality;
mod profile;
mod shadow;
mod ssd;
mod tx_cache;
mod wal;

pub use buffered::BufferedSubject;
pub use linked::LinkedSubject;
pub use personality::PersonalitySubject;
pub use profile::ProfileSubject;
pub use shadow::ShadowSubject;
pub use ssd::SsdSubject;
pub use tx_cache::TxCacheSubject;
pub use wal::WalSubject;
