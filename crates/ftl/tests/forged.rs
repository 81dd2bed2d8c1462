//! Pages of a medium that were written with a right checksum and invalid content, as by a faulty program or by hand:
//! opening is refused with the reason and the place, and nothing is changed. The pages are found and changed by the
//! bytes that docs/format.md describes.
use crate::damage_everywhere::{
    End, FEW_ZONES, MANY_ZONES, PAGES, SLOTS_PER_ZONE, ZONES_BYTE, media, options, used_for,
};
use crate::support::recover;
use tantalum_base::checksum::crc32c;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageNo, PageRange, Payload, Result};
use tantalum_ftl::FtlOptions;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

const CHECKSUM_AT: usize = PAGE_BYTES - 4;
const SPARES_AT: usize = 128;
const SPARE_BYTES: usize = 24;
const KIND_AT: usize = 20;
const RECORD: u8 = 3;
const CHECKPOINT: u8 = 4;

const HOST: u8 = 0;
const CLEANING: u8 = 1;
const META: u8 = 2;

const TRIMS: u64 = 0x5461_5243;
const SHARES: u64 = 0x5461_5348;
const REFERENCES: u64 = 0x5461_5352;
const DEAD: u64 = 0x5461_4456;
/// Kinds of pieces of a checkpoint.
const ZONES: u64 = 1;
const MAP: u64 = 2;
const FOOTER: u64 = 3;
const SEAL_AT: usize = 36;

/// The first byte of a number, its width in bytes, and its new value.
type Field = (usize, usize, u64);

/// The image of a medium, to be changed.
struct Image(Vec<u8>);

impl Image {
    fn page(&mut self, at: usize) -> &mut [u8] {
        &mut self.0[at..at + PAGE_BYTES]
    }

    fn number(&self, at: usize, bytes: usize) -> u64 {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(&self.0[at..at + bytes]);
        u64::from_le_bytes(number)
    }

    /// First bytes of the headers of appends of `stream`.
    fn headers(&self, stream: u8) -> Vec<usize> {
        let pages = (0..self.0.len()).step_by(PAGE_BYTES);
        let is_header =
            |at: &usize| self.0[*at..].starts_with(b"TantalZA") && self.0[at + 12] == stream;
        pages.filter(is_header).collect()
    }

    /// First bytes of the pages of `kind` in appends of `stream`, each with the first byte of its header and of its
    /// spare.
    fn listed(&self, stream: u8, kind: u8) -> Vec<(usize, usize, usize)> {
        let mut pages = Vec::new();
        for header in self.headers(stream) {
            for index in 0..self.number(header + 10, 2) as usize {
                let (spare, at) =
                    (header + SPARES_AT + index * SPARE_BYTES, header + (1 + index) * PAGE_BYTES);
                let is_whole =
                    self.number(spare + 16, 4) == u64::from(crc32c(&self.0[at..at + PAGE_BYTES]));
                if self.0[spare + KIND_AT] == kind && is_whole {
                    pages.push((at, header, spare));
                }
            }
        }
        pages
    }

