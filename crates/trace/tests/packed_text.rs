//! Files as written by other programs: packed in many ways, with byte order marks, and with line ends of Windows.
mod support;

use std::io::{Cursor, Write};
use std::path::Path;
use support::{ALIBABA, BLKPARSE, LIS, MSR, SPC, TENCENT, options, oracle, r, w};
use tantalum_base::{ErrorKind, Result};
use tantalum_trace::open::read;
use tantalum_trace::{AnyReader, BlockEvent, PageEvent, open_pages};

fn pages(format: &str, bytes: &[u8]) -> Result<Vec<PageEvent>> {
    let source = Box::new(Cursor::new(bytes.to_vec()));
    match read(Path::new("t"), source, &options(format))? {
        AnyReader::Page(reader) => reader.collect(),
        AnyReader::Block(_) => panic!("{format} was read as blocks"),
    }
}

/// The events as text, at either level.
fn all(format: &str, bytes: &[u8]) -> Result<Vec<String>> {
    let source = Box::new(Cursor::new(bytes.to_vec()));
    Ok(match read(Path::new("t"), source, &options(format))? {
        AnyReader::Page(reader) => {
            let events = reader.collect::<Result<Vec<PageEvent>>>()?;
            events.iter().map(|event| format!("{event:?}")).collect()
        }
        AnyReader::Block(reader) => {
            let events = reader.collect::<Result<Vec<BlockEvent>>>()?;
            events.iter().map(|event| format!("{event:?}")).collect()
        }
    })
}

const SKIPPABLE: &[u8] = b"\x50\x2a\x4d\x18\x04\0\0\0abcd";

#[test]
fn frames_to_skip_and_several_members_are_read() {
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    let gzip = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    };
    let (one, two) = (b"op,page\nR,1\n", b"W,2\n");
    let expected = [r(1), w(2)];
    let skipped = [SKIPPABLE, &zstd(one), SKIPPABLE, &zstd(two), SKIPPABLE].concat();
    for packed in [skipped, [gzip(one), gzip(two)].concat(), [zstd(one), zstd(two)].concat()] {
        assert_eq!(pages("", &packed).unwrap(), expected);
        assert_eq!(pages("page_csv", &packed).unwrap(), expected);
    }
    let binary = oracle(&[(1, 5, 9, 2), (1, 5, 9, -1)]);
    let packed = [SKIPPABLE, &zstd(&binary)].concat();
    assert_eq!(pages("", &packed).unwrap(), [r(5), r(5)]);
    assert_eq!(pages("oracle_general", &packed).unwrap(), [r(5), r(5)]);
}

#[test]
fn packings_that_are_not_read_are_named_and_never_counted() {
    let bzip2 = [&b"BZh91AY&SY"[..], &[7; 86]].concat();
    let xz = [&b"\xfd7zXZ\0"[..], &[7; 90]].concat();
    let lz4 = [&b"\x04\x22\x4d\x18\x64"[..], &[7; 91]].concat();
    let zip = [&b"PK\x03\x04"[..], &[7; 92]].concat();
    let mut tar = vec![0; 4608];
    tar[257..262].copy_from_slice(b"ustar");
    for (bytes, name, how) in [
        (&bzip2, "bzip2", "`bzip2 -dc t > TRACE`"),
        (&xz, "xz", "`xz -dc t > TRACE`"),
        (&lz4, "lz4", "`lz4 -dc t > TRACE`"),
        (&zip, "zip", "`unzip -p t > TRACE`"),
        (&tar, "tar archive", "`tar -xOf"),
    ] {
        for format in ["", "oracle_general", "vscsi", "plain_text", "csv:obj_id=1"] {
            let error = all(format, bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{format}");
            let shown = error.to_string();
            assert!(shown.starts_with("t ") && shown.contains(name), "{format}: {shown}");
            assert!(shown.contains(how), "{format}: {shown}");
        }
        let shown = all("", &zstd::encode_all(&bytes[..], 3).unwrap()).unwrap_err().to_string();
        assert!(shown.contains(name) && shown.contains("inside its compression"), "{shown}");
    }
}

/// Each text format as written on Windows: a byte order mark, CRLF, or no last line end.
#[test]
fn marks_and_line_ends_of_windows_change_nothing() {
    let csv = "time,obj_id,op\n1,7,get\n2,8,set\n";
    let fiu = "89967168178155 4892 syslogd 904265560 8 W 6 0 531e779ca8feaf63\n";
    for (format, text) in [
        ("page_csv", "op,page\nR,1\nW,2\n"),
        ("page_csv", "5\n6\n"),
        ("plain_text", "5\n6\n"),
        ("csv", csv),
        ("csv:ids=text", "# made by hand\nkey,op\n7,get\n8,set\n"),
        ("lis", LIS),
        ("block_csv", "op,file_kind,offset,length\nW,db,0,8192\nF,db,0,0\n"),
        ("msr", MSR),
        ("spc", SPC),
        ("alibaba", ALIBABA),
        ("tencent", TENCENT),
        ("blkparse", BLKPARSE),
        ("cachelib_kv", "key,op,size,op_count,key_size\n7,GET,1,1,8\n7,SET,1,1,8\n"),
        ("fiu", fiu),
    ] {
        let expected = all(format, text.as_bytes()).unwrap();
        assert!(!expected.is_empty(), "{format}");
        let windows = text.replace("\r\n", "\n").replace('\n', "\r\n");
        for odd in [format!("\u{feff}{text}"), windows.clone(), format!("\u{feff}{windows}")] {
            assert_eq!(all(format, odd.as_bytes()).unwrap(), expected, "{format}: {odd:?}");
            if format != "plain_text" && !format.contains(':') {
                assert_eq!(all("", odd.as_bytes()).unwrap(), expected, "{format} told: {odd:?}");
            }
        }
    }
    // The position of an invalid line still counts from the first line.
    let shown = pages("plain_text", b"\xef\xbb\xbf5\r\nx\r\n").unwrap_err().to_string();
    assert!(shown.starts_with("t:2: ") && shown.ends_with("\"x\""), "{shown}");
    assert!(pages("plain_text", b"\xef\xbb\xbf").unwrap().is_empty());
}

#[test]
fn text_in_utf16_is_named() {
    let text: Vec<u8> = "op,page\nR,1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let text = [&b"\xff\xfe"[..], &text].concat();
    for format in ["", "page_csv", "csv:obj_id=2"] {
        let shown = pages(format, &text).unwrap_err().to_string();
        assert!(shown.contains("UTF-16") && shown.contains("iconv"), "{format}: {shown}");
    }
}

#[test]
fn the_map_of_a_trace_may_begin_with_a_mark_too() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("a.csv"), "op,file_kind,offset,length\nR,wal,0,1\nR,db,0,1\n").unwrap();
    let map = "\u{feff}file_kind,first_offset,bytes,file\r\ndb,0,8192,x\r\n";
    std::fs::write(at("a.map.csv"), map).unwrap();
    let events: Result<Vec<PageEvent>> = open_pages(&at("a.csv"), &options("")).unwrap().collect();
    assert_eq!(events.unwrap(), [r(2), r(0)]);
}
