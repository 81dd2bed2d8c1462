//! `oracle_general`: libCacheSim's binary traces that include the future, 24 bytes per request, little-endian, no
//! header:
//!
//! ```text
//! clock_time u32 (seconds), obj_id u64, obj_size u32 (bytes), next_access_vtime i64 (-1: never)
//! ```
//! Source: `traceReader/customizedReader/oracle/oracleGeneralBin.h` of libCacheSim; `next_access_vtime` counts requests
//! from 1.
//!
//! Each request is a read of the page with the object's number: the format has no operation. Time and future are
//! dropped, and the size unless objects are to be as many pages as they need. In a written trace, the time is the
//! request's number, the size that of a page; trims and commit points are dropped.
use super::plausible::Plausible;
use super::records::{u32_at, u64_at};
use super::{Decode, Encode, Fault, Format, Head};
use crate::event::PageEvent;
use crate::objects::ObjectPages;
use tantalum_base::spec::is_same;
use tantalum_base::{FastMap, PageNo, Result, Spec};

/// The format `oracle_general`.
#[derive(Debug)]
pub struct OracleGeneral;

const RECORD_BYTES: usize = 24;
const NEVER: i64 = -1;
/// No trace has this many requests.
const NEXT_END: i64 = 1 << 40;
/// Records that one call of `finish` appends.
const PART_RECORDS: usize = 1 << 16;

impl Format<PageEvent> for OracleGeneral {
    fn name(&self) -> &'static str {
        "oracle_general"
    }

    /// At least two records; times never decrease; each record's next access comes after it, and if that is among the
    /// first records, it is one of the same object.
    fn detect(&self, head: &Head<'_>) -> bool {
        let records: Vec<Record> = head.records(RECORD_BYTES).map(Record::of).collect();
        let follows = |(at, record): (usize, &Record)| {
            let number = at as u64 + 1;
            match u64::try_from(record.next) {
                Err(_) => record.next == NEVER,
                // The largest number also means never; no trace is nearly as long.
                Ok(next) => {
                    let there = usize::try_from(next)
                        .ok()
                        .and_then(|next| records.get(next.checked_sub(1)?));
                    next > number
                        && (next < NEXT_END as u64 || record.next == i64::MAX)
                        && there.is_none_or(|there| there.object == record.object)
                }
            }
        };
        head.is_records(RECORD_BYTES)
            && records.is_sorted_by_key(|record| record.time)
            && records.iter().enumerate().all(follows)
    }

    fn detect_ending(&self, ending: &str) -> bool {
        is_same(ending, self.name())
    }

    /// Accepts `check` (`yes`, `no`): whether impossible records are refused.
    fn decoder(&self, spec: &mut Spec<'_>) -> Result<Box<dyn Decode<PageEvent>>> {
        let plausible = Plausible::of(spec, "oracle_general", 1)?;
        Ok(Box::new(Decoder { plausible, passed: 0, sized: None }))
    }

    /// Accepts `size`, the bytes of an object (4096).
    fn encoder(&self, spec: &mut Spec<'_>) -> Result<Option<Box<dyn Encode<PageEvent>>>> {
        let object_bytes = spec.count("size", 1..=u64::from(u32::MAX), 4096)? as u32;
        Ok(Some(Box::new(Encoder { object_bytes, objects: Vec::new(), next: None, written: 0 })))
    }
}

struct Record {
    time: u32,
    object: u64,
    bytes: u32,
    next: i64,
}

impl Record {
    fn of(bytes: &[u8]) -> Record {
        let next = u64_at(bytes, 16).cast_signed();
        Record { time: u32_at(bytes, 0), object: u64_at(bytes, 4), bytes: u32_at(bytes, 12), next }
    }

    /// Why the next access is impossible for record `number`, counted from 1, if it is. Parts of a trace keep the
    /// numbers of the whole, so any later number below the length of all traces is possible. Negative numbers mean
    /// never and unknown.
    fn odd_future(&self, number: u64) -> Option<String> {
        let next = self.next;
        let is_later = next < NEXT_END && u64::try_from(next).is_ok_and(|next| next > number);
        let is_sound = is_later || (-2..0).contains(&next) || next == i64::MAX;
        (!is_sound).then(|| match next {
            1..NEXT_END => {
                format!("the next access is request {next}, not after this one, {number}")
            }
            _ => format!("the next access is request {next}"),
        })
    }
}

struct Decoder {
    plausible: Plausible,
    /// Records decoded in the previous chunks.
    passed: u64,
    /// Lays objects out by their sizes, if that is requested.
    sized: Option<ObjectPages>,
}

impl Decode<PageEvent> for Decoder {
    fn decode(
        &mut self,
        chunk: &[u8],
        _last: bool,
        out: &mut Vec<PageEvent>,
    ) -> Result<usize, Fault> {
        for (number, bytes) in chunk.chunks_exact(RECORD_BYTES).enumerate() {
            let record = Record::of(bytes);
            let odd = || record.odd_future(self.passed + number as u64 + 1);
            let checked = self.plausible.check(u64::from(record.time), odd);
            let fault = |reason| Fault { at: number * RECORD_BYTES, reason };
            checked.map_err(fault)?;
            let event = PageEvent::one(PageNo(record.object), false);
            out.push(match &mut self.sized {
                Some(objects) => objects.event(event, u64::from(record.bytes)).map_err(fault)?,
                None => event,
            });
        }
        let records = chunk.len() / RECORD_BYTES;
        self.passed += records as u64;
        Ok(records * RECORD_BYTES)
    }

    fn size_objects(&mut self, page_bytes: u32) -> bool {
        self.sized = Some(ObjectPages::new(page_bytes));
        true
    }

    fn dropped(&self) -> Vec<&'static str> {
        if self.sized.is_some() { vec!["times"] } else { vec!["times", "sizes"] }
    }

    fn is_binary(&self) -> bool {
        true
    }
}

/// Keeps the whole trace in memory, 16 bytes per request: the next accesses are known only at its end.
struct Encoder {
    object_bytes: u32,
    objects: Vec<u64>,
    /// Number of the next request for the same object, from 1; 0 for never. Computed by `finish`.
    next: Option<Vec<u64>>,
    written: usize,
}

impl Encode<PageEvent> for Encoder {
    fn encode(&mut self, event: &PageEvent, _names: &[String], _out: &mut Vec<u8>) {
        self.objects.extend(event.requests().map(|(page, _)| page.0));
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> bool {
        let objects = &self.objects;
        let next = self.next.get_or_insert_with(|| next_requests(objects));
        let end = objects.len().min(self.written + PART_RECORDS);
        for at in self.written..end {
            let time = u32::try_from(at + 1).unwrap_or(u32::MAX);
            out.extend_from_slice(&time.to_le_bytes());
            out.extend_from_slice(&objects[at].to_le_bytes());
            out.extend_from_slice(&self.object_bytes.to_le_bytes());
            let next = if next[at] == 0 { NEVER } else { next[at].cast_signed() };
            out.extend_from_slice(&next.to_le_bytes());
        }
        self.written = end;
        end < objects.len()
    }
}

fn next_requests(objects: &[u64]) -> Vec<u64> {
    let mut next = vec![0; objects.len()];
    let mut seen: FastMap<u64, u64> = FastMap::default();
    for (at, object) in objects.iter().enumerate().rev() {
        next[at] = seen.insert(*object, at as u64 + 1).unwrap_or(0);
    }
    next
}
