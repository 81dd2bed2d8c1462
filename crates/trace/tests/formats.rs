//! Formats in and out: accepted input, refusals, and that written traces are read back.
mod support;

use proptest::prelude::*;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use tantalum_base::{ErrorKind, PageNo, Result};
use tantalum_trace::formats::page_csv::PageCsv;
use tantalum_trace::open::read;
use tantalum_trace::{
    AnyReader, BlockEvent, BlockOp, OpenOptions, PageEvent, Recorder, Writer, open, open_pages,
    writer,
};

fn r(page: u64) -> PageEvent {
    PageEvent::Read { page: PageNo(page), pages: 1 }
}

fn w(page: u64) -> PageEvent {
    PageEvent::Write { page: PageNo(page), pages: 1 }
}

fn pages_of(text: &str) -> Result<Vec<PageEvent>> {
    let source = Box::new(Cursor::new(text.as_bytes().to_vec()));
    match read(Path::new("t.csv"), source, &OpenOptions::default())? {
        AnyReader::Page(reader) => reader.collect(),
        AnyReader::Block(_) => panic!("read as a block trace"),
    }
}

fn blocks_of(text: &str) -> Result<(Vec<BlockEvent>, Vec<String>)> {
    let source = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let AnyReader::Block(mut reader) = read(Path::new("t.csv"), source, &OpenOptions::default())?
    else {
        panic!("read as a page trace");
    };
    let events: Result<Vec<BlockEvent>> = reader.by_ref().collect();
    Ok((events?, reader.names().to_vec()))
}

#[test]
fn page_csv_in_all_its_spellings() {
    let commit = PageEvent::Commit;
    let trim = PageEvent::Trim { page: PageNo(9), pages: 1 };
    for text in [
        "op,page\nR,1\nW,2\nC,\nT,9\n",
        "op,page\r\nR,1\r\nW,2\r\nC,\r\nT,9\r\n",
        "R,1\nW,2\nC\nT,9",
        "OP,Page\nr,1\nw, 2\n\nc,\nt,9\n\n",
    ] {
        assert_eq!(pages_of(text).unwrap(), [r(1), w(2), commit, trim], "{text:?}");
    }
    for text in ["page\n1\n18446744073709551615\n", "1\r\n\r\n18446744073709551615"] {
        assert_eq!(pages_of(text).unwrap(), [r(1), r(u64::MAX)], "{text:?}");
    }
    assert_eq!(pages_of("op,page\n").unwrap(), []);
}

#[test]
fn a_bad_line_gives_file_line_reason_and_text() {
    let long = format!("op,page\nR,1\nX{}\n", "y".repeat(500));
    for (text, line, reason, quoted) in [
        ("op,page\nR,1\nQ,2\n", 3, "the op is not", "Q,2"),
        ("op,page\nR,1\n\nR,-2\n", 4, "not a number", "R,-2"),
        ("op,page\nR,18446744073709551616\n", 2, "not a number", "R,18446744073709551616"),
        ("op,page\nC,4\n", 2, "has no page", "C,4"),
        ("op,page\nR,\n", 2, "not a number", "R,"),
        ("op,page\nR,1,2\n", 2, "more than the two", "R,1,2"),
        ("op,page\n5\n", 2, "one column", "5"),
        ("page\n5\nR,5\n", 3, "not a number", "R,5"),
        (&long, 3, "one column", "yyy\"..."),
    ] {
        let error = pages_of(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let shown = error.to_string();
        assert!(shown.starts_with(&format!("t.csv:{line}: ")), "{text:?}: {shown}");
        assert!(shown.contains(reason) && shown.contains(quoted), "{text:?}: {shown}");
        assert!(shown.len() < 200, "{shown}");
    }
    let shown = pages_of("").unwrap_err().to_string();
    assert!(shown.contains("t.csv is empty") && shown.contains("--trace-format"), "{shown}");
    for text in ["hello\n", "a,b,c\n"] {
        let shown = pages_of(text).unwrap_err().to_string();
        assert!(
            shown.contains("page_csv, block_csv") && shown.contains("--trace-format"),
            "{shown}"
        );
    }
}

#[test]
fn the_line_is_right_far_into_a_trace_and_what_was_before_it_is_given() {
    let mut text = String::from("op,page\n");
    for page in 0..200_000 {
        text.push_str(&format!("R,{page}\n"));
    }
    text.push_str("R,oops\nR,1\n");
    let source = Box::new(Cursor::new(text.into_bytes()));
    let reader = read(Path::new("t.csv"), source, &OpenOptions::default()).unwrap();
    let AnyReader::Page(mut reader) = reader else { panic!() };
    for page in 0..200_000 {
        assert_eq!(reader.next().unwrap().unwrap(), r(page));
    }
    let shown = reader.next().unwrap().unwrap_err().to_string();
    assert!(shown.starts_with("t.csv:200002: "), "{shown}");
    assert!(reader.next().is_none());
}

#[test]
fn a_trace_without_line_ends_is_refused_in_bounded_memory() {
    let endless = std::io::repeat(b'7').take(1 << 30);
    let options = OpenOptions { format: Some("page_csv".into()), ..OpenOptions::default() };
    let reader = read(Path::new("t"), Box::new(endless), &options).unwrap();
    let AnyReader::Page(mut reader) = reader else { panic!() };
    let shown = reader.next().unwrap().unwrap_err().to_string();
    assert!(shown.contains("longer than"), "{shown}");
}

#[test]
fn block_csv_in_and_refused() {
    let text = "op,file_kind,offset,length\nR,db,4096,512\nW,wal,0,24\nF,wal,0,0\nU,db,0,0\n";
    let (events, names) = blocks_of(text).unwrap();
    assert_eq!(names, ["db", "wal"]);
    assert_eq!(events.len(), 4);
    assert_eq!((events[0].op, events[0].offset, events[0].length), (BlockOp::Read, 4096, 512));
    assert_eq!((events[3].op, events[3].file_kind.0), (BlockOp::Unlink, 0));
    assert_eq!(blocks_of("F,wal,0,0\n").unwrap().0.len(), 1);

    for (line, reason) in [
        ("R,db,1", "length is missing"),
        ("R,db,1,2,3", "more columns than the four"),
        ("Z,db,1,2", "the op is not"),
        ("R,db,x,2", "the offset"),
        ("R,db,1,4294967296", "the length"),
        ("R,db,18446744073709551615,9", "together"),
        ("R,,1,2", "not a name"),
    ] {
        let shown = blocks_of(&format!("op,file_kind,offset,length\n{line}\n")).unwrap_err();
        let shown = shown.to_string();
        assert!(shown.starts_with("t.csv:2: ") && shown.contains(reason), "{line}: {shown}");
    }
}

#[test]
fn a_format_can_be_named_and_a_wrong_name_lists_them() {
    let options = OpenOptions { format: Some("page_cvs".into()), ..OpenOptions::default() };
    let shown = read(Path::new("t"), Box::new(std::io::empty()), &options).unwrap_err();
    assert!(shown.to_string().contains("page_csv, block_csv"));
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)
}

