//! Traces that were cut off, for example because their writer was killed: this is reported, after the events before it.
use std::io::{Cursor, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tantalum_base::{PageNo, Result};
use tantalum_trace::open::read;
use tantalum_trace::{AnyReader, OpenOptions, PageEvent, Recorder};

fn w(page: u64) -> PageEvent {
    PageEvent::Write { page: PageNo(page), pages: 1 }
}

/// The number of events before the trace ends or fails, and its failure.
fn read_all(name: &str, bytes: &[u8], format: Option<&str>) -> (u64, Result<()>) {
    let options = OpenOptions { format: format.map(str::to_owned), ..OpenOptions::default() };
    let count = |events: &mut dyn Iterator<Item = Result<()>>| {
        let mut passed = 0;
        for event in events {
            match event {
                Ok(()) => passed += 1,
                Err(error) => return (passed, Err(error)),
            }
        }
        (passed, Ok(()))
    };
    match read(Path::new(name), Box::new(Cursor::new(bytes.to_vec())), &options) {
        Err(error) => (0, Err(error)),
        Ok(AnyReader::Page(reader)) => count(&mut reader.map(|event| event.map(drop))),
        Ok(AnyReader::Block(reader)) => count(&mut reader.map(|event| event.map(drop))),
    }
}

#[test]
fn a_last_line_without_an_end_is_cut_off_where_we_wrote_the_trace() {
    let block = "op,file_kind,offset,length\nW,wal,0,24\nF,wal,0,0";
    for (text, line, events, quoted) in [
        ("op,page\nW,14235\nW,14", 3, 1, "\"W,14\""),
        ("op,page\nW,14235\nC", 3, 1, "\"C\""),
        ("op,page\nW,1\r\nW,1\r", 3, 1, "\"W,1\""),
        ("op,page", 1, 0, "\"op,page\""),
        ("page\n769\n76", 3, 1, "\"76\""),
        (block, 3, 1, "\"F,wal,0,0\""),
    ] {
        let (passed, ended) = read_all("t.csv", text.as_bytes(), None);
        let shown = ended.expect_err(text).to_string();
        assert!(shown.starts_with(&format!("t.csv:{line}: ")), "{text:?}: {shown}");
        assert!(shown.contains("cut off") && shown.contains("--rescue"), "{text:?}: {shown}");
        assert!(shown.ends_with(quoted) && shown.len() < 250, "{text:?}: {shown}");
        assert_eq!(passed, events, "{text:?}");
    }
}

/// Many editors omit the last line end, and such a trace cannot be recognized as cut off.
#[test]
fn what_others_wrote_need_not_end_its_last_line() {
    for (text, format) in [
        ("W,1\nW,2", None),
        ("1\n2", None),
        ("1\n2", Some("plain_text")),
        ("W,wal,0,24\nF,wal,0,0", None),
        ("time,obj_id,op\n1,7,read\n2,8,read", None),
        ("1 1 0 0\n2 1 0 1", Some("lis")),
        ("op,page\nW,1\nW,2\n  ", None),
    ] {
        let (passed, ended) = read_all("t.csv", text.as_bytes(), format);
        ended.expect(text);
        assert_eq!(passed, 2, "{text:?}");
    }
}

fn compressed(name: &str, text: &str) -> Vec<u8> {
    if name.ends_with(".zst") {
        return zstd::encode_all(text.as_bytes(), 3).expect("compresses");
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).expect("in memory");
    gzip.finish().expect("in memory")
}

/// The part of `bytes` that can be decompressed.
fn decompressed(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let ended = if name.ends_with(".zst") {
        zstd::Decoder::new(bytes).expect("a frame").read_to_end(&mut out)
    } else {
        flate2::read::GzDecoder::new(bytes).read_to_end(&mut out)
    };
    assert!(ended.is_err(), "{name} is cut off");
    out
}

#[test]
fn all_that_is_whole_before_a_compressed_trace_breaks_off_is_given() {
    let mut text = String::from("op,page\n");
    (0..100_000_u64).for_each(|at| text.push_str(&format!("W,{}\n", at * at % 1_000_003)));
    for name in ["t.csv.zst", "t.csv.gz"] {
        let whole = compressed(name, &text);
        for cut in [whole.len() / 50, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
            let bytes = &whole[..cut];
            let there = decompressed(name, bytes);
            let lines = there.iter().filter(|&&byte| byte == b'\n').count() as u64;
            let (passed, ended) = read_all(name, bytes, None);
            let shown = ended.expect_err(name).to_string();
            assert!(shown.contains(name) && shown.contains("cut off"), "{shown}");
            if lines > 0 {
                assert_eq!(passed, lines - 1, "{name} at {cut}");
                assert!(shown.contains(&format!("behind line {lines} ")), "{shown}");
                assert!(shown.contains("--rescue"), "{shown}");
            }
        }
    }
}

#[derive(Clone, Default)]
struct Disk(Arc<Mutex<Vec<u8>>>);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn of_a_recording_that_is_killed_only_the_last_block_is_missing() {
    for name in ["live.csv", "live.csv.zst", "live.csv.gz"] {
        let disk = Disk::default();
        let recorder = Recorder::to_sink(name, Box::new(disk.clone())).unwrap();
        // 8 bytes per line: 88 KB, of which 64 KiB were written to the disk.
        (0..11_000).for_each(|at| recorder.record(w(10_000 + at)));
        // A killed program does not run destructors.
        std::mem::forget(recorder);
        let bytes = disk.0.lock().unwrap().clone();
        let (passed, ended) = read_all(name, &bytes, None);
        assert!(passed >= (64 << 10) / 8 - 1, "{name}: {passed} events");
        assert_eq!(ended.is_err(), name != "live.csv", "{name}");
    }
}
