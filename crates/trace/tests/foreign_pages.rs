//! Foreign traces as pages: volumes, page sizes, parts of traces; written traces are read back; and noise never causes
//! a panic.
mod support;

use proptest::prelude::*;
use std::io::Cursor;
use std::path::Path;
use support::{ALIBABA, BLKPARSE, MSR, SPC, TENCENT, options, oracle, r, vscsi, w};
use tantalum_base::{PageNo, Result};
use tantalum_trace::formats::{self, AnyFormat};
use tantalum_trace::open::read;
use tantalum_trace::{AnyReader, Expand, OpenOptions, PageEvent, open_pages, writer};

#[test]
fn volumes_lie_end_to_end_or_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let text = "3,W,0,4096,1\n9,R,4096,8192,2\n3,R,8192,1,3\n9,W,0,512,4\n5,W,4096,4096,5\n";
    std::fs::write(&path, text).unwrap();
    let of = |volumes: &[&str]| -> Result<Vec<PageEvent>> {
        let volumes = volumes.iter().map(|name| (*name).to_owned()).collect();
        open_pages(&path, &OpenOptions { volumes, ..OpenOptions::default() })?.collect()
    };
    let two = |page| PageEvent::Read { page: PageNo(page), pages: 2 };
    // Volumes in the order of first occurrence, each as long as the trace shows: 3, then 9, then 5.
    assert_eq!(of(&[]).unwrap(), [w(0), two(4), r(2), w(3), w(7)]);
    assert_eq!(of(&["5", "3"]).unwrap(), [w(0), r(2), w(4)]);
    assert_eq!(of(&["9"]).unwrap(), [two(1), w(0)]);
    for missing in [&["7"][..], &["3", "7"]] {
        let shown = of(missing).unwrap_err().to_string();
        assert!(shown.contains("no volume \"7\"; it has 3, 9, 5"), "{shown}");
    }
    let layout = open_pages(&path, &OpenOptions::default()).unwrap();
    let extents = layout.layout().unwrap().extents();
    let places: Vec<_> =
        extents.iter().map(|e| (e.volume.as_str(), e.first_page, e.pages)).collect();
    assert_eq!(places, [("3", 0, 3), ("9", 3, 3), ("5", 6, 2)]);
    std::fs::write(&path, "op,page\nR,1\n").unwrap();
    assert!(of(&["3"]).unwrap_err().to_string().contains("no volumes"));
}

/// No page event holds them. Those of volumes that are not read are not counted, nor those of parts, which are read twice.
#[test]
fn truncations_are_left_out_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let text =
        "op,file_kind,offset,length\nW,db,0,4096\nT,wal,0,0\nT,db,4096,0\nW,wal,0,9\nT,wal,0,0\n";
    std::fs::write(&path, text).unwrap();
    let of = |trace: &Path, volumes: &[&str]| {
        let volumes = volumes.iter().map(|name| (*name).to_owned()).collect();
        let options = OpenOptions { volumes, ..OpenOptions::default() };
        let events: Result<Vec<PageEvent>> = open_pages(trace, &options).unwrap().collect();
        let account = options.account;
        (events.unwrap().len(), account.dropped().join(", "), account.truncations())
    };
    let told = |truncations| (2, "truncations".to_owned(), truncations);
    assert_eq!(of(&path, &[]), told(3));
    assert_eq!(of(&path, &["db"]), (1, "truncations".to_owned(), 1));
    let parts = format!("concat:{}", path.display());
    assert_eq!(of(Path::new(&parts), &[]), told(0));
    std::fs::write(&path, "op,file_kind,offset,length\nW,db,0,4096\n").unwrap();
    assert_eq!(of(&path, &[]), (1, String::new(), 0));
}

#[test]
fn page_size_and_expansion_are_options() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.bin");
    std::fs::write(&path, vscsi(1, &[(0x2a, 8192, 9), (0x28, 512, 2)])).unwrap();
    let of = |page_bytes, expand| -> Vec<PageEvent> {
        let options = OpenOptions { page_bytes, expand, ..OpenOptions::default() };
        open_pages(&path, &options).unwrap().map(Result::unwrap).collect()
    };
    // Sectors 9 to 25.
    let long = PageEvent::Write { page: PageNo(1), pages: 3 };
    assert_eq!(of(4096, Expand::No), [long, r(0)]);
    assert_eq!(of(4096, Expand::Yes), [w(1), w(2), w(3), r(0)]);
    assert_eq!(of(4096, Expand::First), [w(1), r(0)]);
    // The first block of each request, as libCacheSim reads it.
    assert_eq!(of(512, Expand::First), [w(9), r(2)]);
}

