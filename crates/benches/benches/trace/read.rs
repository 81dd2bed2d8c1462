//! Lines a second read from page CSV, bytes a second read from every format, and events a second
//! generated.
use criterion::{Criterion, Throughput};
use std::hint::black_box;
use std::io::Cursor;
use std::path::Path;
use tantalum_base::Spec;
use tantalum_trace::formats::{AnyFormat, Format, page_csv::PageCsv};
use tantalum_trace::open::read;
use tantalum_trace::{AnyReader, Generator, OpenOptions, PageEvent, Reader};

const LINES: u64 = 1_000_000;

fn page_reader(bytes: &[u8]) -> Reader<PageEvent> {
    let source = Box::new(Cursor::new(bytes.to_vec()));
    match read(Path::new("bench"), source, &OpenOptions::default()) {
        Ok(AnyReader::Page(reader)) => reader,
        _ => panic!("a page trace"),
    }
}

/// The events of `generator` as a trace of `format`.
fn encoded(format: &dyn Format<PageEvent>, generator: &Generator) -> Vec<u8> {
    let mut spec = Spec::parse(format.name()).expect("a name");
    let mut encoder = format.encoder(&mut spec).expect("no parameters").expect("is written");
    let mut bytes = Vec::new();
    encoder.begin(&mut bytes);
    generator.clone().for_each(|event| encoder.encode(&event, &[], &mut bytes));
    while encoder.finish(&mut bytes) {}
    bytes
}

/// A trace of each format that is only read, with a request for each event of `generator`.
fn foreign(generator: &Generator) -> Vec<(&'static str, Vec<u8>)> {
    let mut msr = String::new();
    let (mut spc, mut alibaba, mut tencent) = (String::new(), String::new(), String::new());
    let (mut blkparse, mut vscsi) = (String::new(), Vec::new());
    let requests = generator.clone().flat_map(|event| event.requests());
    for (number, (page, is_write)) in requests.enumerate() {
        let (sector, bytes) = (page.0 * 8, page.0 * 4096);
        let (letter, word, bit) = if is_write { ('W', "Write", 1) } else { ('R', "Read", 0) };
        let volume = number / 16 % 7;
        msr += &format!("{},usr,{volume},{word},{bytes},4096,41286\n", 128166372003061629 + number);
        spc += &format!("{volume},{sector},4096,{letter},{number}.551706\n");
        alibaba += &format!("{volume},{letter},{bytes},4096,{}\n", 1577808000000626 + number);
        tencent += &format!("{},{sector},8,{bit},{volume}\n", 1538323200 + number / 1000);
        blkparse += &format!(
            "  8,0    3 {number:8}     {:.9}   697  Q   {letter} {sector} + 8 [kjournald]\n",
            number as f64 * 1e-4
        );
        vscsi.extend([7_u32.to_le_bytes(), 4096_u32.to_le_bytes(), [1, 0, 0, 0]].concat());
        let command = if is_write { 0x2a } else { 0x28 };
        vscsi.extend([command, 0, 0, 1]);
        vscsi.extend([sector.to_le_bytes(), (number as u64).to_le_bytes()].concat());
    }
    vec![
        ("msr", msr.into_bytes()),
        ("spc", spc.into_bytes()),
        ("alibaba", alibaba.into_bytes()),
        ("tencent", tencent.into_bytes()),
        ("blkparse", blkparse.into_bytes()),
        ("vscsi", vscsi),
    ]
}

/// Bytes a second of every format, decompressed before.
fn bench_formats(criterion: &mut Criterion, generator: &Generator) {
    let mut traces = foreign(generator);
    for name in ["page_csv", "page_binary", "plain_text", "csv", "oracle_general", "lis"] {
        let Ok(AnyFormat::Page(format)) = AnyFormat::by_name(name) else { continue };
        traces.push((name, encoded(format, generator)));
    }
    let mut group = criterion.benchmark_group("formats");
    for (name, bytes) in traces {
        let options = OpenOptions { format: Some(name.to_owned()), ..OpenOptions::default() };
        group.throughput(Throughput::Bytes(bytes.len() as u64)).sample_size(10);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let source = Box::new(Cursor::new(bytes.clone()));
                let events = match read(Path::new("bench"), source, &options) {
                    Ok(AnyReader::Page(mut reader)) => drain(&mut reader),
                    Ok(AnyReader::Block(mut reader)) => drain(&mut reader),
                    Err(error) => panic!("{error}"),
                };
                assert_eq!(events, LINES);
            });
        });
    }
    group.finish();
}

fn drain<E: Copy>(reader: &mut Reader<E>) -> u64 {
    let mut events = 0;
    loop {
        let batch = reader.next_batch().expect("sound lines");
        if batch.is_empty() {
            return events;
        }
        events += black_box(batch).len() as u64;
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let spec = format!("zipf:pages=200000,requests={LINES},theta=0.9,writes=0.3");
    let generator = Generator::parse(&spec).expect("a sound generator");
    let text = encoded(&PageCsv, &generator);
    let packed = zstd::encode_all(&text[..], 3).expect("compresses in memory");

    bench_formats(&mut criterion, &generator);
    let mut group = criterion.benchmark_group("trace");
    group.throughput(Throughput::Elements(LINES)).sample_size(10);
    for (name, bytes) in [("page_csv", &text), ("page_csv zstd", &packed)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut reader = page_reader(bytes);
                let mut events = 0;
                while let Ok(batch) = reader.next_batch()
                    && !batch.is_empty()
                {
                    events += black_box(batch).len() as u64;
                }
                assert_eq!(events, LINES);
            });
        });
    }
    group.bench_function("page_csv one at a time", |bencher| {
        bencher.iter(|| {
            page_reader(&text).for_each(|event| {
                let _ = black_box(event);
            })
        });
    });
    for name in ["uniform", "zipf", "self_similar", "scan"] {
        let spec = format!("{name}:pages=1000000,requests={LINES},writes=0.3");
        let generator = Generator::parse(&spec).expect("a sound generator");
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                generator.clone().for_each(|event| {
                    black_box(event);
                })
            });
        });
    }
    group.finish();
    criterion.final_summary();
}
