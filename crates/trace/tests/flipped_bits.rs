//! No flipped bit in a compressed trace passes as another trace.
mod support;

use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tantalum_base::{PageNo, Result};
use tantalum_trace::formats::page_csv::PageCsv;
use tantalum_trace::open::read;
use tantalum_trace::{AnyReader, OpenOptions, PageEvent, Writer};

/// Bytes that a writer has written.
#[derive(Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn events(bytes: &[u8]) -> Result<Vec<PageEvent>> {
    match read(Path::new("t"), Box::new(Cursor::new(bytes.to_vec())), &OpenOptions::default())? {
        AnyReader::Page(reader) => reader.collect(),
        AnyReader::Block(_) => panic!("it was read as blocks"),
    }
}

#[test]
fn a_flipped_bit_of_a_written_trace_is_found() {
    let mut state = 1_u64;
    let made: Vec<PageEvent> = (0..400)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            PageEvent::one(PageNo(state >> 50), state & (1 << 49) != 0)
        })
        .collect();
    for name in ["t.csv.zst", "t.csv.gz"] {
        let bytes = Bytes::default();
        let mut writer = Writer::new(name, Box::new(bytes.clone()), &PageCsv).unwrap();
        made.iter().for_each(|event| writer.write(event).unwrap());
        writer.finish().unwrap();
        let mut bytes = bytes.0.lock().unwrap().clone();
        assert_eq!(events(&bytes).unwrap(), made);
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(other) = events(&bytes) {
                assert_eq!(other, made, "{name}: bit {bit}");
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