#[test]
fn parts_of_traces_follow_each_other_in_pages_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a.csv"), folder.path().join("b.csv"));
    std::fs::write(&a, "op,page\nR,1\nW,1500\nC,\nW,3\nR,4\nC,\n").unwrap();
    std::fs::write(&b, "page\n0\n7\n").unwrap();
    let (a, b) = (a.display(), b.display());
    let of = |text: &str| -> Vec<PageEvent> {
        let events = open_pages(Path::new(text), &OpenOptions::default()).unwrap();
        events.map(Result::unwrap).collect()
    };
    let commit = PageEvent::Commit;
    // 1501 pages round up to 2048.
    let text = format!("concat:{a}@50%+{b}+{a}@50%..+{b}@1");
    let expected = [r(1), w(1500), commit, r(2048), r(2055), w(3), r(4), commit, r(2048)];
    assert_eq!(of(&text), expected);
    assert_eq!(of(&format!("concat:{b}+{a}@1..2")), [r(0), r(7), w(1024 + 1500), commit]);
    assert_eq!(of(&format!("concat:scan:pages=3,requests=9@2..4+{b}@1")), [r(2), r(0), r(1024)]);
    // A long request is cut at the end of the part.
    let bin = folder.path().join("v.bin");
    std::fs::write(&bin, vscsi(1, &[(0x2a, 16384, 8), (0x28, 512, 2)])).unwrap();
    let cut = PageEvent::Write { page: PageNo(2), pages: 2 };
    assert_eq!(of(&format!("concat:{}@1..3", bin.display())), [cut]);
    let missing = open_pages(Path::new("concat:/none.csv@1"), &OpenOptions::default());
    assert!(missing.unwrap_err().to_string().contains("/none.csv"));
}

/// A slip of the pen would give an empty trace, or one shorter than it says.
#[test]
fn a_part_without_requests_or_beyond_its_trace_is_refused() {
    let open = |range: &str| {
        let text = format!("concat:scan:pages=3,requests=9@1+scan:pages=3,requests=9@{range}");
        open_pages(Path::new(&text), &OpenOptions::default())
    };
    for (range, shown, why) in [
        ("50%..20%", "scan@50%..20%", "has no request"),
        ("7..3", "scan@7..3", "has no request"),
        ("9..", "scan@9..100%", "has no request"),
        ("0", "scan@0..0", "has no request"),
        ("1%", "scan@0..1%", "has no request"),
        ("10..", "scan@10..100%", "goes beyond the trace"),
        ("0..10", "scan@0..10", "goes beyond the trace"),
    ] {
        let told = open(range).unwrap_err().to_string();
        assert!(told.contains(&format!("{shown} {why}: scan has 9 requests")), "{range}: {told}");
    }
    for (range, requests) in [("0..9", 9), ("8..", 1), ("50%..", 4), ("20%..50%", 3)] {
        assert_eq!(open(range).unwrap().count(), 1 + requests, "{range}");
    }
    // A whole trace may be empty.
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("e.csv");
    std::fs::write(&empty, "op,page\n").unwrap();
    let text = format!("concat:{}", empty.display());
    assert_eq!(open_pages(Path::new(&text), &OpenOptions::default()).unwrap().count(), 0);
}

fn requests(events: &[PageEvent]) -> Vec<(u64, bool)> {
    let all = events.iter().flat_map(PageEvent::requests);
    all.map(|(page, is_write)| (page.0, is_write)).collect()
}

fn any_event() -> impl Strategy<Value = PageEvent> {
    let page = prop_oneof![0u64..20, 0..1u64 << 62];
    (page, 1u32..4, 0..5).prop_map(|(page, pages, kind)| {
        let page = PageNo(page);
        match kind {
            0 | 1 => PageEvent::Read { page, pages },
            2 => PageEvent::Write { page, pages },
            3 => PageEvent::Trim { page, pages },
            _ => PageEvent::Commit,
        }
    })
}

