//! TxCache: a write cache in NVRAM with transactions (Lu et al., "TxCache: Transactional Cache
//! using Byte-Addressable Non-Volatile Memories in SSDs", sections III and IV).
//!
//! ```text
//! device        PageDevice: the effect of each command, reads
//! ├ transactions  begin with a proposed id; commands and commits in order; conflicts
//! ├ room          frames for writers; the extended cache for transactions larger than the cache
//! ├ write_back    writes committed pages home in batches
//! ├ trim          atomic over cache and home
//! └ recovery      two steps from flags in NVRAM, then the indexes
//! state         every change, as a sequence of stores to NVRAM
//! metadata      Page Headers, Tx Headers, flags, mapping: the state that survives
//! lists         candidates for replacement and for the extended cache
//! ```
//!
//! Every change is a sequence of stores to NVRAM without an await between them; a power cut may
//! come after any store. A page version takes effect when the mapping leads to it. So a commit is
//! one flag, plus one mapping entry per page, which recovery can repeat.
mod device;
mod kind;
mod lists;
mod metadata;
mod options;
mod recovery;
mod room;
mod state;
mod statistics;
mod transactions;
mod trim;
mod validate;
mod write_back;

pub use device::TxCache;
pub use kind::{KeptNvram, TxCacheKind};
pub use metadata::{Flags, PageHeader, PagePlace, TxHeader, TxNvram, TxState};
pub use options::{HeaderRelease, TxCacheOptions};
pub use recovery::TxRecoveryReport;
pub use statistics::TxCacheStatistics;
