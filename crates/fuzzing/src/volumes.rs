//! The input of a volume: its configuration, its superblock, its anchors, and the headers, records and checkpoints of its log.
use std::path::Path;
use std::sync::OnceLock;
use tantalum_base::checksum::crc32c;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload};
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};
use tantalum_volume::superblock::Superblock;
use tantalum_volume::{OpenOptions, VolumeConfig, open_flash};

use crate::pages::Image;
use crate::subjects::flash::{FLASH, config};
use crate::subjects::{Flash, Subject};

const CHECKSUM_AT: usize = PAGE_BYTES - 4;
/// Number of pages of an image whose fields are seeds.
const SEED_PAGES: usize = 40;

/// Text of VOLUME.toml.
pub(crate) fn configuration(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(config) = VolumeConfig::parse(&text, Path::new("/v/VOLUME.toml")) {
        let _ = config.data_path();
    }
}

pub(crate) fn texts() -> Vec<Vec<u8>> {
    let flash =
        format!("{FLASH}durability = \"on_flush\"\nbuffer = \"1MiB\"\nrecord = \"t.csv\"\n");
    let tiered = "kind = \"tiered\"\n[media]\ntype = \"file\"\npath = \"v\"\n[home]\npath = \"/h\"\njournal = \"j\"\n\
                  [device]\ncapacity = \"64MiB\"\n[destage]\nmode = \"ordered\"\ndirty_max = 0.5\n";
    let kept = [
        include_str!("../../volume/src/volume.toml"),
        include_str!("../../volume/src/tiered.toml"),
    ];
    [FLASH, &flash, tiered].into_iter().chain(kept).map(|text| text.as_bytes().to_vec()).collect()
}

/// A superblock with a correct checksum.
pub(crate) fn superblock(input: &[u8]) {
    let mut page = input.to_vec();
    page.resize(PAGE_BYTES, 0);
    repair(&mut page);
    if let Ok(superblock) = Superblock::decode(&page) {
        let _ = superblock.store_bytes();
    }
}

pub(crate) fn superblocks() -> Vec<Vec<u8>> {
    vec![image().bytes[..80].to_vec()]
}

/// Changes pages with a checksum in the volume of [`image`]. If the first byte is odd their checksums are corrected: then opening
/// accepts content that no correct program wrote. If the next bit is set loss is accepted.
pub(crate) fn log_headers(input: &[u8]) {
    let Some((first, changes)) = input.split_first() else { return };
    let image = image().changed(changes, first & 1 == 1);
    let options = OpenOptions { accept_loss: first & 2 == 2, ..OpenOptions::default() };
    open_and_read(MemoryStore::with_image(&image), options);
}

/// Changes of the fields of each page, which are at its beginning, one at a time.
pub(crate) fn changes() -> Vec<Vec<u8>> {
    changes_of(image().len(), SEED_PAGES)
}

/// Changes of the fields of `seed_pages` among `pages` pages.
pub(crate) fn changes_of(pages: usize, seed_pages: usize) -> Vec<Vec<u8>> {
    let fields = [8_u16, 10, 12, 16, 20, 24, 32, 36, 40, 48, 56, 64, 72, 128, 136, 144, 148];
    let mut seeds = Vec::new();
    for (number, page) in (0..pages).step_by(pages.div_ceil(seed_pages)).enumerate() {
        for at in fields {
            let width = (number + usize::from(at)) % 4;
            let change = |value| Image::change(page, at, value, width as u8);
            seeds.extend([1, -1].map(|value| [&[1][..], &change(value)].concat()));
        }
    }
    seeds
}

/// Corrects the checksum of a superblock.
fn repair(page: &mut [u8]) {
    let checksum = crc32c(&page[..CHECKSUM_AT]);
    page[CHECKSUM_AT..PAGE_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// The volume without large transactions, as it was killed.
fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| Image::new(Flash::scene().stores[0].clone()))
}

fn open_and_read(store: MemoryStore, options: OpenOptions) {
    let runtime = Virtual::new(Schedule::Fifo);
    let live = runtime.clone();
    let finished = runtime.run(async move {
        let opened = open_flash(&live, store, &config(""), options).await;
        let Ok((volume, _)) = opened else { return };
        read_and_change(&*volume, 1).await;
        let _ = volume.close().await;
    });
    // The tasks hold the volume, and with it the stores.
    runtime.drop_tasks();
    finished.unwrap_or_else(|deadlock| panic!("{deadlock}"));
}

/// Reads one in `step` pages of `device`, and changes some.
pub(crate) async fn read_and_change(device: &impl PageDevice<Page = PageBuf>, step: usize) {
    let mut page = [PageBuf::zero()];
    for at in (0..device.limits().pages).step_by(step) {
        let _ = device.read(PageNo(at), &mut page, None).await;
    }
    for at in [0, 7, 33, 90] {
        let _ = device.write(PageNo(at), &page, None).await;
        let _ = device.share(&[(PageNo(at + 1), PageNo(at))]).await;
    }
    let _ = device.trim(PageRange::new(PageNo(40), 50)).await;
    let _ = device.flush().await;
}