#[test]
fn compression_is_told_by_content() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["tpcc-pg-logical-6000.csv.zst", "tpcb-pg-logical-2000.csv.gz"] {
        let options = OpenOptions::default();
        let plain: Result<Vec<PageEvent>> = open_pages(&sample(name), &options).unwrap().collect();
        let plain = plain.unwrap();
        assert!(plain.len() >= 2000);
        let misnamed = folder.path().join("misnamed.txt");
        std::fs::copy(sample(name), &misnamed).unwrap();
        let again: Result<Vec<PageEvent>> = open_pages(&misnamed, &options).unwrap().collect();
        assert_eq!(again.unwrap(), plain);
        for to in ["a.csv", "a.csv.gz", "a.csv.zst"] {
            let to = folder.path().join(to);
            let events = plain.iter().map(|event| Ok(*event));
            assert_eq!(writer::write_pages(&to, events).unwrap(), plain.len() as u64);
            let again: Result<Vec<PageEvent>> = open_pages(&to, &options).unwrap().collect();
            assert_eq!(again.unwrap(), plain);
        }
    }
}

#[test]
fn a_cut_off_compressed_trace_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["tpcc-pg-logical-6000.csv.zst", "tpcb-pg-logical-2000.csv.gz"] {
        let whole = std::fs::read(sample(name)).unwrap();
        let path = folder.path().join("cut");
        std::fs::write(&path, &whole[..whole.len() * 2 / 3]).unwrap();
        let events: Result<Vec<PageEvent>> =
            open_pages(&path, &OpenOptions::default()).and_then(Iterator::collect);
        assert_eq!(events.unwrap_err().kind(), ErrorKind::Io, "{name}");
    }
    let missing = open(&folder.path().join("none"), &OpenOptions::default()).unwrap_err();
    assert!(missing.to_string().contains("none"));
}

