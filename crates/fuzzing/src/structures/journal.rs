//! The structures of a journal, and the claim on a home.
use super::{Entries, Field, Means, Sealed, Structure};
use super::{fields, is_sealed, number};
use tantalum_base::PAGE_BYTES;
use tantalum_base::checksum::crc32c;

type Layout = &'static [(&'static str, usize, usize, Means)];

/// The stores of a volume, in their order in a scene.
pub(crate) const JOURNAL: usize = 1;
pub(crate) const HOME: usize = 2;

pub(super) const SECTOR: usize = 512;
/// Where the last line of a claim's text begins, and where its eight digits do.
pub(super) const CLAIM_LINE_AT: usize = 498;
pub(super) const CLAIM_CHECKSUM_AT: usize = 503;
const CONTENTS_AT: usize = 1 << 20;
const HEADS_AT: [usize; 2] = [0, 512 << 10];

const HEAD: Layout = &[
    ("format", 8, 4, Means::State),
    ("state", 12, 2, Means::State),
    ("claim", 14, 2, Means::State),
    ("volume id", 16, 8, Means::Identity),
    ("pages of the home", 32, 8, Means::Emptied),
    ("sequence", 40, 8, Means::Sequence),
    ("epoch", 48, 8, Means::Sequence),
    ("time", 56, 8, Means::Time),
    ("contents", 64, 4, Means::Count),
    ("index checksum", 68, 4, Means::Checksum),
    ("ranges of zeros", 72, 8, Means::Count),
    ("version", 80, 8, Means::Version),
    ("lacked", 88, 4, Means::Count),
    ("lacked page", 92, 8, Means::Emptied),
];
const INDEX: Layout = &[
    ("volume id", 8, 8, Means::Identity),
    ("epoch", 24, 8, Means::Sequence),
    ("number", 32, 4, Means::Count),
    ("entries", 36, 4, Means::Count),
];
const CONTENT: Layout = &[
    ("page", 0, 8, Means::Page),
    ("place", 8, 4, Means::Place),
    ("checksum", 12, 4, Means::Checksum),
];
const ZEROS: Layout =
    &[("zeros first", 0, 8, Means::Emptied), ("zeros", 8, 8, Means::EmptiedPages)];
const CHANGE: Layout = &[
    ("home bytes", 8, 8, Means::Size),
    ("checksum of the ends", 16, 4, Means::Checksum),
    ("claims", 20, 4, Means::State),
];
const MARK: Layout = &[
    ("sequence", 8, 8, Means::Sequence),
    ("state", 16, 4, Means::State),
    ("checked pages", 20, 4, Means::Count),
    ("home bytes", 24, 8, Means::Size),
    ("modified", 32, 8, Means::Time),
    ("page checksum", 64, 4, Means::Checksum),
];

/// The structures in the images of a journal and a home.
pub(super) fn structures(journal: &[u8], home: &[u8]) -> Vec<Structure> {
    let mut found = Vec::new();
    let heads: Vec<usize> = HEADS_AT.into_iter().filter(|at| is_sealed(journal, *at)).collect();
    let newest = heads.iter().copied().max_by_key(|at| number(journal, at + 40, 8));
    let committed = newest.filter(|at| number(journal, at + 12, 2) == 1);
    let contents = committed.map_or(0, |head| number(journal, head + 64, 4) as usize);
    let ranges = committed.map_or(0, |head| number(journal, head + 72, 8) as usize);
    let of_index = (contents + ranges).div_ceil(252);
    let pages: Vec<usize> =
        (contents..contents + of_index).map(|page| CONTENTS_AT + page * PAGE_BYTES).collect();
    for at in &heads {
        let age = number(journal, at + 40, 8);
        found.push(Structure { age, ..of_journal("head of the journal", *at, fields(*at, HEAD)) });
    }
    for (index, at) in pages.iter().copied().enumerate().filter(|(_, at)| is_sealed(journal, *at)) {
        found.push(index_page(index, at, contents, ranges, &heads, &pages));
    }
    for at in [4096, 8192, 12288, 16384].into_iter().filter(|at| is_sealed(journal, *at)) {
        match &journal[at..at + 8] {
            b"TantClam" => {
                found.push(of_journal("record of a claim", at, fields(at, CHANGE)));
                let texts = [at + SECTOR, at + 2 * SECTOR].into_iter();
                let is_claim = |at: &usize| journal[*at..].starts_with(b"Tantalum claim");
                found.extend(texts.filter(is_claim).map(|text| Structure {
                    page: text,
                    fields: digits(text),
                    sealed: Sealed::Text { ranges: Vec::new() },
                    ..of_journal("claim in the journal", at, Vec::new())
                }));
            }
            b"TantMark" => found.push(of_journal("mark of the home", at, fields(at, MARK))),
            _ => {}
        }
    }
    found.extend(claims(home));
    found
}

