//! Records as bytes.
use std::marker::PhantomData;
use std::rc::Rc;
use tantalum_base::checksum::{crc32c, crc32c_append};
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo};

use super::{ByteRecord, Codec, FRAME_BYTES, PAGE_ROOM};
use crate::fault_points::Fault;

/// Writes records as bytes, each with a checksum.
#[derive(Debug)]
pub struct ByteCodec<T>(PhantomData<T>);

impl<T> Default for ByteCodec<T> {
    fn default() -> Self {
        ByteCodec(PhantomData)
    }
}

impl<T: ByteRecord> Codec for ByteCodec<T> {
    type Page = PageBuf;
    type Record = T;

    fn encode(&self, _first: PageNo, records: &[Rc<T>]) -> Vec<PageBuf> {
        let mut bytes = Vec::new();
        for record in records {
            let frame = bytes.len();
            bytes.extend([0; FRAME_BYTES]);
            record.encode(&mut bytes);
            let content = &bytes[frame + FRAME_BYTES..];
            debug_assert_eq!(content.len(), record.content_bytes(), "{record:?}");
            let length = (content.len() as u32).to_le_bytes();
            let checksum = crc32c_append(crc32c(&length), content);
            bytes[frame..frame + 4].copy_from_slice(&checksum.to_le_bytes());
            bytes[frame + 4..frame + 8].copy_from_slice(&length);
        }
        let mark = records.first().map_or(0, |record| record.mark());
        let page = |room: &[u8]| {
            let mut page = [0; PAGE_BYTES];
            page[0] = mark;
            page[1..=room.len()].copy_from_slice(room);
            PageBuf::copy_from(&page)
        };
        bytes.chunks(PAGE_ROOM).map(page).collect()
    }

    fn decode(&self, offset: u16, pages: &[PageBuf]) -> Option<Rc<T>> {
        let mark = pages.first()?[0];
        // One page is decoded in place; most records lie in one.
        let gathered: Vec<u8>;
        let room: &[u8] = match pages {
            [page] => &page[1..],
            _ => {
                gathered = pages.iter().flat_map(|page| &page[1..]).copied().collect();
                &gathered
            }
        };
        let frame = room.get(usize::from(offset)..)?;
        let word = |at: usize| frame.get(at..at + 4)?.try_into().map(u32::from_le_bytes).ok();
        let (checksum, length) = (word(0)?, word(4)?);
        let content = frame.get(FRAME_BYTES..FRAME_BYTES.checked_add(length as usize)?)?;
        let is_whole = crc32c_append(crc32c(&length.to_le_bytes()), content) == checksum;
        if !is_whole && !Fault::ChecksumsIgnored.is_planted() {
            return None;
        }
        let record = T::decode(content)?;
        (mark != 0 && record.mark() == mark).then(|| Rc::new(record))
    }
}
