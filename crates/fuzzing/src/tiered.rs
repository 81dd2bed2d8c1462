//! The input of a volume with a home: its flash and its journal.
use std::sync::OnceLock;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};
use tantalum_volume::{OpenOptions, TieredStores, open_tiered};

use crate::pages::Image;
use crate::subjects::{Ordered, Subject, tiered::config};
use crate::volumes::{changes_of, read_and_change};

/// Time for which a volume is open, so that its tasks run.
const LIFE_NS: u64 = 500_000_000;
/// One in this many pages is read, which brings it into the cache.
const READ_STEP: usize = 32;
/// Number of pages of each store whose fields are seeds.
const SEED_PAGES: usize = 8;

/// The images of a volume's stores.
struct Images {
    flash: Image,
    journal: Image,
    home: Vec<u8>,
}

/// Changes pages with a checksum: of the flash, and also of the journal if the third bit of the first byte is set; otherwise like
/// `log_headers`.
pub(crate) fn run(input: &[u8]) {
    let Some((first, changes)) = input.split_first() else { return };
    let Images { flash, journal, home } = images();
    let is_repaired = first & 1 == 1;
    let (of_flash, of_journal) =
        if first & 4 == 4 { (&[][..], changes) } else { (changes, &[][..]) };
    let store = |bytes: &[u8]| MemoryStore::with_image(bytes);
    let stores = TieredStores {
        flash: store(&flash.changed(of_flash, is_repaired)),
        home: store(home),
        journal: Some(store(&journal.changed(of_journal, is_repaired))),
    };
    let options = OpenOptions { accept_loss: first & 2 == 2, ..OpenOptions::default() };
    let runtime = Virtual::new(Schedule::Fifo);
    let live = runtime.clone();
    let finished = runtime.run(async move {
        let Ok((volume, _)) = open_tiered(&live, stores, &config(""), options, || 0).await else {
            return;
        };
        read_and_change(&*volume, READ_STEP).await;
        live.sleep(LIFE_NS).await;
        let _ = volume.close().await;
    });
    // The tasks hold the volume, and with it the stores.
    runtime.drop_tasks();
    finished.unwrap_or_else(|deadlock| panic!("{deadlock}"));
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let Images { flash, journal, .. } = images();
    let mut of_journal = changes_of(journal.len(), SEED_PAGES);
    of_journal.iter_mut().for_each(|seed| seed[0] |= 4);
    [changes_of(flash.len(), SEED_PAGES), of_journal].concat()
}

/// The volume that is destaged in epochs, as it was killed.
fn images() -> &'static Images {
    static IMAGES: OnceLock<Images> = OnceLock::new();
    IMAGES.get_or_init(|| {
        let [flash, journal, home] = &Ordered::scene().stores[..] else {
            unreachable!("a flash, a journal and a home")
        };
        let image = |bytes: &[u8]| Image::new(bytes.to_vec());
        Images { flash: image(flash), journal: image(journal), home: home.clone() }
    })
}
