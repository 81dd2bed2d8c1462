//! Traces of every format.
use std::io::Cursor;
use std::path::Path;
use tantalum_trace::formats::{self, AnyFormat};
use tantalum_trace::open::read;
use tantalum_trace::{AnyReader, OpenOptions};

/// Formats with parameters, and no format: then the content determines it.
const MORE: [&str; 10] = [
    "",
    "csv:obj_id=2,op=1,header=no",
    "csv:obj_id=1,ids=text,delimiter=space",
    "csv:ids=number",
    "vscsi:version=2",
    "blkparse:action=C",
    "oracle_general:check=no",
    "vscsi:check=no",
    "page_binary:check=no",
    "cachelib_kv:ids=text",
];

fn names() -> Vec<&'static str> {
    formats::ALL.iter().map(AnyFormat::name).chain(MORE).collect()
}

/// The first byte of an input is the format, the rest is the trace.
pub(crate) fn run(input: &[u8]) {
    let Some((first, trace)) = input.split_first() else { return };
    let names = names();
    let name = names[usize::from(*first) % names.len()];
    let format = (!name.is_empty()).then(|| name.to_owned());
    let options = OpenOptions { format, ..OpenOptions::default() };
    match read(Path::new("t"), Box::new(Cursor::new(trace.to_vec())), &options) {
        Ok(AnyReader::Page(reader)) => drop(reader.collect::<Vec<_>>()),
        Ok(AnyReader::Block(reader)) => drop(reader.collect::<Vec<_>>()),
        Err(_) => {}
    }
}

/// Each sample with its own format, and with the format that its content determines.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (at, name) in names().iter().enumerate() {
        let format = name.split(':').next().unwrap_or_default();
        for (_, sample) in samples().iter().filter(|(of, _)| *of == format || format.is_empty()) {
            seeds.push([&[at as u8], &sample[..]].concat());
        }
    }
    seeds
}

fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        ("page_csv", text("op,page\nR,18446744073709551615\nW,7\nT,3\nC,\n")),
        (
            "block_csv",
            text("op,file_kind,offset,length\nW,a,18446744073709551000,615\nF,a,0,0\nU,a,0,0\n"),
        ),
        (
            "page_binary",
            [&b"tantalum pages 1"[..], &[7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0]].concat(),
        ),
        ("plain_text", text("5\n6\n\n5\n")),
        ("csv", text("# time, obj_id, op\n1,\"a,b\"\"c\",get\n2,17,set\n")),
        ("csv", text("time,key,op\n1,12,get\n2,17,set\n")),
        ("oracle_general", [oracle(5, 2), oracle(5, -1)].concat()),
        ("cachelib_kv", text("key,op,size,op_count,key_size\n7,GET,1,3,8\n7,DELETE,0,1,8\n")),
        ("fiu", text("89967168178155 4892 my proc 904265560 8 W 6 0 531e779ca8feaf63\n")),
        ("lis", text("314932 1 0 0\n  356782\t64 0  1\r\n")),
        ("msr", text("128166372003061629,usr,0,Read,7014609920,24576,41286\n")),
        ("spc", text("0,20941264,8192,W,0.551706\n1, 3436288, 15872, r, 1.206,77\n")),
        (
            "alibaba",
            text("419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144\n"),
        ),
        ("tencent", text("1538323199,105352008,584,1,1576\n1538323200,12910952,128,0,1063\n")),
        ("vscsi", [&[7, 0, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 0x2a, 0, 3, 1], &[9; 16][..]].concat()),
        (
            "blkparse",
            text(
                "  8,0 3 3 0.000002197 697 Q W 223490 + 8 [k]\n  8,0 3 9 0.002 0 C FWS 128 + 8 [0]\nCPU3 (sda):\n",
            ),
        ),
    ]
}

fn oracle(object: u64, next: i64) -> Vec<u8> {
    [&1_u32.to_le_bytes()[..], &object.to_le_bytes(), &9_u32.to_le_bytes(), &next.to_le_bytes()]
        .concat()
}