    /// Writes `value` into `bytes` bytes at `at`.
    fn put(&mut self, at: usize, bytes: usize, value: u64) {
        self.0[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }

    fn repair_header(&mut self, at: usize) {
        let checksum = crc32c(&self.0[at..at + CHECKSUM_AT]);
        self.put(at + CHECKSUM_AT, 4, u64::from(checksum));
    }

    /// Changes a field of each header of `stream`.
    fn forge_headers(&mut self, stream: u8, at: usize, bytes: usize, value: u64) {
        for header in self.headers(stream) {
            self.put(header + at, bytes, value);
            self.repair_header(header);
        }
    }

    /// Changes a field of each page of `kind` in `stream` for which `is_it` returns true; returns their number.
    fn forge(
        &mut self,
        stream: u8,
        kind: u8,
        is_it: impl Fn(&[u8]) -> bool,
        field: Field,
    ) -> usize {
        let listed = self.listed(stream, kind);
        let found: Vec<_> =
            listed.into_iter().filter(|(at, ..)| is_it(&self.0[*at..at + PAGE_BYTES])).collect();
        for (at, header, spare) in &found {
            self.put(at + field.0, field.1, field.2);
            if kind == CHECKPOINT {
                self.put(at + SEAL_AT, 4, 0);
                let seal = crc32c(self.page(*at));
                self.put(at + SEAL_AT, 4, u64::from(seal));
            }
            let checksum = crc32c(self.page(*at));
            self.put(spare + 16, 4, u64::from(checksum));
            self.repair_header(*header);
        }
        found.len()
    }
}

/// Opens a device on `image`, uses it, and closes it.
fn open(image: &Image, accept_loss: bool) -> Result<()> {
    let (disk, runtime) = (MemoryStore::with_image(&image.0), Virtual::new(Schedule::Fifo));
    let store = disk.clone();
    let options = FtlOptions { accept_loss, ..options() };
    let opened = async move {
        let (ftl, _) = recover(media(&store, false), options).await?;
        let mut page = [PageBuf::zero()];
        for at in 0..options.pages {
            _ = ftl.read(&[PageNo(at)], &mut page).await;
        }
        ftl.write(&[(PageNo(3), PageBuf::zero())], true).await?;
        ftl.trim(PageRange::new(PageNo(2), 9), true).await?;
        ftl.close().await
    };
    let result = runtime.run(opened).unwrap();
    if result.is_err() && !accept_loss {
        assert!(disk.image() == image.0, "what was refused was changed");
    }
    result
}

/// Checks that opening is refused as `Corrupt`, with `says` in the error. With loss accepted, opening may succeed or
/// fail.
fn is_refused(image: &Image, says: &str) {
    let error = open(image, false).expect_err(says);
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains(says), "{error}\nshould say: {says}");
    if let Err(error) = open(image, true) {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

/// A device that was used at random, then killed: with many zones, few of which are cleaned, or with few zones.
fn used_image(zones: u32, seed: u64) -> Image {
    Image(used_for(seed, 400, End::Killed, zones).disk.image())
}

const ALL: u64 = u64::MAX;

#[test]
fn a_header_of_hosts_that_makes_no_sense_is_refused() {
    let fields: [(usize, usize, u64, &str); 13] = [
        (SPARES_AT, 8, PAGES, "it names page 150, but there are only 150"),
        (SPARES_AT, 8, ALL, "it names page 18446744073709551615"),
        (SPARES_AT + 8, 8, ALL, "it names version 18446744073709551615"),
        (SPARES_AT + 8, 8, (1 << 46) - 1, "it names version 70368744177663"),
        (48, 8, ALL, "it names version 18446744073709551615"),
        (56, 8, ALL, "it names version 18446744073709551615"),
        (56, 8, 0, "changes from version 0 on"),
        (64, 4, 0, "a batch of 0 changes"),
        (64, 4, u64::from(u32::MAX), "a batch of 4294967295 changes"),
        (12, 1, 4, "it is of stream 4"),
        (12, 1, 255, "it is of stream 255"),
        // No record of such openings was written before.
        (40, 8, ALL, ""),
        (40, 8, 0, ""),
    ];
    for (at, bytes, value, says) in fields {
        let mut image = used_image(FEW_ZONES, 1);
        image.forge_headers(HOST, at, bytes, value);
        is_refused(&image, says);
    }
}

#[test]
fn a_header_says_where_it_lies_and_what_is_to_be_done() {
    let mut image = used_image(FEW_ZONES, 1);
    let epoch = |at: &usize| image.number(at + 40, 8);
    let last = image.headers(HOST).into_iter().max_by_key(epoch).unwrap();
    let slot = (last - ZONES_BYTE as usize) / PAGE_BYTES;
    image.put(last + SPARES_AT, 8, 12345);
    image.repair_header(last);
    let slots = SLOTS_PER_ZONE as usize;
    let place = format!(
        "zone {}, the append whose pages begin at slot {}: ",
        slot / slots,
        slot % slots + 1
    );
    is_refused(&image, &place);
    is_refused(&image, "--accept-loss");
    assert!(open(&image, true).is_ok(), "it counts as damaged where loss is accepted");
}

#[test]
fn copies_of_pages_that_there_are_none_of_are_refused() {
    let mut image = used_image(FEW_ZONES, 1);
    image.forge_headers(CLEANING, SPARES_AT, 8, 1 << 40);
    is_refused(&image, "it names page 1099511627776");
    // The batch of a copy has no meaning.
    let mut image = used_image(FEW_ZONES, 1);
    image.forge_headers(CLEANING, 56, 8, ALL);
    image.forge_headers(META, 56, 8, ALL);
    open(&image, false).unwrap();
}

#[test]
fn records_of_what_there_is_not_are_refused() {
    let fields: [(u64, u8, Field, &str); 14] = [
        (TRIMS, HOST, (16, 8, PAGES + 1), "pages from page 151 on, of 150"),
        (TRIMS, HOST, (16, 8, ALL), "pages from page 18446744073709551615 on"),
        (TRIMS, HOST, (24, 8, PAGES + 1), "it trims 151 pages"),
        (TRIMS, HOST, (24, 8, ALL), "it trims 18446744073709551615 pages"),
        (TRIMS, HOST, (8, 8, 2), "record of unknown kind 2"),
        (TRIMS, HOST, (4, 4, 171), "record page without its magic number"),
        (SHARES, HOST, (16, 4, PAGES), "it names page 150"),
        (SHARES, HOST, (20, 4, u64::from(u32::MAX)), "it names page 4294967295"),
        (SHARES, HOST, (24, 8, ALL), "it names version 18446744073709551615"),
        (
            SHARES,
            HOST,
            (32, 4, u64::from(MANY_ZONES * SLOTS_PER_ZONE)),
            "it names slot 768, but there are only 768",
        ),
        (REFERENCES, CLEANING, (8, 4, PAGES), "it names page 150"),
        (REFERENCES, CLEANING, (16, 8, ALL), "it names version 18446744073709551615"),
        (DEAD, CLEANING, (8, 8, ALL), "it names version 18446744073709551614"),
        (DEAD, CLEANING, (16, 4, 0), " as dead"),
    ];
    for (magic, stream, field, says) in fields {
        let zones = if stream == HOST { MANY_ZONES } else { FEW_ZONES };
        let is_it = |page: &[u8]| page[..4] == magic.to_le_bytes()[..4] && page[4] > 0;
        // There may be such records that no opening reads any more.
        let are_read = (1..40).any(|seed| {
            let mut image = used_image(zones, seed);
            let is_read =
                image.forge(stream, RECORD, is_it, field) > 0 && open(&image, false).is_err();
            if is_read {
                is_refused(&image, says);
            }
            is_read
        });
        assert!(are_read, "no such records are read: {says}");
    }
}

#[test]
fn a_share_whose_content_is_a_record_is_refused() {
    let mut image = used_image(MANY_ZONES, 1);
    let mut records = image.listed(HOST, RECORD);
    records.sort_by_key(|(.., spare)| std::cmp::Reverse(image.number(spare + 8, 8)));
    let is = |at: usize, magic: u64| image.number(at, 4) == magic;
    let share = records.iter().position(|(at, ..)| is(*at, SHARES)).unwrap();
    let trim = records[share..].iter().find(|(at, ..)| is(*at, TRIMS)).unwrap().0;
    let share = records[share].0;
    for record in [trim, share] {
        let slot = (record - ZONES_BYTE as usize) / PAGE_BYTES;
        // As if the zone had not been opened again.
        for field in [(32, 4, slot as u64), (8, 8, 1 << 40)] {
            image.forge(HOST, RECORD, |page| page[..4] == SHARES.to_le_bytes()[..4], field);
        }
        let error = open(&image, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        let text = error.to_string();
        assert!(
            text.contains("to a record in slot")
                || text.contains("is mapped to the slot of this record"),
            "{text}"
        );
    }
}

#[test]
fn a_checkpoint_that_makes_no_sense_is_refused() {
    let fields: [(u64, Field, &str); 12] = [
        (FOOTER, (40, 8, ALL), "covered up to 18446744073709551615"),
        (FOOTER, (48, 8, ALL), "durable up to 18446744073709551615"),
        (FOOTER, (56, 8, 0), "next version 0"),
        (FOOTER, (56, 8, ALL), "it names version 18446744073709551615"),
        (FOOTER, (56, 8, 2), "its versions are out of order"),
        (ZONES, (40, 8, ALL), "it names zone opening 18446744073709551615"),
        (ZONES, (48, 4, 17), "that 17 slots are covered, but a zone has only 16"),
        (ZONES, (52, 4, u64::from(u32::MAX)), "that zone 0 was reset 4294967295 times"),
        (MAP, (20, 4, PAGES), "it names page 150"),
        (MAP, (20, 4, u64::from(u32::MAX) - 5), "it names page 4294967290"),
        (MAP, (32, 4, u64::from(u32::MAX)), "the map of checkpoint"),
        // An entry of another page, whose number follows.
        (MAP, (40, 5, 0xff_ffff_ff40), "it names page 4294967295"),
    ];
    for (kind, field, says) in fields {
        let mut image = used_image(FEW_ZONES, 1);
        let is_it = |page: &[u8]| page[16..20] == kind.to_le_bytes()[..4];
        assert!(image.forge(META, CHECKPOINT, is_it, field) > 0, "no such pages: {says}");
        is_refused(&image, says);
    }
}

/// Anchors are never necessary: if they make no sense, recovery scans every zone.
#[test]
fn anchors_that_make_no_sense_do_not_count() {
    let whole = used_image(FEW_ZONES, 1);
    let anchors = || (0..ZONES_BYTE as usize).step_by(PAGE_BYTES);
    // Their number, and fields of their content: era, checkpoint, anchors that begin it, index, a place, zones.
    for (at, bytes) in [
        (24, 8),
        (40, 8),
        (48, 8),
        (60, 4),
        (64, 4),
        (68, 4),
        (72, 4),
        (80, 4),
        (84, 4),
        (88, 4),
        (92, 4),
        (96, 8),
        (104, 8),
    ] {
        for value in [ALL, ALL >> 1, 1 << 31] {
            let mut image = Image(whole.0.clone());
            let written: Vec<usize> =
                anchors().filter(|at| image.0[*at..].starts_with(b"TantAnch")).collect();
            assert!(!written.is_empty());
            for anchor in written {
                image.put(anchor + at, bytes, value);
                image.repair_header(anchor);
            }
            match open(&image, false) {
                // Smaller values may be valid: if recovery trusts them, it may miss the content that they refer to.
                Err(error) if value != ALL => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}")
                }
                opened => opened.unwrap_or_else(|error| panic!("{bytes} bytes at {at}: {error}")),
            }
        }
    }
}
