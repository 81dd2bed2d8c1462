//! Traces as users have them: each format with small traces made by hand, refusals with their positions, and
//! recognition by content.
mod support;

use std::io::Cursor;
use std::path::Path;
use support::{ALIBABA, BLKPARSE, LIS, MSR, SPC, TENCENT, options, oracle, r, vscsi, w};
use tantalum_base::{ErrorKind, PageNo, Result};
use tantalum_trace::formats::{self, AnyFormat, Head};
use tantalum_trace::open::read;
use tantalum_trace::{AnyReader, BlockEvent, BlockOp, PageEvent, open_pages};

/// (operation's letter, volume, offset, length) of each event.
fn blocks(format: &str, bytes: &[u8]) -> Result<Vec<(char, String, u64, u32)>> {
    let source = Box::new(Cursor::new(bytes.to_vec()));
    let AnyReader::Block(mut reader) = read(Path::new("t"), source, &options(format))? else {
        panic!("{format} was read as pages");
    };
    let events: Result<Vec<BlockEvent>> = reader.by_ref().collect();
    let name = |event: &BlockEvent| reader.names()[usize::from(event.file_kind.0)].clone();
    Ok(events?
        .iter()
        .map(|event| (event.op.letter().into(), name(event), event.offset, event.length))
        .collect())
}

fn pages(format: &str, bytes: &[u8]) -> Result<Vec<PageEvent>> {
    let source = Box::new(Cursor::new(bytes.to_vec()));
    match read(Path::new("t"), source, &options(format))? {
        AnyReader::Page(reader) => reader.collect(),
        AnyReader::Block(_) => panic!("{format} was read as blocks"),
    }
}

fn at(op: char, volume: &str, offset: u64, length: u32) -> (char, String, u64, u32) {
    (op, volume.to_owned(), offset, length)
}

#[test]
fn msr_has_bytes_of_disks_of_hosts() {
    let expected = [at('R', "usr_0", 7014609920, 24576), at('W', "usr_1", 2517696512, 4096)];
    assert_eq!(blocks("", MSR.as_bytes()).unwrap(), expected);
    let header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\r\n";
    assert_eq!(blocks("", format!("{header}{MSR}").as_bytes()).unwrap(), expected);
}

#[test]
fn spc_counts_blocks_of_512_bytes() {
    let expected = [at('W', "0", 20941264 * 512, 8192), at('R', "1", 3436288 * 512, 15872)];
    assert_eq!(blocks("", SPC.as_bytes()).unwrap(), expected);
}

#[test]
fn alibaba_has_bytes_of_devices() {
    let expected = [at('W', "419", 8792731648, 16384), at('R', "725", 59110326272, 360448)];
    assert_eq!(blocks("", ALIBABA.as_bytes()).unwrap(), expected);
    let header = "device_id,opcode,offset,length,timestamp\n";
    assert_eq!(blocks("", format!("{header}{ALIBABA}").as_bytes()).unwrap(), expected);
}

#[test]
fn tencent_has_sectors_of_volumes() {
    let expected =
        [at('W', "1576", 105352008 * 512, 584 * 512), at('R', "1063", 12910952 * 512, 128 * 512)];
    assert_eq!(blocks("", TENCENT.as_bytes()).unwrap(), expected);
}

#[test]
fn vscsi_keeps_reads_and_writes_apart_in_both_versions() {
    // WRITE(10), READ(10), READ(16), TEST UNIT READY, SYNCHRONIZE CACHE, INQUIRY.
    let records = [
        (0x2a, 512, 42932745),
        (0x28, 4096, 8),
        (0x88, 1024, 1 << 33),
        (0, 0, 0),
        (0x35, 0, 0),
        (0x12, 36, 0),
    ];
    let expected = [
        at('W', "disk", 42932745 * 512, 512),
        at('R', "disk", 4096, 4096),
        at('R', "disk", 1 << 42, 1024),
        at('F', "disk", 0, 0),
    ];
    for version in [1, 2] {
        let bytes = vscsi(version, &records);
        assert_eq!(blocks("", &bytes).unwrap(), expected, "version {version}");
        let named = format!("vscsi:version={version}");
        assert_eq!(blocks(&named, &bytes).unwrap(), expected, "version {version}");
        // One record is too little for recognition, but enough if the format is named.
        let one = vscsi(version, &records[..1]);
        assert!(blocks("", &one).is_err());
        assert_eq!(blocks("vscsi", &one).unwrap(), expected[..1]);
    }
    assert!(blocks("vscsi", b"").unwrap().is_empty());
}

