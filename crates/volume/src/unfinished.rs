//! Whether flash and journal of a configuration are a volume already.
use tantalum_base::{Error, ErrorKind, PageBuf, Result};
use tantalum_cache::journal::Journal;
use tantalum_media::block_store::{FileStore, FileStoreOptions, is_there};
use tantalum_runtime::Live;

use crate::config::VolumeConfig;
use crate::flash::{check_sizes, read_superblock};
use crate::tiered::pair;

/// How flash and journal of a configuration stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// They are not one volume's.
    None,
    /// They are one volume's, and the home belongs to it.
    Owned,
    /// They are one volume's, and the home is an image of its own: it was not claimed yet, or was given back.
    Released,
}

/// How flash and journal of `config` stand to each other.
///
/// # Errors
/// `Io` and `Locked` of either.
pub(crate) async fn pairing(live: &Live, config: &VolumeConfig) -> Result<Pairing> {
    let Some(home) = &config.home else { return Ok(Pairing::None) };
    let (flash, journal) = (config.data_path()?, home.journal_path(&config.path));
    if !is_there(&flash)? || !is_there(&journal)? {
        return Ok(Pairing::None);
    }
    let options = FileStoreOptions { read_only: true, ..FileStoreOptions::default() };
    let flash = FileStore::open(live, &flash, options)?;
    let journal = FileStore::open(live, &journal, options)?;
    let paired = async {
        let superblock = read_superblock(&flash).await?;
        check_sizes(&superblock, &flash, config)?;
        let is_its = Journal::<_, PageBuf>::pair_of(&journal).await? == pair(&superblock);
        let owner = Journal::<_, PageBuf>::owner_of(&journal).await?;
        Ok::<_, Error>(match (is_its, owner) {
            (false, _) => Pairing::None,
            (true, Some(_)) => Pairing::Owned,
            (true, None) => Pairing::Released,
        })
    };
    match paired.await {
        Err(error) if error.kind() != ErrorKind::Io => Ok(Pairing::None),
        paired => paired,
    }
}