fn of_journal(name: &'static str, page: usize, fields: Vec<Field>) -> Structure {
    let (entries, packed) = (None, None);
    let sealed = Sealed::Page;
    Structure { name, store: JOURNAL, page, age: 0, sealed, fields, entries, packed }
}

fn index_page(
    index: usize,
    at: usize,
    contents: usize,
    ranges: usize,
    heads: &[usize],
    pages: &[usize],
) -> Structure {
    let (first, count) = (index * 252, (contents + ranges - index * 252).min(252));
    let mut all = fields(at, INDEX);
    for entry in 0..count {
        let layout = if first + entry < contents { CONTENT } else { ZEROS };
        all.extend(fields(at + 48 + entry * 16, layout));
    }
    let sealed = Sealed::Heads { heads: heads.to_vec(), pages: pages.to_vec() };
    let entries = Some(Entries { first: at + 48, bytes: 16, count });
    Structure { sealed, entries, ..of_journal("index page", at, all) }
}

/// The numbers in the text of a claim, each of eight hexadecimal digits that are changed as bytes.
fn digits(text: usize) -> Vec<Field> {
    const DIGITS: Layout = &[
        ("volume digits", 24, 8, Means::Identity),
        ("last volume digits", 48, 8, Means::Identity),
        ("bytes digits", 63, 8, Means::Size),
        ("last bytes digits", 71, 8, Means::Size),
        ("journal path", 88, 4, Means::Identity),
    ];
    fields(text, DIGITS)
}

/// The claim that `home` shows: on both ends, and on the first one alone.
fn claims(home: &[u8]) -> Vec<Structure> {
    let mut sectors = (0..home.len().min(1 << 20)).step_by(SECTOR);
    let Some(text) = sectors.find(|at| home[*at..].starts_with(b"Tantalum claim")) else {
        return Vec::new();
    };
    let ends = [0..1 << 20, home.len() - (1 << 20)..home.len()];
    let claim = |name, ranges| Structure {
        store: HOME,
        page: text,
        sealed: Sealed::Text { ranges },
        ..of_journal(name, text, digits(text))
    };
    vec![
        claim("claim on the home", ends.to_vec()),
        claim("claim on one end of the home", vec![ends[0].clone()]),
    ]
}

/// Corrects the checksums of the index `pages` in `heads`.
pub(super) fn repair_heads(journal: &mut [u8], heads: &[usize], pages: &[usize]) {
    let checksums: Vec<u8> =
        pages.iter().flat_map(|at| journal[at + 4092..at + 4096].to_vec()).collect();
    for head in heads.iter().copied() {
        if number(journal, head + 12, 2) != 1 {
            continue;
        }
        super::put(journal, head + 68, 4, u64::from(crc32c(&checksums)));
        super::log::repair_page(journal, head);
    }
}

/// Corrects the last line of the claim whose text is at `text`; where `ranges` have content under the former text, `before`, they
/// get it under the present one.
pub(super) fn repair_text(
    store: &mut [u8],
    text: usize,
    before: &[u8],
    ranges: &[std::ops::Range<usize>],
) {
    let line = format!("{:08x}\n", crc32c(&store[text..text + CLAIM_LINE_AT]));
    store[text + CLAIM_CHECKSUM_AT..text + SECTOR].copy_from_slice(line.as_bytes());
    let after = store[text..text + SECTOR].to_vec();
    for sector in ranges.iter().flat_map(|range| range.clone().step_by(SECTOR)) {
        if sector == text {
            continue;
        }
        for at in 0..SECTOR {
            store[sector + at] ^= before[at] ^ after[at];
        }
    }
}