#[test]
fn blkparse_takes_one_action_and_flushes_are_syncs() {
    let expected = [
        at('W', "8:0", 223490 * 512, 4096),
        at('R', "8:16", 64 * 512, 1024),
        at('F', "8:0", 0, 0),
        at('F', "8:0", 0, 0),
        at('W', "8:0", 128 * 512, 4096),
        at('F', "8:0", 0, 0),
        at('D', "8:0", 4096 * 512, 2048 * 512),
    ];
    assert_eq!(blocks("", BLKPARSE.as_bytes()).unwrap(), expected);
    assert_eq!(blocks("blkparse:action=Q", BLKPARSE.as_bytes()).unwrap(), expected);
    let completed = [at('W', "8:0", 223490 * 512, 4096), at('F', "8:0", 0, 0)];
    assert_eq!(blocks("blkparse:action=C", BLKPARSE.as_bytes()).unwrap(), completed);
    assert!(blocks("blkparse:action=D", BLKPARSE.as_bytes()).unwrap().is_empty());
}

#[test]
fn a_discard_gives_up_whole_pages_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.txt");
    let line = |sector: u64, sectors: u64| format!("8,0 0 1 0.1 1 Q D {sector} + {sectors} [x]\n");
    std::fs::write(&path, [line(4, 20), line(1, 8), line(16, 8)].concat()).unwrap();
    let events: Result<Vec<PageEvent>> = open_pages(&path, &options("")).unwrap().collect();
    let trim = |page| PageEvent::Trim { page: PageNo(page), pages: 1 };
    // Sectors 4 to 24 cover pages 1 and 2 completely; sectors 1 to 9 cover none.
    let both = PageEvent::Trim { page: PageNo(1), pages: 2 };
    assert_eq!(events.unwrap(), [both, trim(2)]);
}

#[test]
fn oracle_general_is_told_by_its_future() {
    let records = [(10, 5, 512, 3), (10, 9, 4096, -1), (11, 5, 512, -1), (12, 7, 1, i64::MAX)];
    let bytes = oracle(&records);
    assert_eq!(pages("", &bytes).unwrap(), [r(5), r(9), r(5), r(7)]);
    // A next access that is not of the same object: certainly another format, but readable.
    let other = oracle(&[(10, 5, 512, 2), (10, 9, 4096, -1), (11, 5, 512, -1)]);
    assert!(pages("", &other).is_err());
    assert_eq!(pages("oracle_general", &other).unwrap().len(), 3);
    let shown = pages("oracle_general", &bytes[..60]).unwrap_err().to_string();
    assert!(shown.starts_with("t: byte 48: ") && shown.contains("inside a record"), "{shown}");
}

#[test]
fn csv_finds_its_columns_by_header_or_number() {
    let text = "version,time,op,size,lbn\n1,33898,2a,512,42\n1,33899,28,6656,43\n";
    assert_eq!(pages("", text.as_bytes()).unwrap(), [w(42), r(43)]);
    let text = "# \"time\", \"obj_id\"\n1,7\n2,8\n";
    assert_eq!(pages("", text.as_bytes()).unwrap(), [r(7), r(8)]);
    let bare = "1\t90\tget\n2\t91\tset\n";
    assert_eq!(pages("csv:obj_id=2,op=3,delimiter=tab", bare.as_bytes()).unwrap(), [r(90), w(91)]);
    let named = "when;what\n1;90\n";
    let format = "csv:obj_id=2,delimiter=semicolon";
    assert_eq!(pages(format, named.as_bytes()).unwrap(), [r(90)]);
    assert_eq!(pages(&format!("{format},header=yes"), named.as_bytes()).unwrap(), [r(90)]);
    let shown =
        pages(&format!("{format},header=no,ids=number"), named.as_bytes()).unwrap_err().to_string();
    assert!(shown.starts_with("t:1: ") && shown.contains("object is not a number"), "{shown}");
}

#[test]
fn a_column_of_numbers_is_plain_text_or_page_csv_alike() {
    let text = b"5\n6\n\n5\n";
    assert_eq!(pages("plain_text", text).unwrap(), [r(5), r(6), r(5)]);
    assert_eq!(pages("", text).unwrap(), [r(5), r(6), r(5)]);
}

