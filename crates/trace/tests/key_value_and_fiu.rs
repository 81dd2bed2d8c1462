//! Meta's key-value traces and FIU's block traces.
mod support;

use std::io::Cursor;
use std::path::Path;
use support::{options, r, w};
use tantalum_base::{PageNo, Result};
use tantalum_trace::open::read;
use tantalum_trace::{AnyReader, PageEvent};

fn pages(format: &str, bytes: &[u8]) -> Result<Vec<PageEvent>> {
    let source = Box::new(Cursor::new(bytes.to_vec()));
    match read(Path::new("t"), source, &options(format))? {
        AnyReader::Page(reader) => reader.collect(),
        AnyReader::Block(_) => panic!("{format} was read as blocks"),
    }
}

/// (operation's letter, volume, offset, length) of each event.
fn blocks(format: &str, bytes: &[u8]) -> Result<Vec<(char, String, u64, u32)>> {
    let source = Box::new(Cursor::new(bytes.to_vec()));
    let AnyReader::Block(mut reader) = read(Path::new("t"), source, &options(format))? else {
        panic!("{format} was read as pages");
    };
    let mut events = Vec::new();
    while let Some(event) = reader.next().transpose()? {
        let volume = reader.names()[usize::from(event.file_kind.0)].clone();
        events.push((event.op.letter().into(), volume, event.offset, event.length));
    }
    Ok(events)
}

fn t(page: u64) -> PageEvent {
    PageEvent::Trim { page: PageNo(page), pages: 1 }
}

const KV: &str = "key,op,size,op_count,key_size
1668757755,SET,82,1,40
1668757755,GET,0,1,40
1665498006,GET,104,2,64
1665498006,DELETE,0,1,64
18446744073709551615,GET_LEASE,0,3,20
1665498006,SET_LEASE,104,1,64
";

#[test]
fn a_key_value_trace_reads_writes_and_deletes_as_often_as_it_says() {
    let (a, b, c) = (1_668_757_755, 1_665_498_006, u64::MAX);
    let expected = [w(a), r(a), r(b), r(b), t(b), r(c), r(c), r(c), w(b)];
    assert_eq!(pages("", KV.as_bytes()).unwrap(), expected);
    assert_eq!(pages("cachelib_kv", KV.as_bytes()).unwrap(), expected);
    // Without the header, the columns are those of 2022.
    let (_, bare) = KV.split_once('\n').unwrap();
    assert_eq!(pages("cachelib_kv", bare.as_bytes()).unwrap(), expected);
    // The columns of later years are in another order, and keys are text.
    let later = "op_time,key,key_size,op,op_count,size,cache_hits,ttl\n\
                 7,k1,8,GET,2,10,1,0\n7,k2,8,SET,1,10,0,60\n8,k1,8,get,0,10,0,0\n";
    assert_eq!(pages("", later.as_bytes()).unwrap(), [r(0), r(0), w(1)]);
}

#[test]
fn a_line_that_makes_no_sense_is_refused_with_its_place() {
    for (bad, why) in [
        ("7,SAT,1,1,8", "the op is none of GET, GET_LEASE, SET, SET_LEASE and DELETE"),
        ("7,,1,1,8", "the op is empty"),
        ("7,GET,1,1048577,8", "the op_count is over 1048576"),
        ("7,GET,1,x,8", "the op_count is not a number"),
        ("7,GET,1", "the column op_count is missing"),
        ("k7,GET,1,1,8", "cachelib_kv:ids=text"),
    ] {
        let text = format!("key,op,size,op_count,key_size\n1,GET,1,1,8\n{bad}\n");
        let shown = pages("", text.as_bytes()).unwrap_err().to_string();
        assert!(shown.starts_with("t:3: ") && shown.contains(why), "{bad}: {shown}");
    }
}

/// A few lines that represent many requests are decoded in steps, and later positions remain correct.
#[test]
fn lines_that_stand_for_many_requests_take_little_memory() {
    let many = "7,GET,1,1048576,8\n";
    let text = format!("key,op,size,op_count,key_size\n{}9,SET,1,1,8\nx\n", many.repeat(5));
    let source = Box::new(Cursor::new(text.into_bytes()));
    let AnyReader::Page(mut reader) = read(Path::new("t"), source, &options("")).unwrap() else {
        panic!("a trace of bytes");
    };
    let (mut events, mut longest) = (0, 0);
    let shown = loop {
        match reader.next_batch() {
            Ok(batch) => {
                assert!(!batch.is_empty(), "the bad line is told");
                longest = longest.max(batch.len());
                events += batch.len();
            }
            Err(error) => break error.to_string(),
        }
    };
    assert_eq!(events, 5 * 1_048_576 + 1);
    assert!(longest <= 1 << 21, "{longest} at once");
    assert!(shown.starts_with("t:8: "), "{shown}");
}

#[test]
fn operations_of_key_value_caches_are_known_to_csv_too() {
    let text = "key,op\n1,get_lease\n1,set_lease\n1,delete\n";
    assert_eq!(pages("csv", text.as_bytes()).unwrap(), [r(1), w(1), t(1)]);
}

const FIU: &str = "89967168178155 4892 syslogd 904265560 8 W 6 0 531e779ca8feaf63d55e9c4ed0b1b1c8
89967195999017 2 my odd 7 process 8 16 r 6 1 531e779ca8feaf63d55e9c4ed0b1b1c8
89967195999018 2 kworker/0:1 24 8 R 6 0
";

#[test]
fn fiu_has_names_of_processes_between_numbers() {
    let at = |op, volume: &str, sector: u64, length| (op, volume.to_owned(), sector * 512, length);
    let expected =
        [at('W', "6:0", 904_265_560, 4096), at('R', "6:1", 8, 8192), at('R', "6:0", 24, 4096)];
    assert_eq!(blocks("", FIU.as_bytes()).unwrap(), expected);
    assert_eq!(blocks("fiu", FIU.as_bytes()).unwrap(), expected);
    for (bad, why) in [
        ("1 2 cp 8 8 X 6 0 a", "no block address"),
        ("1 2 cp 8 8 R 6", "no block address"),
        ("1 x cp 8 8 R 6 0", "the process number is not a number"),
        ("1 2 cp 8 8388608 R 6 0", "over 32 bits in bytes"),
        ("1 2", "no block address"),
    ] {
        let shown = blocks("fiu", format!("{FIU}{bad}\n").as_bytes()).unwrap_err().to_string();
        assert!(shown.starts_with("t:4: ") && shown.contains(why), "{bad}: {shown}");
    }
}
