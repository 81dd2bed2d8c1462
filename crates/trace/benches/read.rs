//! Lines a second read from page and block CSV, and events a second generated.
use criterion::{Criterion, Throughput};
use std::hint::black_box;
use std::io::Cursor;
use std::path::Path;
use tantalum_trace::formats::{Format, page_csv::PageCsv};
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

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let spec = format!("zipf:pages=200000,requests={LINES},theta=0.9,writes=0.3");
    let generator = Generator::parse(&spec).expect("a sound generator");
    let mut text = Vec::new();
    PageCsv.begin(&mut text);
    generator.clone().for_each(|event| PageCsv.encode(&event, &[], &mut text));
    let packed = zstd::encode_all(&text[..], 3).expect("compresses in memory");

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