#[test]
fn lis_reads_blocks_as_pages_and_is_told_by_content_or_ending() {
    let expected = [r(314932), PageEvent::Read { page: PageNo(356782), pages: 64 }];
    assert_eq!(pages("lis", LIS.as_bytes()).unwrap(), expected);
    assert_eq!(pages("", LIS.as_bytes()).unwrap(), expected);
    // The end of the number space, and a trace without a last line end.
    assert_eq!(pages("lis", b"18446744073709551615 1 0 0").unwrap(), [r(u64::MAX)]);

    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str, bytes: &[u8]| -> Result<Vec<PageEvent>> {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        open_pages(&path, &options(""))?.collect()
    };
    let packed = zstd::encode_all(LIS.as_bytes(), 3).unwrap();
    assert_eq!(open("OLTP.lis.zst", &packed).unwrap(), expected);
    // The name decides if the content does not: an empty file, or a bad line near the beginning.
    assert_eq!(open("empty.LIS", b"").unwrap(), []);
    assert!(open("empty.txt", b"").is_err());
    let shown = open("bad.lis.gz", b"1 1 0 0\n2 1 0\n").unwrap_err().to_string();
    assert!(shown.contains("bad.lis.gz:2: the column request number is missing"), "{shown}");
    // If the content shows another format, it has priority.
    assert_eq!(open("pages.lis", b"page\n5\n").unwrap(), [r(5)]);
}

#[test]
fn a_bad_record_gives_file_place_and_reason() {
    let lines: &[(&str, &str, &str, &str)] = &[
        ("msr", MSR, "1,usr,0,Red,1,2,3", "the type is not Read or Write"),
        ("msr", MSR, "1,usr,0,Read,1,2", "response time is missing"),
        ("msr", MSR, "1,usr,0,Read,1,2,3,4", "more columns than"),
        ("msr", MSR, "1,usr,0,Read,x,2,3", "the offset is not a number"),
        ("msr", MSR, "1,usr,0,Read,1,4294967296,3", "the size is over 32 bits"),
        ("msr", MSR, "1,usr,0,Read,18446744073709551615,2,3", "together are over 64"),
        ("msr", MSR, "1,,0,Read,1,2,3", "not a name"),
        ("spc", SPC, "0,1,2,Q,3.0", "the opcode is not R or W"),
        ("spc", SPC, "0,1,2,R,soon", "timestamp"),
        ("spc", SPC, "0,36028797018963969,2,R,1", "over 64 bits in bytes"),
        ("alibaba", ALIBABA, "1,T,2,3,4", "the opcode is not R or W"),
        ("alibaba", ALIBABA, "1,R,2,3", "timestamp is missing"),
        ("tencent", TENCENT, "1,2,3,2,4", "0 (read) or 1 (write)"),
        ("tencent", TENCENT, "1,2,8388608,1,4", "over 32 bits in bytes"),
        ("blkparse", "8,0 0 1 0.1 1 Q R 8 + 8 [x]\n\n", "8,0 0 1 0.1 1", "neither an event"),
        ("blkparse", "8,0 0 1 0.1 1 Q R 8 + 8 [x]\n\n", "8,0 0 1 0.1 1 Q Z 8 + 8", "RWBS"),
        ("blkparse", "8,0 0 1 0.1 1 Q R 8 + 8 [x]\n\n", "8,0 0 1 0.1 1 Q R 8 + x", "sectors"),
        ("csv", "id,op\n5,read\n", "6,fly", "the op is none of"),
        ("csv", "id,op\n5,read\n", "x,read", "the object is not a number"),
        ("csv", "op,id\nread,1\n", "read", "object is missing"),
        ("plain_text", "1\n2\n", "two", "not a number"),
        ("lis", LIS, "7 x 0 2", "the number of blocks is not a number"),
        ("lis", LIS, "7 1 -1 2", "the third field is not a number"),
        ("lis", LIS, "7 1 0", "request number is missing"),
        ("lis", LIS, "7 1 0 2 5", "more columns than"),
        ("lis", LIS, "7 0 0 2", "no blocks"),
        ("lis", LIS, "7 4294967296 0 2", "over 32 bits"),
        ("lis", LIS, "18446744073709551615 2 0 2", "the last block is over 64 bits"),
    ];
    for (format, good, bad, reason) in lines {
        let text = format!("{good}{bad}\n");
        let error = match AnyFormat::by_name(format).unwrap() {
            AnyFormat::Page(_) => pages(format, text.as_bytes()).unwrap_err(),
            AnyFormat::Block(_) => blocks(format, text.as_bytes()).unwrap_err(),
        };
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let shown = error.to_string();
        assert!(shown.starts_with("t:3: "), "{format}: {bad}: {shown}");
        assert!(shown.contains(reason) && shown.contains(bad), "{format}: {bad}: {shown}");
    }
}

