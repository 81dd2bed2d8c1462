//! What a volume is read from: its configuration, its superblock, and the anchors and headers of its log.
use std::path::Path;
use std::rc::Rc;
use std::sync::OnceLock;
use tantalum_base::checksum::crc32c;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload};
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};
use tantalum_volume::superblock::{FIRST_ZONE_BYTE, Superblock};
use tantalum_volume::{OpenOptions, VolumeConfig, create_flash, open_flash};

const CHECKSUM_AT: usize = PAGE_BYTES - 4;
/// Bytes of one change of an image: which page with a checksum, which byte of it, and the new byte.
const CHANGE_BYTES: usize = 5;

const FLASH: &str = "kind = \"flash\"\n[media]\ntype = \"file\"\npath = \"volume.data\"\n[device]\ncapacity = \"1MiB\"\n";

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

/// A superblock, whose checksum is right.
pub(crate) fn superblock(input: &[u8]) {
    let mut page = input.to_vec();
    page.resize(PAGE_BYTES, 0);
    repair(&mut page);
    if let Ok(superblock) = Superblock::decode(&page) {
        let _ = superblock.store_bytes();
    }
}

pub(crate) fn superblocks() -> Vec<Vec<u8>> {
    vec![image()[..80].to_vec()]
}

/// Changes of the volume of [`image`] in pages that have a checksum. Where the first byte is odd those of superblocks and anchors are
/// made right. Those of headers are not: one whose checksum is right is believed, as only who writes the volume's file makes such.
pub(crate) fn log_headers(input: &[u8]) {
    let Some((first, changes)) = input.split_first() else { return };
    let mut image = image().to_vec();
    let pages = checked_pages(&image);
    let mut touched = Vec::new();
    for change in changes.chunks_exact(CHANGE_BYTES) {
        let number = |at: usize| usize::from(u16::from_le_bytes([change[at], change[at + 1]]));
        let page = pages[number(0) % pages.len()];
        image[page + number(2) % CHECKSUM_AT] = change[4];
        touched.push(page);
    }
    if first & 1 == 1 {
        let of_zones = FIRST_ZONE_BYTE as usize;
        for page in touched.into_iter().filter(|page| *page < of_zones) {
            repair(&mut image[page..page + PAGE_BYTES]);
        }
    }
    open_and_read(MemoryStore::with_image(&image));
}

/// The fields of each page, which are at its beginning, changed one by one.
pub(crate) fn changes() -> Vec<Vec<u8>> {
    let pages = checked_pages(image()).len() as u16;
    let fields = [8_u16, 10, 12, 24, 32, 36, 40, 48, 56, 64, 128, 136, 144, 148];
    let change =
        |page: u16, at: u16| [&[1][..], &page.to_le_bytes(), &at.to_le_bytes(), &[1]].concat();
    (0..pages).flat_map(|page| fields.map(|at| change(page, at))).collect()
}

/// Makes the checksum of a page right.
fn repair(page: &mut [u8]) {
    let checksum = crc32c(&page[..CHECKSUM_AT]);
    page[CHECKSUM_AT..PAGE_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// First bytes of the pages in which the last four bytes are a checksum of the others: superblocks, anchors, headers.
fn checked_pages(image: &[u8]) -> Vec<usize> {
    let is_checked = |page: &[u8]| {
        page[..8] != [0; 8] && page[CHECKSUM_AT..] == crc32c(&page[..CHECKSUM_AT]).to_le_bytes()
    };
    let pages = image.chunks_exact(PAGE_BYTES).enumerate();
    pages.filter(|(_, page)| is_checked(page)).map(|(at, _)| at * PAGE_BYTES).collect()
}

fn config() -> VolumeConfig {
    VolumeConfig::parse(FLASH, Path::new("/v/VOLUME.toml")).expect("a sound configuration")
}

/// A volume that was written, trimmed, shared, and closed by nobody.
fn image() -> &'static [u8] {
    static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let runtime = Virtual::new(Schedule::Fifo);
        let live = runtime.clone();
        let made = runtime.run(async move {
            let store = MemoryStore::new(64 << 20);
            let created = create_flash(store.clone(), &config(), 7).await.expect("a new volume");
            let opened = open_flash(&live, store.clone(), &config(), OpenOptions::default()).await;
            let (volume, _) = opened.expect("it opens");
            for round in 0..40_u64 {
                let pages: Vec<PageBuf> = (0..4).map(|page| content(round * 4 + page)).collect();
                volume.write(PageNo(round * 5 % 200), &pages, None).await.expect("written");
            }
            volume.trim(PageRange::new(PageNo(20), 3)).await.expect("trimmed");
            volume.share(&[(PageNo(1), PageNo(40))]).await.expect("shared");
            volume.flush().await.expect("durable");
            store.image()[..created.store_bytes() as usize].to_vec()
        });
        made.expect("it comes to an end")
    })
}

fn content(number: u64) -> PageBuf {
    let mut bytes = [0; PAGE_BYTES];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    PageBuf::from_bytes(&bytes)
}

fn open_and_read(store: MemoryStore) {
    let runtime = Virtual::new(Schedule::Fifo);
    let live = runtime.clone();
    let finished = runtime.run(async move {
        let opened = open_flash(&live, store, &config(), OpenOptions::default()).await;
        let Ok((volume, _)) = opened else { return };
        let mut page = [PageBuf::zero()];
        for at in 0..volume.limits().pages {
            let _ = volume.read(PageNo(at), &mut page, None).await;
        }
        let _ = volume.write(PageNo(0), &page, None).await;
        let _ = Rc::clone(&volume).close().await;
    });
    finished.unwrap_or_else(|deadlock| panic!("{deadlock}"));
}
