//! The pages of a store that have a checksum, changed and with corrected checksums, at the offsets of docs/format.md.
use tantalum_base::PAGE_BYTES;
use tantalum_base::checksum::crc32c;

const CHECKSUM_AT: usize = PAGE_BYTES - 4;
/// Bytes of one change: page and offset in it (two bytes each), the new number, which is signed, and the width in which it is
/// written (as a logarithm).
const CHANGE_BYTES: usize = 6;

const HEADER_MAGIC: &[u8] = b"TantalZA";
const SPARES_AT: usize = 128;
const SPARE_BYTES: usize = 24;
/// Offsets in a spare: the checksum of its page, and its kind.
const PAGE_CHECKSUM_AT: usize = 16;
const KIND_AT: usize = 20;
const RECORD: u8 = 3;
const CHECKPOINT: u8 = 4;
/// Offset in a checkpoint's page of its own checksum.
const SEAL_AT: usize = 36;

/// A page with a checksum, identified by the offset of its first byte in the image of its store.
#[derive(Clone, Copy)]
enum Checked {
    /// Its last four bytes are the checksum of the others: a superblock, an anchor, a header, a page of a journal.
    Own(usize),
    /// One of the FTL's own pages (a record, or a page of a checkpoint), whose checksum is in its spare, which is in a header.
    Listed { page: usize, spare: usize, header: usize },
}

/// The image of a store, and its pages with checksums.
pub(crate) struct Image {
    pub bytes: Vec<u8>,
    pages: Vec<Checked>,
}

impl Image {
    pub fn new(bytes: Vec<u8>) -> Self {
        let mut pages = Vec::new();
        for (at, page) in (0..).step_by(PAGE_BYTES).zip(bytes.chunks_exact(PAGE_BYTES)) {
            if page[..8] != [0; 8]
                && page[CHECKSUM_AT..] == crc32c(&page[..CHECKSUM_AT]).to_le_bytes()
            {
                pages.push(Checked::Own(at));
                pages.extend(listed(&bytes, at));
            }
        }
        Image { bytes, pages }
    }

    /// Number of pages with checksums.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// A change of the number at `at` of page `page`, which has 8, 4, 2 or 1 bytes; `width` is the logarithm of their number.
    pub fn change(page: usize, at: u16, value: i8, width: u8) -> [u8; CHANGE_BYTES] {
        let ([low, high], [at_low, at_high]) = ((page as u16).to_le_bytes(), at.to_le_bytes());
        [low, high, at_low, at_high, value as u8, width]
    }

    /// The image with `changes`. If `is_repaired` their checksums are corrected, except those of hosts' contents.
    pub fn changed(&self, changes: &[u8], is_repaired: bool) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let mut touched = Vec::new();
        for change in changes.chunks_exact(CHANGE_BYTES) {
            let number = |at: usize| usize::from(u16::from_le_bytes([change[at], change[at + 1]]));
            let page = self.pages[number(0) % self.pages.len()];
            let (Checked::Own(first) | Checked::Listed { page: first, .. }) = page;
            let at = number(2) % CHECKSUM_AT;
            let width = (1 << (change[5] % 4)).min(CHECKSUM_AT - at);
            let value = i64::from(change[4] as i8).to_le_bytes();
            bytes[first + at..][..width].copy_from_slice(&value[..width]);
            touched.push(page);
        }
        if is_repaired {
            // Checksums of headers after those of the pages that they list.
            touched.iter().for_each(|page| page.repair_listed(&mut bytes));
            touched.iter().for_each(|page| page.repair_own(&mut bytes));
        }
        bytes
    }
}

impl Checked {
    fn repair_listed(self, bytes: &mut [u8]) {
        let Checked::Listed { page, spare, header } = self else { return };
        let content = &mut bytes[page..page + PAGE_BYTES];
        if content.starts_with(b"TantCkpt") {
            content[SEAL_AT..SEAL_AT + 4].fill(0);
            let seal = crc32c(content);
            content[SEAL_AT..SEAL_AT + 4].copy_from_slice(&seal.to_le_bytes());
        }
        let checksum = crc32c(content);
        bytes[spare + PAGE_CHECKSUM_AT..][..4].copy_from_slice(&checksum.to_le_bytes());
        Checked::Own(header).repair_own(bytes);
    }

    fn repair_own(self, bytes: &mut [u8]) {
        let Checked::Own(at) = self else { return };
        let checksum = crc32c(&bytes[at..at + CHECKSUM_AT]);
        bytes[at + CHECKSUM_AT..at + PAGE_BYTES].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// The whole records and pages of checkpoints that the page at `header` lists, if it is a header.
fn listed(bytes: &[u8], header: usize) -> Vec<Checked> {
    let Some(page) = bytes.get(header..header + PAGE_BYTES) else { return Vec::new() };
    if !page.starts_with(HEADER_MAGIC) {
        return Vec::new();
    }
    let count = usize::from(u16::from_le_bytes([page[10], page[11]]));
    let mut found = Vec::new();
    for (index, spare) in
        page[SPARES_AT..CHECKSUM_AT].chunks_exact(SPARE_BYTES).take(count).enumerate()
    {
        let at = header + (1 + index) * PAGE_BYTES;
        let checksum = bytes.get(at..at + PAGE_BYTES).map(|content| crc32c(content).to_le_bytes());
        let is_whole = checksum.is_some_and(|sum| spare[PAGE_CHECKSUM_AT..][..4] == sum);
        if [RECORD, CHECKPOINT].contains(&spare[KIND_AT]) && is_whole {
            let spare = header + SPARES_AT + index * SPARE_BYTES;
            found.push(Checked::Listed { page: at, spare, header });
        }
    }
    found
}
