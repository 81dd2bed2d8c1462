//! Anchors: pages beside the zones that tell recovery where to begin.
//!
//! Anchor `n` is stored at place `n` modulo the number of places, so an interrupted write damages only the oldest
//! anchor. Each anchor has two copies, in two consecutive areas, so a single damaged block loses no anchor
//! (docs/format.md, "Anchors").
use super::FileZones;
use crate::block_store::{BlockStore, IoBuf};
use crate::zone::AnchorCopies;
use std::collections::BTreeMap;
use std::pin::pin;
use tantalum_base::checksum::crc32c;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result, ResultExt};

/// The first bytes of an anchor.
pub const ANCHOR_MAGIC: [u8; 8] = *b"TantAnch";
const CONTENT_AT: usize = 40;
const CHECKSUM_AT: usize = PAGE_BYTES - 4;

/// Anchor numbers are below this; a page with a higher number is not an anchor.
const NUMBERS_END: u64 = 1 << 62;

/// Maximum bytes of content in an anchor.
pub const ANCHOR_BYTES_MAX: usize = CHECKSUM_AT - CONTENT_AT;

/// Location of the anchors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnchorArea {
    pub(super) first_byte: u64,
    /// Number of places in each of the two copies.
    pub(super) places: u32,
}

/// Bytes of the store that `places` anchors occupy.
pub const fn anchor_area_bytes(places: u32) -> u64 {
    2 * places as u64 * PAGE_BYTES as u64
}

fn encode(page: &mut [u8], volume_id: u128, number: u64, content: &[u8]) {
    page.fill(0);
    page[..8].copy_from_slice(&ANCHOR_MAGIC);
    page[8..24].copy_from_slice(&volume_id.to_le_bytes());
    page[24..32].copy_from_slice(&number.to_le_bytes());
    page[32..36].copy_from_slice(&(content.len() as u32).to_le_bytes());
    page[CONTENT_AT..CONTENT_AT + content.len()].copy_from_slice(content);
    let checksum = crc32c(&page[..CHECKSUM_AT]);
    page[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
}

/// Number and content of the anchor in `page`; `None` if it holds no anchor of this volume.
fn decode(page: &[u8], volume_id: u128) -> Option<(u64, &[u8])> {
    let long = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().expect("8 bytes"));
    let word = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().expect("4 bytes"));
    let whole = page.starts_with(&ANCHOR_MAGIC)
        && page[8..24] == volume_id.to_le_bytes()
        && word(CHECKSUM_AT) == crc32c(&page[..CHECKSUM_AT]);
    let length = word(32) as usize;
    (whole && length <= ANCHOR_BYTES_MAX && long(24) < NUMBERS_END)
        .then(|| (long(24), &page[CONTENT_AT..CONTENT_AT + length]))
}

impl<S: BlockStore> FileZones<S> {
    /// Adds `places` anchors at `first_byte` of the store; [`anchor_area_bytes`] must be reserved there.
    pub fn with_anchors(mut self, first_byte: u64, places: u32) -> Self {
        let end = first_byte + anchor_area_bytes(places);
        let zones = self.byte_of(tantalum_base::SlotNo(0));
        assert!(end <= zones, "anchors to byte {end} and zones from byte {zones} on");
        self.anchors = Some(AnchorArea { first_byte, places });
        self
    }

    pub(super) async fn write_both(&self, number: u64, content: &[u8]) -> Result<()> {
        let area = self.anchors.expect("a medium without anchors is asked to write none");
        assert!(content.len() <= ANCHOR_BYTES_MAX, "an anchor of {} bytes", content.len());
        let copy = |copy: u64| {
            let mut page = self.store.buffer(PAGE_BYTES);
            encode(&mut page, self.options.volume_id, number, content);
            let place = copy * u64::from(area.places) + number % u64::from(area.places);
            self.write_copy(area.first_byte + place * PAGE_BYTES as u64, page)
        };
        super::read::join([pin!(copy(0)), pin!(copy(1))])
            .await
            .context(|| format!("writing anchor {number}"))
    }

    async fn write_copy(&self, byte: u64, page: IoBuf) -> Result<()> {
        let page = self.store.write(byte, page, true).await?;
        self.store.recycle(page);
        Ok(())
    }