#[test]
fn blocks_become_pages_kind_after_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let text = "op,file_kind,offset,length\nW,log,0,100\nR,db,8191,2\nF,log,0,0\nW,db,4096,8192\n\
                T,db,4096,0\nU,log,0,0\nW,log,5000,0\nR,tmp,0,1\n";
    std::fs::write(&path, text).unwrap();
    let expected = [
        PageEvent::Write { page: PageNo(8), pages: 1 },
        PageEvent::Read { page: PageNo(1), pages: 2 },
        PageEvent::Commit,
        PageEvent::Write { page: PageNo(1), pages: 2 },
        PageEvent::Commit,
        PageEvent::Read { page: PageNo(10), pages: 1 },
    ];
    // The map puts db first and makes both longer than the trace shows; it does not contain tmp.
    let map = "file_kind,first_offset,bytes,file\ndb,0,16384,a\ndb,16384,16384,b\nlog,0,8192,l\n";
    std::fs::write(folder.path().join("t.map.csv"), map).unwrap();
    let events: Result<Vec<PageEvent>> =
        open_pages(&path, &OpenOptions::default()).unwrap().collect();
    assert_eq!(events.unwrap(), expected);

    std::fs::write(folder.path().join("t.map.csv"), "db,0,none,a\n").unwrap();
    let shown = open_pages(&path, &OpenOptions::default()).unwrap_err().to_string();
    assert!(shown.contains("t.map.csv:1: "), "{shown}");

    std::fs::remove_file(folder.path().join("t.map.csv")).unwrap();
    let mut pages = open_pages(&path, &OpenOptions::default()).unwrap();
    // Without the map, the kinds are in the order of first occurrence.
    let write = PageEvent::Write { page: PageNo(0), pages: 1 };
    assert_eq!(pages.next().unwrap().unwrap(), write);
    let odd = OpenOptions { page_bytes: 5000, ..OpenOptions::default() };
    assert!(open_pages(&path, &odd).is_err());
}

#[test]
fn convert_keeps_every_event() {
    let folder = tempfile::tempdir().unwrap();
    let from = sample("sqlite-oltp-wal-2000.csv");
    let options = OpenOptions::default();
    let to = folder.path().join("b.csv.zst");
    assert_eq!(support::convert(&from, &options, &to, "block_csv").unwrap(), 2000);
    let mut bytes = Vec::new();
    zstd::Decoder::new(std::fs::File::open(&to).unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, std::fs::read(&from).unwrap());

    let pages = folder.path().join("p.csv");
    support::convert(&from, &options, &pages, "page_csv").unwrap();
    assert_eq!(
        support::convert(&pages, &options, &to, "block_csv").unwrap_err().kind(),
        ErrorKind::Unsupported
    );
}

#[test]
fn a_recording_from_many_threads_keeps_transactions_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.csv.zst");
    let recorder = Recorder::create(&path).unwrap();
    std::thread::scope(|scope| {
        for client in 0..4 {
            let recorder = &recorder;
            scope.spawn(move || {
                for _ in 0..100 {
                    recorder.record(r(100 + client));
                    recorder.record_all(&[w(client), w(client), PageEvent::Commit]);
                }
            });
        }
    });
    assert_eq!(recorder.finish().unwrap(), 1600);
    recorder.record(r(1));
    assert_eq!(recorder.finish().unwrap_err().kind(), ErrorKind::Closed);

    let events: Result<Vec<PageEvent>> =
        open_pages(&path, &OpenOptions::default()).unwrap().collect();
    let events = events.unwrap();
    let commits = events.iter().enumerate().filter(|(_, event)| **event == PageEvent::Commit);
    let mut transactions = 0;
    for (at, _) in commits {
        assert!(matches!(events[at - 1], PageEvent::Write { .. }));
        assert_eq!(events[at - 1], events[at - 2]);
        transactions += 1;
    }
    assert_eq!(transactions, 400);
}

#[test]
fn a_failing_sink_fails_the_recording_and_not_the_recorded() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no space"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let recorder = Recorder::to_sink("full.csv", Box::new(Full)).unwrap();
    (0..100_000).for_each(|page| recorder.record(r(page)));
    let shown = recorder.finish().unwrap_err().to_string();
    assert!(shown.contains("full.csv") && shown.contains("no space"), "{shown}");
}

fn any_event() -> impl Strategy<Value = PageEvent> {
    let page = prop_oneof![0u64..10, any::<u64>()];
    prop_oneof![
        page.clone().prop_map(r),
        page.clone().prop_map(w),
        page.prop_map(|page| PageEvent::Trim { page: PageNo(page), pages: 1 }),
        Just(PageEvent::Commit),
    ]
}

#[derive(Clone, Default)]
struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns a few bytes at a time, so that lines are cut anywhere.
struct Dribble(Cursor<Vec<u8>>, usize);

impl Read for Dribble {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let bytes = out.len().min(self.1);
        self.0.read(&mut out[..bytes])
    }
}

proptest! {
    #[test]
    fn page_events_come_back(
        events in prop::collection::vec(any_event(), 0..200),
        step in 1usize..40,
    ) {
        let sink = Shared::default();
        let mut writer = Writer::new("t.csv", Box::new(sink.clone()), &PageCsv).unwrap();
        events.iter().for_each(|event| writer.write(event).unwrap());
        writer.finish().unwrap();
        let bytes = sink.0.lock().unwrap().clone();
        let source = Box::new(Dribble(Cursor::new(bytes), step));
        let reader = read(Path::new("t.csv"), source, &OpenOptions::default()).unwrap();
        let AnyReader::Page(reader) = reader else { panic!("read as blocks") };
        let again: Result<Vec<PageEvent>> = reader.collect();
        prop_assert_eq!(again.unwrap(), events);
    }
}
