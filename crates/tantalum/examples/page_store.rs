//! A storage engine's file on a volume: `cargo run -p tantalum --example page_store FOLDER`.
use std::path::Path;
use tantalum::{PAGE_BYTES, PageBuf, PageNo, Payload, Result, Volume};

/// The file of an engine with pages of 16 KiB. It needs no double write and no log of whole pages.
pub struct PageStore(Volume);

const PAGES: u64 = 4;

impl PageStore {
    /// Opens the file, or creates it.
    pub fn open(folder: &Path) -> Result<PageStore> {
        Volume::create(folder).capacity_bytes(64 << 20).sparse().open_or_create().map(PageStore)
    }

    /// Reads a page.
    pub fn read(&self, number: u64, out: &mut [u8]) -> Result<()> {
        self.0.read_at(number * PAGES * PAGE_BYTES as u64, out)
    }

    /// Writes all pages of a checkpoint: all of them completely, or none.
    pub fn checkpoint<const N: usize>(&self, pages: [(u64, &[u8]); N]) -> Result<()> {
        let parts = pages.into_iter().flat_map(|(number, bytes)| {
            let part = move |(at, bytes): (u64, &[u8])| {
                let mut page = PageBuf::zero();
                page.make_mut()[..bytes.len()].copy_from_slice(bytes);
                (PageNo(number * PAGES + at), page)
            };
            (0..PAGES).zip(bytes.chunks(PAGE_BYTES)).map(part)
        });
        self.0.write_scattered(parts.collect())
    }
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).expect("the folder of a volume");
    let store = PageStore::open(folder.as_ref())?;
    store.checkpoint([(3, &[3; 16384]), (900, &[9; 16384])])?;
    let mut page = vec![0; 16384];
    store.read(900, &mut page)?;
    println!("page 900 begins with {}", page[0]);
    Ok(())
}