    /// Reads each copy of the anchors separately.
    pub(super) async fn read_copies(&self) -> Option<AnchorCopies> {
        let area = self.anchors?;
        let mut copies = AnchorCopies::default();
        for (copy, found) in (0..).zip(&mut copies) {
            for place in 0..u64::from(area.places) {
                let at = copy * u64::from(area.places) + place;
                let buf = self.store.buffer(PAGE_BYTES);
                let read = self.store.read(area.first_byte + at * PAGE_BYTES as u64, buf).await;
                let buf = match read {
                    Ok(buf) => buf,
                    Err(error) => {
                        found.push(Err(error));
                        continue;
                    }
                };
                let anchor = decode(&buf, self.options.volume_id);
                let anchor = anchor.filter(|it| it.0 % u64::from(area.places) == place);
                found.push(Ok(anchor.map(|(number, content)| (number, content.to_vec()))));
                self.store.recycle(buf);
            }
        }
        Some(copies)
    }

    /// Reads one copy of all places. A place that cannot be read gives zeros and its error.
    async fn read_copy(&self, area: AnchorArea, copy: u64) -> Result<(IoBuf, Vec<Option<Error>>)> {
        let places = area.places as usize;
        let first_byte = area.first_byte + copy * (places * PAGE_BYTES) as u64;
        let together = self.store.read(first_byte, self.store.buffer(places * PAGE_BYTES)).await;
        let Err(failure) = together else { return together.map(|buf| (buf, Vec::new())) };
        if failure.kind() == ErrorKind::PowerCut {
            return Err(failure);
        }
        let mut whole = self.store.buffer(places * PAGE_BYTES);
        let mut failures = Vec::with_capacity(places);
        for (place, page) in (0..).zip(whole.chunks_exact_mut(PAGE_BYTES)) {
            let byte = first_byte + place * PAGE_BYTES as u64;
            match self.store.read(byte, self.store.buffer(PAGE_BYTES)).await {
                Ok(buf) => {
                    page.copy_from_slice(&buf);
                    self.store.recycle(buf);
                    failures.push(None);
                }
                Err(error) => {
                    page.fill(0);
                    failures.push(Some(error));
                }
            }
        }
        Ok((whole, failures))
    }

    /// Reads the anchors. If one copy of a place cannot be read, the other one is used.
    ///
    /// # Errors
    /// The error of a place if neither of its copies can be read. Then it is unknown which zones were opened after the
    /// checkpoint.
    pub(super) async fn read_all(&self) -> Result<Vec<(u64, Vec<u8>)>> {
        let Some(area) = self.anchors else { return Ok(Vec::new()) };
        let mut found: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
        let mut unread: Vec<Option<Error>> = Vec::new();
        for copy in 0..2 {
            let (buf, failures) = self.read_copy(area, copy).await?;
            for (place, page) in (0..).zip(buf.chunks_exact(PAGE_BYTES)) {
                let Some((number, content)) = decode(page, self.options.volume_id) else {
                    continue;
                };
                let known = found.entry(number).or_default();
                let is_new = known.iter().all(|known| known != content);
                if is_new && number % u64::from(area.places) == place {
                    known.push(content.to_vec());
                }
            }
            self.store.recycle(buf);
            let in_both = unread
                .iter()
                .zip(&failures)
                .find_map(|(one, other)| one.as_ref().and(other.as_ref()));
            if let Some(error) = in_both {
                return Err(error.clone().wrap("neither copy of an anchor can be read"));
            }
            unread = failures;
        }
        let each = |(number, contents): (u64, Vec<Vec<u8>>)| {
            contents.into_iter().map(move |content| (number, content))
        };
        Ok(found.into_iter().flat_map(each).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_comes_back_and_any_flipped_bit_is_found() {
        let mut page = vec![0xff; PAGE_BYTES];
        let content: Vec<u8> = (0..ANCHOR_BYTES_MAX).map(|at| at as u8).collect();
        encode(&mut page, 7, 1 << 40, &content);
        assert_eq!(decode(&page, 7), Some((1 << 40, &content[..])));
        assert_eq!(decode(&page, 8), None, "another volume's");
        for byte in 0..PAGE_BYTES {
            page[byte] ^= 1 << (byte % 8);
            assert_eq!(decode(&page, 7), None, "byte {byte}");
            page[byte] ^= 1 << (byte % 8);
        }
        encode(&mut page, 7, 3, b"short");
        assert_eq!(decode(&page, 7), Some((3, &b"short"[..])));
    }
}