proptest! {
    /// Each format that can be written gives back everything that it promises to keep, and is recognized by its content
    /// (or has the same events as the format that it is recognized as).
    #[test]
    fn what_is_written_comes_back(events in prop::collection::vec(any_event(), 2..100)) {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("a.bin");
        let format = AnyFormat::by_name("page_binary").unwrap();
        let AnyFormat::Page(format) = format else { panic!() };
        let to = writer::Writer::create(&from, format).unwrap();
        writer::write_all(to, events.iter().copied().map(Ok)).unwrap();
        let again: Result<Vec<PageEvent>> = open_pages(&from, &options("")).unwrap().collect();
        prop_assert_eq!(&again.unwrap(), &events);
        for (name, keeps_op) in
            [
                ("page_csv", true),
                ("csv", true),
                ("plain_text", false),
                ("oracle_general", false),
                ("lis", false),
            ]
        {
            let to = folder.path().join(format!("b.{name}.zst"));
            support::convert(&from, &options(""), &to, name).unwrap();
            let sure = requests(&events).len() >= 2 || name == "csv";
            let read_as = if sure { "" } else { name };
            let again: Result<Vec<PageEvent>> =
                open_pages(&to, &options(read_as)).and_then(Iterator::collect);
            let expected: Vec<(u64, bool)> = requests(&events)
                .into_iter()
                .map(|(page, is_write)| (page, is_write && keeps_op))
                .collect();
            prop_assert_eq!(requests(&again.unwrap()), expected, "{}", name);
        }
    }

    /// Arbitrary bytes are events or an error, in every format and without a named format.
    #[test]
    fn noise_is_never_a_panic(bytes in noise()) {
        let named = formats::ALL.iter().map(AnyFormat::name);
        let more = ["", "csv:obj_id=2,op=1,header=no", "vscsi:version=2", "blkparse:action=C"];
        for format in named.chain(more) {
            match read(Path::new("t"), Box::new(Cursor::new(bytes.clone())), &options(format)) {
                Ok(AnyReader::Page(reader)) => drop(reader.collect::<Vec<_>>()),
                Ok(AnyReader::Block(reader)) => drop(reader.collect::<Vec<_>>()),
                Err(_) => {}
            }
        }
    }

    /// The same through the layout of pages, where offsets are added.
    #[test]
    fn noise_as_pages_is_never_a_panic(bytes in noise()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        std::fs::write(&path, &bytes).unwrap();
        for format in formats::ALL.iter().map(AnyFormat::name) {
            for page_bytes in [512, 1 << 20] {
                let options = OpenOptions { page_bytes, ..options(format) };
                if let Ok(events) = open_pages(&path, &options) {
                    drop(events.collect::<Vec<_>>());
                }
            }
        }
    }
}

/// The format numbers requests from 1.
#[test]
fn a_next_access_numbered_zero_is_not_taken_for_oracle_general() {
    let bytes = oracle(&[(1, 5, 9, 0), (1, 5, 9, -1)]);
    assert!(read(Path::new("t"), Box::new(Cursor::new(bytes)), &options("")).is_err());
}

/// Random bytes, and sound traces with a few bytes changed.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let samples: Vec<Vec<u8>> = vec![
        MSR.into(),
        SPC.into(),
        ALIBABA.into(),
        TENCENT.into(),
        BLKPARSE.into(),
        vscsi(1, &[(0x2a, 512, 1), (0x28, 512, u64::MAX / 512)]),
        vscsi(2, &[(0x2a, u32::MAX, 1), (0x28, 512, 2)]),
        oracle(&[(1, 5, 9, 2), (1, 5, 9, -1)]),
        b"time,obj_id,obj_size,op\n1,18446744073709551615,3,read\n".to_vec(),
        b"op,page\nR,18446744073709551615\nT,3\nC,\n".to_vec(),
        b"op,file_kind,offset,length\nW,a,18446744073709551000,615\nD,b,0,512\nU,a,0,0\n".to_vec(),
    ];
    let changed = (
        prop::sample::select(samples),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    );
    let changed = changed.prop_map(|(mut bytes, changes)| {
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    });
    prop_oneof![prop::collection::vec(any::<u8>(), 0..300), changed]
}