#[test]
fn a_bad_binary_record_gives_its_offset() {
    let mut bytes = vscsi(2, &[(0x2a, 512, 1), (0x2a, 512, 2), (0x2a, 512, 3)]);
    bytes[80 + 3] = 9;
    let shown = blocks("vscsi:version=2", &bytes).unwrap_err().to_string();
    assert!(shown.starts_with("t: byte 80: ") && shown.contains("another version"), "{shown}");
    let bytes = vscsi(1, &[(0x2a, 512, 1), (0x12a, 512, 2)]);
    let shown = blocks("vscsi", &bytes).unwrap_err().to_string();
    assert!(shown.starts_with("t: byte 32: ") && shown.contains("0x12a"), "{shown}");
    let bytes = vscsi(1, &[(0x2a, 512, 1), (0x2a, 512, u64::MAX)]);
    assert!(blocks("vscsi", &bytes).unwrap_err().to_string().contains("64 bits in bytes"));
    // Far into a trace, positions still count from its beginning.
    let mut bytes = vscsi(1, &vec![(0x2a, 512, 1); 20_000]);
    bytes[32 * 19_000 + 15] = 2;
    let shown = blocks("vscsi", &bytes).unwrap_err().to_string();
    assert!(shown.starts_with("t: byte 608000: "), "{shown}");
    assert!(blocks("vscsi", b"not a trace of SCSI commands at all").is_err());
    let shown = pages("page_binary", b"tantalum pages 2").unwrap_err().to_string();
    assert!(shown.starts_with("t: byte 0: "), "{shown}");
}

#[test]
fn parameters_of_formats_are_checked() {
    for (format, said) in [
        ("blkparse:action=X", "Q or D or C"),
        ("blkparse:act=Q", "action (Q or D or C"),
        ("msr:page=1", "takes no parameters"),
        ("vscsi:version=3", "any or 1 or 2"),
        ("csv:delimiter=,", "delimiter"),
        ("csv:op=3", "names the column of objects"),
        (
            "mrs",
            "page_csv, block_csv, page_binary, plain_text, csv, cachelib_kv, oracle_general, lis, msr",
        ),
    ] {
        let source = Box::new(Cursor::new(Vec::new()));
        let shown = read(Path::new("t"), source, &options(format)).unwrap_err().to_string();
        assert!(shown.contains(said), "{format}: {shown}");
    }
}

/// Each sample is recognized as its format only; a trace that could be of two formats is refused, not guessed at.
#[test]
fn formats_are_told_surely_or_not_at_all() {
    let samples: Vec<(&str, Vec<u8>)> = vec![
        ("msr", MSR.into()),
        ("spc", SPC.into()),
        ("alibaba", ALIBABA.into()),
        ("tencent", TENCENT.into()),
        ("blkparse", BLKPARSE.lines().take(8).collect::<Vec<_>>().join("\n").into()),
        ("vscsi", vscsi(1, &[(0x2a, 512, 1), (0x28, 512, 2)])),
        ("vscsi", vscsi(2, &[(0x2a, 512, 1), (0x28, 512, 2), (0x28, 512, 2)])),
        ("oracle_general", oracle(&[(1, 5, 9, 2), (1, 5, 9, -1)])),
        ("csv", b"time,obj_id,obj_size,op\n1,2,3,read\n".to_vec()),
        ("page_csv", b"op,page\nR,1\n".to_vec()),
        ("page_csv", b"17\n18\n".to_vec()),
        ("block_csv", b"op,file_kind,offset,length\n".to_vec()),
        ("block_csv", b"R,db,1,2\n".to_vec()),
        ("page_binary", b"tantalum pages 1".to_vec()),
        ("lis", LIS.into()),
        ("cachelib_kv", b"key,op,size,op_count,key_size\n1,GET,2,3,4\n".to_vec()),
        ("fiu", b"89967168178155 4892 syslogd 904265560 8 W 6 0 531e779c\n".to_vec()),
    ];
    for (name, bytes) in &samples {
        let head = Head { bytes, whole: true };
        let found: Vec<&str> = formats::ALL
            .iter()
            .filter(|format| format.detect(&head))
            .map(AnyFormat::name)
            .collect();
        assert_eq!(found, [*name]);
    }
    // Five numbers, of which the first is not a time: no format matches.
    let head = Head { bytes: b"1,2,3,1,5\n", whole: true };
    assert!(AnyFormat::by_content(&head).unwrap().is_none());
    // Records with both versions at once, in the field of each version.
    let both = (0..160).map(|at| {
        let v1 = at % 32 == 15;
        let v2 = at % 40 == 3;
        if v1 {
            1
        } else if v2 {
            2
        } else {
            0
        }
    });
    let both: Vec<u8> = both.collect();
    assert!(AnyFormat::by_content(&Head { bytes: &both, whole: true }).unwrap().is_none());
}

#[test]
fn every_operation_has_a_letter_of_its_own() {
    let letters: Vec<char> = BlockOp::ALL.iter().map(|op| op.letter().into()).collect();
    assert_eq!(letters, ['R', 'W', 'F', 'D', 'T', 'U']);
}
