//! Objects with sizes, as one page each or as many as they need; data of a trace that are left out; and keys that are
//! text.
mod support;

use std::path::Path;
use support::{oracle, r, vscsi, w};
use tantalum_base::{PageNo, Result};
use tantalum_trace::{Account, Objects, OpenOptions, PageEvent, open_pages};

struct Told {
    events: Vec<PageEvent>,
    requests: Option<u64>,
    dropped: Vec<&'static str>,
    is_of_bytes: bool,
}

fn told(bytes: &[u8], options: OpenOptions) -> Result<Told> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    std::fs::write(&path, bytes).unwrap();
    let options = OpenOptions { account: Account::default(), ..options };
    let events = open_pages(&path, &options)?;
    let is_of_bytes = events.is_of_bytes();
    let events = events.collect::<Result<Vec<PageEvent>>>()?;
    let (requests, dropped) = (options.account.requests(), options.account.dropped());
    Ok(Told { events, requests, dropped, is_of_bytes })
}

fn as_pages(format: &str, page_bytes: u32) -> OpenOptions {
    OpenOptions { objects: Objects::AsPages, page_bytes, ..support::options(format) }
}

fn read(page: u64, pages: u32) -> PageEvent {
    PageEvent::Read { page: PageNo(page), pages }
}

const CSV: &str = "time,obj_id,obj_size,op\n1,7,9000,read\n2,8,100,write\n3,7,9000,read\n";

#[test]
fn an_object_is_as_many_pages_as_its_size_needs() {
    let whole = told(CSV.as_bytes(), as_pages("", 4096)).unwrap();
    assert_eq!(whole.events, [read(0, 3), w(3), read(0, 3)]);
    assert_eq!((whole.requests, whole.is_of_bytes), (Some(3), true));
    assert_eq!(whole.dropped, ["times"]);
    let larger = told(CSV.as_bytes(), as_pages("", 8192)).unwrap();
    assert_eq!(larger.events, [read(0, 2), w(2), read(0, 2)]);
    // Columns given by number, with text keys, and the other formats that have sizes.
    let bare = "a;9000\nb;1\na;9000\n";
    let format = "csv:obj_id=1,obj_size=2,delimiter=semicolon,header=no";
    let keys = told(bare.as_bytes(), as_pages(format, 4096)).unwrap();
    assert_eq!(keys.events, [read(0, 3), r(3), read(0, 3)]);
    let binary = oracle(&[(1, 7, 9000, 3), (1, 8, 100, -1), (2, 7, 9000, -1)]);
    let binary = told(&binary, as_pages("", 4096)).unwrap();
    assert_eq!(binary.events, [read(0, 3), r(3), read(0, 3)]);
    assert_eq!(binary.dropped, ["times"]);
    let kv = "key,op,size,op_count,key_size\n7,SET,9000,1,8\n7,GET,0,2,8\n7,DELETE,0,1,8\n";
    let kv = told(kv.as_bytes(), as_pages("", 4096)).unwrap();
    let trim = PageEvent::Trim { page: PageNo(0), pages: 3 };
    assert_eq!(kv.events, [w(0).at(PageNo(0), 3), read(0, 3), read(0, 3), trim]);
    assert_eq!((kv.requests, kv.dropped.len()), (Some(3), 0));
}

#[test]
fn what_has_no_sizes_is_refused_with_the_formats_that_have() {
    let refusal = |bytes: &[u8]| match told(bytes, as_pages("", 4096)) {
        Ok(_) => panic!("taken"),
        Err(error) => error.to_string(),
    };
    for bytes in [&b"op,page\nR,1\n"[..], b"5\n", b"1,R,2,3,4\n"] {
        let shown = refusal(bytes);
        assert!(shown.contains("no sizes of objects") && shown.contains("csv"), "{shown}");
    }
    let shown = refusal(b"time,obj_id,op\n1,7,read\n");
    assert!(shown.contains("t:2: ") && shown.contains("obj_size=3"), "{shown}");
    let shown = refusal(b"obj_id,size\n1,1099511627776\n");
    assert!(shown.contains("t:2: ") && shown.contains("2^40"), "{shown}");
    let generator = open_pages(Path::new("scan:pages=5"), &as_pages("", 4096)).unwrap_err();
    assert!(generator.to_string().contains("a generator has no sizes"), "{generator}");
}

#[test]
fn what_is_left_out_is_told_and_requests_are_counted_as_they_stand() {
    let msr = "128166372003061629,usr,0,Read,0,24576,1\n128166372016382155,usr,0,Write,0,1,703\n";
    let plain = support::options("");
    let told_of = |bytes: &[u8], options: OpenOptions| {
        let told = told(bytes, options).unwrap();
        (told.requests, told.dropped.join(", "), told.events.len())
    };
    assert_eq!(told_of(msr.as_bytes(), plain.clone()), (Some(2), "times".into(), 2));
    let expand = tantalum_trace::Expand::Yes;
    let one_by_one = OpenOptions { expand, ..plain.clone() };
    assert_eq!(told_of(msr.as_bytes(), one_by_one), (Some(2), "times".into(), 7));
    let renumber = OpenOptions { renumber: true, ..plain.clone() };
    assert_eq!(told_of(msr.as_bytes(), renumber).0, Some(2));
    assert_eq!(told_of(CSV.as_bytes(), plain.clone()).1, "times, sizes");
    assert_eq!(told_of(b"obj_id,op\n1,get\n", plain.clone()).1, "");
    assert_eq!(told_of(b"op,page\nR,1\nC,\nT,1\n", plain.clone()), (Some(1), String::new(), 3));
    let commands = vscsi(1, &[(0x2a, 512, 1), (0x12, 36, 0)]);
    assert_eq!(told_of(&commands, plain).1, "times, other commands");
}

#[test]
fn lines_of_plain_text_may_be_any_text_where_it_is_asked_for() {
    let keys = b"user:7\n17\nuser:7\n";
    let told_as = |format: &str| told(keys, support::options(format));
    assert_eq!(told_as("plain_text:ids=text").unwrap().events, [r(0), r(1), r(0)]);
    let shown = match told_as("plain_text") {
        Ok(_) => panic!("taken"),
        Err(error) => error.to_string(),
    };
    assert!(shown.contains("t:1: ") && shown.contains("plain_text:ids=text"), "{shown}");
}
