//! Small traces of each format, made by hand.
#![allow(dead_code, reason = "each test uses a part of it")]
use std::path::Path;
use tantalum_base::{PageNo, Result};
use tantalum_trace::formats::AnyFormat;
use tantalum_trace::writer::{self, Writer};
use tantalum_trace::{OpenOptions, PageEvent, open_pages};

pub fn options(format: &str) -> OpenOptions {
    OpenOptions {
        format: (!format.is_empty()).then(|| format.to_owned()),
        ..OpenOptions::default()
    }
}

/// Rewrites the trace at `from` as the format `to_format` at `to`; returns the number of events.
pub fn convert(from: &Path, options: &OpenOptions, to: &Path, to_format: &str) -> Result<u64> {
    match AnyFormat::by_name(to_format)? {
        AnyFormat::Page(format) => {
            let events = open_pages(from, options)?;
            writer::write_all(Writer::create_with(to, format, to_format)?, events)
        }
        AnyFormat::Block(format) => {
            let reader = writer::open_blocks(from, options)?;
            writer::write_blocks(
                Writer::create_with(to, format, to_format)?,
                reader,
                options,
                || Ok(()),
            )
        }
    }
}

pub fn r(page: u64) -> PageEvent {
    PageEvent::Read { page: PageNo(page), pages: 1 }
}

pub fn w(page: u64) -> PageEvent {
    PageEvent::Write { page: PageNo(page), pages: 1 }
}

pub const LIS: &str = "314932 1 0 0\n  356782\t64 0  1\r\n";
pub const MSR: &str = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
                   128166372016382155,usr,1,Write,2517696512,4096,703\n";
pub const SPC: &str = "0,20941264,8192,W,0.551706\n1, 3436288, 15872, r, 1.206,77\n";
pub const ALIBABA: &str =
    "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144\n";
pub const TENCENT: &str = "1538323199,105352008,584,1,1576\n1538323200,12910952,128,0,1063\n";
pub const BLKPARSE: &str = "  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]
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

pub fn vscsi(version: u8, records: &[(u16, u32, u64)]) -> Vec<u8> {
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

pub fn oracle(records: &[(u32, u64, u32, i64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (time, object, size, next) in records {
        bytes.extend(time.to_le_bytes());
        bytes.extend(object.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next.to_le_bytes());
    }
    bytes
}
