//! Traces as users have them: each format by small traces made by hand, what is refused and where,
//! what is told by the content, and that what is written comes back.
use proptest::prelude::*;
use std::io::Cursor;
use std::path::Path;
use tantalum_base::{ErrorKind, PageNo, Result};
use tantalum_trace::formats::{self, AnyFormat, Head};
use tantalum_trace::open::read;
use tantalum_trace::{
    AnyReader, BlockEvent, BlockOp, Expand, OpenOptions, PageEvent, open_pages, writer,
};

fn options(format: &str) -> OpenOptions {
    OpenOptions {
        format: (!format.is_empty()).then(|| format.to_owned()),
        ..OpenOptions::default()
    }
}

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

fn r(page: u64) -> PageEvent {
    PageEvent::Read { page: PageNo(page), pages: 1 }
}

fn w(page: u64) -> PageEvent {
    PageEvent::Write { page: PageNo(page), pages: 1 }
}

const MSR: &str = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
                   128166372016382155,usr,1,Write,2517696512,4096,703\n";
const SPC: &str = "0,20941264,8192,W,0.551706\n1, 3436288, 15872, r, 1.206,77\n";
const ALIBABA: &str =
    "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144\n";
const TENCENT: &str = "1538323199,105352008,584,1,1576\n1538323200,12910952,128,0,1063\n";
const BLKPARSE: &str = "  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  P   N [kjournald]
  8,0    3        3     0.000002197   697  Q   W 223490 + 8 [kjournald]
  8,16   3        4     0.000005533   697  Q  RA 64 + 2 [cat]
  8,0    3        5     0.000008607   697  Q  FWS [kjournald]
  8,0    3        6     0.000009000   697  Q FWFS 128 + 8 [kjournald]
  8,0    3        7     0.000010000   697  Q   D 4096 + 2048 [fstrim]
  8,0    3        8     0.001000000   697  m   N cfq697 insert_request
  8,0    3        9     0.002000000     0  C   W 223490 + 8 [0]
  8,0    3       10     0.003000000     0  C  FN 0 [0]
CPU3 (sda):
 Reads Queued:           0,        0KiB\t Writes Queued:           2,        8KiB

Total (sda):
 Throughput (R/W): 0KiB/s / 2000KiB/s
Events (sda): 10 entries
Skips: 0 forward (0 -   0.0%)
";

fn vscsi(version: u8, records: &[(u16, u32, u64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (command, length, block) in records {
        let (command, ver) = (command.to_le_bytes(), (u16::from(version) << 8 | 3).to_le_bytes());
        let (sn, sg) = (7_u32.to_le_bytes(), 1_u32.to_le_bytes());
        let (length, block) = (length.to_le_bytes(), block.to_le_bytes());
        let time = 33_898_000_000_u64.to_le_bytes();
        let fields: Vec<&[u8]> = if version == 1 {
            vec![&sn, &length, &sg, &command, &ver, &block, &time]
        } else {
            vec![&command, &ver, &sn, &length, &sg, &block, &time, &time]
        };
        bytes.extend(fields.concat());
    }
    bytes
}

fn oracle(records: &[(u32, u64, u32, i64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (time, object, size, next) in records {
        bytes.extend(time.to_le_bytes());
        bytes.extend(object.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next.to_le_bytes());
    }
    bytes
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
        // One record is too little to be sure, but enough once the format is named.
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
    // Sectors 4 to 24 hold pages 1 and 2 whole; 1 to 9 none.
    let both = PageEvent::Trim { page: PageNo(1), pages: 2 };
    assert_eq!(events.unwrap(), [both, trim(2)]);
}

#[test]
fn oracle_general_is_told_by_its_future() {
    let records = [(10, 5, 512, 3), (10, 9, 4096, -1), (11, 5, 512, -1), (12, 7, 1, i64::MAX)];
    let bytes = oracle(&records);
    assert_eq!(pages("", &bytes).unwrap(), [r(5), r(9), r(5), r(7)]);
    // A next access that is not one of the same object: surely something else, but readable.
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
    let shown = pages(&format!("{format},header=no"), named.as_bytes()).unwrap_err().to_string();
    assert!(shown.starts_with("t:1: ") && shown.contains("object is not a number"), "{shown}");
}

#[test]
fn a_column_of_numbers_is_plain_text_or_page_csv_alike() {
    let text = b"5\n6\n\n5\n";
    assert_eq!(pages("plain_text", text).unwrap(), [r(5), r(6), r(5)]);
    assert_eq!(pages("", text).unwrap(), [r(5), r(6), r(5)]);
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
    // Far into a trace, the place counts from its beginning.
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
        ("csv:op=3", "obj_id says which column"),
        ("mrs", "page_csv, block_csv, page_binary, plain_text, csv, oracle_general, msr, spc"),
    ] {
        let source = Box::new(Cursor::new(Vec::new()));
        let shown = read(Path::new("t"), source, &options(format)).unwrap_err().to_string();
        assert!(shown.contains(said), "{format}: {shown}");
    }
}

/// Each sample is told, and as nothing else; what could be two is refused, not guessed.
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
    // Five numbers, of which the first is no time: nobody's.
    let head = Head { bytes: b"1,2,3,1,5\n", whole: true };
    assert!(AnyFormat::by_content(&head).unwrap().is_none());
    // Records that say both versions at once, in the fields where each looks.
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
    // In the order in which they come, each as long as the trace reaches: 3, then 9, then 5.
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
    // The first block of each request: what libCacheSim reads.
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
    assert_eq!(of(&format!("concat:scan:pages=3,requests=9@2..4+{b}@0")), [r(2), r(0)]);
    // A long request is cut where the part ends.
    let bin = folder.path().join("v.bin");
    std::fs::write(&bin, vscsi(1, &[(0x2a, 16384, 8), (0x28, 512, 2)])).unwrap();
    let cut = PageEvent::Write { page: PageNo(2), pages: 2 };
    assert_eq!(of(&format!("concat:{}@1..3", bin.display())), [cut]);
    let missing = open_pages(Path::new("concat:/none.csv@1"), &OpenOptions::default());
    assert!(missing.unwrap_err().to_string().contains("/none.csv"));
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
    /// Every format that is written gives back what it says it keeps, and is told by its content
    /// (or reads alike as what it is told to be).
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
            [("page_csv", true), ("csv", true), ("plain_text", false), ("oracle_general", false)]
        {
            let to = folder.path().join(format!("b.{name}.zst"));
            writer::convert(&from, &options(""), &to, name).unwrap();
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

    /// Bytes of any kind are events or an error, in every format and where nothing is named.
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

    /// As above through the layout of pages, where offsets are added up.
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

#[test]
fn every_operation_has_a_letter_of_its_own() {
    let letters: Vec<char> = BlockOp::ALL.iter().map(|op| op.letter().into()).collect();
    assert_eq!(letters, ['R', 'W', 'F', 'D', 'T', 'U']);
}
