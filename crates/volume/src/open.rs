//! Opens a volume on the executor of this thread, as servers do.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_cache::refusals::OTHERS_HOME;
use tantalum_media::block_store::StoreCounters;
use tantalum_runtime::Live;
use tantalum_runtime::live::wall_clock::unix_ms;

use crate::config::VolumeConfig;
use crate::flash::{FlashVolume, OpenReport, open_flash};
use crate::open_options::OpenOptions;
use crate::refusals::{CLAIM_GONE, CLAIM_UNKNOWN, COMPARED, UNPROVEN};
use crate::store::{
    VolumeStore, journal_to_make, open_store, open_tiered_stores, reread_partitions,
};
use crate::tiered::{TieredVolume, open_tiered};

/// Opens the volume of `config`, which is of kind `flash`.
///
/// # Errors
/// `Locked` if another process has it open; `Format` if the store is no volume, or has other sizes than `config`; `Corrupt`
/// if it is damaged; `OutOfSpace`; `Io`.
pub async fn open_volume(
    live: &Live,
    config: &VolumeConfig,
    options: OpenOptions,
) -> Result<(Rc<FlashVolume<VolumeStore>>, OpenReport)> {
    let store = open_store(live, config, options, &StoreCounters::default()).await?;
    let opened = open_flash(live, store, config, options).await;
    opened.map_err(|error| {
        let way_out = match error.kind() {
            ErrorKind::OutOfSpace if config.media.sparse => {
                " (make room on its file system, or open the volume read-only, which writes nothing)"
            }
            _ => "",
        };
        error.wrap(format!("opening {}{way_out}", config.path.display()))
    })
}

/// Opens the volume of `config`, which is of kind `tiered`.
///
/// # Errors
/// As [`open_volume`]; also `Corrupt` or `Format` if the home or the journal does not belong to the flash.
pub async fn open_tiered_volume(
    live: &Live,
    config: &VolumeConfig,
    options: OpenOptions,
) -> Result<(Rc<TieredVolume<Live, VolumeStore>>, OpenReport)> {
    let made = journal_to_make(config, options)?;
    let open = async {
        let counters = StoreCounters::default();
        let stores = open_tiered_stores(live, config, options, &counters).await?;
        let home = stores.home.clone();
        let opened = open_tiered(live, stores, config, options, unix_ms).await?;
        // A volume of an earlier version has just got its claim.
        if !options.read_only && opened.0.device().device().home().store().claim().is_some() {
            reread_partitions(&home);
        }
        Ok::<_, Error>(opened)
    };
    open.await.map_err(|error| {
        if let Some(journal) = made.filter(|_| is_another_home(&error)) {
            // Nothing was written to the home. The original error says more than a failure here.
            let _ = std::fs::remove_file(journal);
        }
        error.wrap(format!("opening {}", config.path.display()))
    })
}

/// Whether an opening was refused because the home is another one. Nothing was written to that home.
fn is_another_home(error: &Error) -> bool {
    let told = error.to_string();
    [COMPARED, UNPROVEN, CLAIM_GONE, CLAIM_UNKNOWN, OTHERS_HOME]
        .iter()
        .any(|refusal| told.contains(refusal.words()))
}
