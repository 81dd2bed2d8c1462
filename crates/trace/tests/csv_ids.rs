//! Text ids of a CSV trace, and first lines that may be headers.
mod support;

use std::io::Cursor;
use std::path::Path;
use support::{options, r, w};
use tantalum_base::Result;
use tantalum_trace::open::read;
use tantalum_trace::{AnyReader, PageEvent, open_pages};

fn pages(format: &str, text: &str) -> Result<Vec<PageEvent>> {
    let source = Box::new(Cursor::new(text.as_bytes().to_vec()));
    match read(Path::new("t"), source, &options(format))? {
        AnyReader::Page(reader) => reader.collect(),
        AnyReader::Block(_) => panic!("a trace of bytes"),
    }
}

fn refusal(format: &str, text: &str) -> String {
    pages(format, text).unwrap_err().to_string()
}

#[test]
fn text_ids_are_numbered_in_the_order_in_which_they_come() {
    let text = "time,obj_id,obj_size,op\n1,q:8WT,17,get\n2,user:7,9,set\n3,q:8WT,17,set\n";
    assert_eq!(pages("", text).unwrap(), [r(0), w(1), w(0)]);
    // An id of digits among texts is text like the others, and its number is not its page.
    let text = "obj_id,op\nab,get\n17,get\n0,get\n017,get\n17,get\n";
    assert_eq!(pages("", text).unwrap(), [r(0), r(1), r(2), r(3), r(1)]);
    // An id of more than 64 bits is text: no two of them share a page.
    let text = "id,op\n18446744073709551616,get\n18446744073709551617,get\n";
    assert_eq!(pages("", text).unwrap(), [r(0), r(1)]);
}

#[test]
fn numbers_stay_and_what_mixes_is_refused_or_said_to_be_text() {
    let mixed = "id,op\n7,get\n\"9\",get\nx9,get\n";
    let shown = refusal("csv", mixed);
    assert!(shown.starts_with("t:4: ") && shown.contains("csv:ids=text"), "{shown}");
    assert_eq!(pages("csv:ids=text", mixed).unwrap(), [r(0), r(1), r(2)]);
    assert_eq!(pages("csv:ids=number", "id,op\n7,get\n\"9\",get\n").unwrap(), [r(7), r(9)]);
    let shown = refusal("csv:ids=number", "id,op\nx9,get\n");
    assert!(shown.starts_with("t:2: ") && shown.contains("object is not a number"), "{shown}");
    let shown = refusal("csv", "op,id\nget,ab\nget,\n");
    assert!(shown.starts_with("t:3: ") && shown.contains("the object is empty"), "{shown}");
}

#[test]
fn quotes_hold_an_id_together() {
    let text = "key;op\n\"a;b\";get\na;get\n\"a;\"\"b\"\"\";get\n\"a;b\" ;set\n\"a\";set\n";
    assert_eq!(pages("csv:delimiter=semicolon", text).unwrap(), [r(0), r(1), r(2), w(0), w(1)]);
    let shown = refusal("csv", "when,key\n1,\"ab\n");
    assert!(shown.starts_with("t:2: ") && shown.contains("closing quote"), "{shown}");
}

#[test]
fn a_first_line_with_a_hash_is_a_header_or_a_comment() {
    for header in ["# time, obj_id, op", "#time,obj_id,op", "#when,what,how", "# 3 columns, 2, x"] {
        let text = format!("{header}\n1,ab,get\n2,cd,set\n");
        assert_eq!(pages("csv:obj_id=2,op=3", &text).unwrap(), [r(0), w(1)], "{header}");
    }
    assert_eq!(pages("", "#time,obj_id,op\n1,ab,get\n").unwrap(), [r(0)]);
    // A line that names no column of objects is a comment; the header is below it.
    let text = "# made by hand, in 2009\ntime,obj_id,op\n1,8,get\n2,9,set\n";
    assert_eq!(pages("", text).unwrap(), [r(8), w(9)]);
    assert_eq!(pages("csv", text).unwrap(), [r(8), w(9)]);
    // Only the first line can be a comment: below it an id may begin like this, and so may the first one without a
    // header.
    assert_eq!(pages("", "id,op\n#a,get\n#b,set\n").unwrap(), [r(0), w(1)]);
    assert_eq!(pages("csv:obj_id=1,op=2,header=no", "#a,get\n#b,set\n").unwrap(), [r(0), w(1)]);
    assert_eq!(pages("", "# op,page\nR,5\nW,6\n").unwrap(), [r(5), w(6)]);
}

#[test]
fn without_names_a_header_is_told_by_its_lack_of_numbers_or_asked_for() {
    let by_number = "csv:obj_id=2";
    assert_eq!(pages(by_number, "0,ab,17\n1,cd,9\n").unwrap(), [r(0), r(1)]);
    assert_eq!(pages(by_number, "when,what,size\n0.5,ab,17\n1,cd,9\n").unwrap(), [r(0), r(1)]);
    assert_eq!(pages(by_number, "when,what\nnever,70\nsoon,9\n").unwrap(), [r(70), r(9)]);
    let words = "one,ab\ntwo,cd\n";
    let shown = refusal(by_number, words);
    assert!(shown.starts_with("t:2: ") && shown.contains("header=yes or header=no"), "{shown}");
    assert_eq!(pages("csv:obj_id=2,header=no", words).unwrap(), [r(0), r(1)]);
    assert_eq!(pages("csv:obj_id=2,header=yes", words).unwrap(), [r(0)]);
    // If ids are numbers, a first line without a number is a header.
    assert_eq!(pages("csv:obj_id=2,ids=number", "a,b\nc,70\n").unwrap(), [r(70)]);
}

/// More ids than a hash of 32 bits can keep apart: about eleven of these 300,000 would collide.
#[test]
fn no_two_texts_share_a_page_and_a_second_reading_gives_the_same_pages() {
    let ids = 300_000_u64;
    let line = |id: u64| format!("{id},key-{},get\n", id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let again = (0..ids).rev().step_by(7);
    let text: String = (0..ids).chain(again.clone()).map(line).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.csv");
    std::fs::write(&path, format!("time,key,op\n{text}")).unwrap();
    let of = || -> Vec<PageEvent> {
        open_pages(&path, &options("")).unwrap().map(Result::unwrap).collect()
    };
    let expected: Vec<PageEvent> = (0..ids).chain(again).map(r).collect();
    assert!(of() == expected);
    assert!(of() == expected);
    // Reading part by part, which reads the trace twice, gives the same numbers.
    let text = format!("concat:{}@50%..+{0}@1", path.display());
    let mut parts = open_pages(Path::new(&text), &options("")).unwrap();
    let first = expected.len() / 2;
    assert_eq!(parts.next().unwrap().unwrap(), expected[first]);
    assert_eq!(parts.last().unwrap().unwrap(), r(0));
}
