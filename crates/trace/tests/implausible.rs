//! Impossible binary records: bytes of another kind, read with a named format.
mod support;

use std::io::Cursor;
use std::path::Path;
use support::{options, oracle, r, vscsi};
use tantalum_base::Result;
use tantalum_trace::open::read;
use tantalum_trace::{AnyReader, BlockEvent, PageEvent};

fn pages(format: &str, bytes: &[u8]) -> Result<Vec<PageEvent>> {
    let source = Box::new(Cursor::new(bytes.to_vec()));
    match read(Path::new("t"), source, &options(format))? {
        AnyReader::Page(reader) => reader.collect(),
        AnyReader::Block(_) => panic!("{format} was read as blocks"),
    }
}

fn blocks(format: &str, bytes: &[u8]) -> Result<Vec<BlockEvent>> {
    let source = Box::new(Cursor::new(bytes.to_vec()));
    match read(Path::new("t"), source, &options(format))? {
        AnyReader::Block(reader) => reader.collect(),
        AnyReader::Page(_) => panic!("{format} was read as pages"),
    }
}

/// Bytes that look random.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

#[test]
fn what_is_no_record_is_refused_at_the_first_unless_told_to_go_on() {
    let garbage = noise(24 * 1000);
    let shown = pages("oracle_general", &garbage).unwrap_err().to_string();
    assert!(shown.starts_with("t: byte ") && shown.contains("no oracle_general"), "{shown}");
    assert_eq!(pages("oracle_general:check=no", &garbage).unwrap().len(), 1000);

    let future = |next| oracle(&[(1, 5, 9, -1), (1, 6, 9, next), (1, 7, 9, -1)]);
    for next in [1 << 40, -3] {
        let shown = pages("oracle_general", &future(next)).unwrap_err().to_string();
        assert!(shown.starts_with("t: byte 24: the next access is request "), "{shown}");
        assert!(shown.contains("oracle_general:check=no"), "{shown}");
    }
    for (next, why) in
        [(0, "request 0:"), (1, "not after this one, 2"), (2, "not after this one, 2")]
    {
        let shown = pages("oracle_general", &future(next)).unwrap_err().to_string();
        assert!(shown.starts_with("t: byte 24: ") && shown.contains(why), "{shown}");
    }
    for next in [-2, 3, 1 << 39, i64::MAX] {
        assert_eq!(pages("oracle_general", &future(next)).unwrap().len(), 3, "{next}");
    }
    for (time, way) in [(1_000_000_000, "ahead"), (1, "back")] {
        let bytes = oracle(&[(100_000, 5, 9, -1), (time, 6, 9, -1)]);
        let shown = pages("oracle_general", &bytes).unwrap_err().to_string();
        assert!(shown.contains(&format!("the time jumps {way}")), "{shown}");
        assert_eq!(pages("oracle_general:check=no", &bytes).unwrap(), [r(5), r(6)]);
    }
    // A record that comes a little late is accepted.
    assert_eq!(pages("oracle_general", &oracle(&[(9, 5, 9, -1), (8, 6, 9, -1)])).unwrap().len(), 2);
}

/// A hole in a file, or a file that was given its length before it was written, reads as zeros.
#[test]
fn zeros_within_and_behind_a_trace_are_refused() {
    let records: Vec<(u32, u64, u32, i64)> =
        (0..20_000).map(|at| (at / 100, u64::from(at), 4096, -1)).collect();
    let sound = oracle(&records);
    assert_eq!(pages("", &sound).unwrap().len(), 20_000);
    let behind = [&sound[..], &vec![0; 24 * 10]].concat();
    let mut within = sound.clone();
    within[24 * 15_000..24 * 16_000].fill(0);
    for (bytes, at) in [(behind, 20_000), (within, 15_000)] {
        let shown = pages("", &bytes).unwrap_err().to_string();
        assert!(shown.starts_with(&format!("t: byte {}: the next access", 24 * at)), "{shown}");
    }
}

#[test]
fn commands_that_no_disk_gets_are_refused_unless_told_to_go_on() {
    let mut bytes = vscsi(1, &[(0x2a, 512, 1), (0x2a, 512, 2)]);
    bytes[32 + 31] = 0x7f;
    let shown = blocks("vscsi", &bytes).unwrap_err().to_string();
    assert!(shown.starts_with("t: byte 32: the time jumps ahead"), "{shown}");
    assert_eq!(blocks("vscsi:check=no", &bytes).unwrap().len(), 2);
    for (record, why) in [
        ((0x28, 512, 1 << 50), "the block lies 576460752303423488 bytes into the disk"),
        ((0x28, 1 << 31, 1), "a command reads 2147483648 bytes"),
    ] {
        let bytes = vscsi(2, &[(0x2a, 512, 1), record]);
        let shown = blocks("vscsi", &bytes).unwrap_err().to_string();
        assert!(shown.starts_with("t: byte 40: ") && shown.contains(why), "{shown}");
        assert_eq!(blocks("vscsi:check=no", &bytes).unwrap().len(), 2);
    }
    let record = |op: u8| {
        let (page, pages) = (7_u64.to_le_bytes(), (1_u32 << 29).to_le_bytes());
        [&b"tantalum pages 1"[..], &page, &pages, &[op, 0, 0, 0]].concat()
    };
    let shown = pages("page_binary", &record(2)).unwrap_err().to_string();
    assert!(shown.contains("more than 2^28 pages") && shown.contains("check=no"), "{shown}");
    assert_eq!(pages("page_binary:check=no", &record(2)).unwrap().len(), 1);
    assert_eq!(pages("", &record(3)).unwrap().len(), 1);
}
